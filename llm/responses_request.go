package llm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// responsesAPI is OpenAI's Responses API. Nothing is stored at the provider: what the model must see again is sent
// again, and its reasoning is encrypted.
var responsesAPI = chatAPI{
	base: "https://api.openai.com/v1", version: "/v1",
	request:   responsesRequest,
	reader:    func(a *answer) streamReader { return &responsesReader{answer: a, items: map[int]*answerPart{}} },
	listPath:  "/models",
	parseList: parseOpenAIModels,
}

// A responsesBody is the body of a request.
type responsesBody struct {
	Model           string              `json:"model"`
	Instructions    string              `json:"instructions,omitempty"`
	Input           []any               `json:"input"`
	Tools           []any               `json:"tools,omitempty"`
	Store           bool                `json:"store"`
	Stream          bool                `json:"stream"`
	Include         []string            `json:"include,omitempty"`
	Reasoning       *responsesReasoning `json:"reasoning,omitempty"`
	MaxOutputTokens int                 `json:"max_output_tokens,omitempty"`
	PromptCacheKey  string              `json:"prompt_cache_key,omitempty"`
}

type responsesReasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

type responsesTool struct {
	Type         string          `json:"type"`
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	Parameters   json.RawMessage `json:"parameters"`
	Strict       bool            `json:"strict"`
	DeferLoading bool            `json:"defer_loading,omitempty"`
}

// A responsesSearch is the provider's own search for tools, in the list of tools.
type responsesSearch struct {
	Type string `json:"type"`
}

type responsesMessage struct {
	Type    string             `json:"type"`
	Role    drawbridge.Role    `json:"role"`
	Content []responsesContent `json:"content"`
}

type responsesContent struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
}

type responsesCall struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	// Namespace is set in a call of a tool that a search found.
	Namespace string `json:"namespace,omitempty"`
}

type responsesResult struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"` // a text, or a list of content
}

// responsesRequest returns the path and the body of a request.
func responsesRequest(m *ChatModel, r drawbridge.ModelRequest) (string, any) {
	b := responsesBody{Model: m.info.Name, Instructions: r.Instructions, Stream: true, Input: []any{},
		MaxOutputTokens: r.MaxOutput, PromptCacheKey: cacheKey(r.CacheKey)}
	if m.searches(r) {
		b.Tools = []any{responsesSearch{openAISearchType}}
		r.Messages = pairedSearches(r.Messages)
	} else {
		r.Messages = withoutSearches(r.Messages)
	}
	for _, t := range m.tools(r) {
		b.Tools = append(b.Tools, responsesTool{Type: "function", Name: wireName(t.Name), Description: t.Description,
			Parameters: normaliseSchema(t.InputSchema, schemaDialect{}), DeferLoading: t.Deferred})
	}
	for _, message := range cleanHistory(r.Messages) {
		b.Input = append(b.Input, m.responsesItems(message)...)
	}
	if m.mayThink() {
		b.Include = []string{"reasoning.encrypted_content"}
		b.Reasoning = &responsesReasoning{Effort: openAIEffort(r.Thinking, m.info.Name), Summary: "auto"}
	}
	return "/responses", b
}

// cacheKey returns a key of a cache within the provider's limit of 64 characters.
func cacheKey(key string) string {
	if key == "" {
		return ""
	}
	return wireID(key)
}

// openAIEffort returns the step of OpenAI's models that is nearest to a level.
func openAIEffort(level drawbridge.ThinkingLevel, name string) string {
	if level == "" {
		return ""
	}
	steps := []string{"none", "low", "medium", "high", "xhigh"}
	switch {
	case slices.ContainsFunc([]string{"o1", "o3", "o4"}, func(p string) bool { return strings.HasPrefix(name, p) }):
		steps = []string{"low", "medium", "high"}
	case name == "gpt-5" || strings.HasPrefix(name, "gpt-5-"):
		steps = []string{"minimal", "low", "medium", "high"}
	case strings.HasPrefix(name, "gpt-5.1"):
		steps = []string{"none", "low", "medium", "high"}
	}
	return nearestEffort(level, steps)
}

// responsesItems returns the items of a message, in its order.
func (m *ChatModel) responsesItems(message drawbridge.Message) (items []any) {
	var content []responsesContent
	flush := func() {
		if len(content) > 0 {
			items = append(items, responsesMessage{"message", message.Role, content})
			content = nil
		}
	}
	for _, p := range message.Parts {
		switch {
		case p.Text != "" && message.Role == drawbridge.AssistantRole:
			content = append(content, responsesContent{Type: "output_text", Text: p.Text})
		case p.Text != "":
			content = append(content, responsesContent{Type: "input_text", Text: p.Text})
		case p.Image != nil && message.Role == drawbridge.UserRole:
			content = append(content, responsesContent{Type: "input_image", ImageURL: dataURL(*p.Image)})
		case p.Thinking != nil && m.isOwn(p.Thinking.Model) && len(p.Thinking.Provider) > 0:
			flush()
			items = append(items, p.Thinking.Provider)
		case p.ToolCall != nil:
			flush()
			call := responsesCall{Type: "function_call", CallID: wireID(p.ToolCall.ID), Name: wireName(p.ToolCall.Name),
				Arguments: string(argumentsObject(p.ToolCall.Arguments))}
			if m.isOwn(p.ToolCall.Model) {
				call.Namespace = rawjson.GetString(p.ToolCall.Provider, "namespace")
			}
			items = append(items, call)
		case p.ToolResult != nil:
			flush()
			items = append(items, newResponsesResult(*p.ToolResult))
		}
	}
	flush()
	return items
}

func newResponsesResult(r drawbridge.ToolResult) responsesResult {
	out := responsesResult{"function_call_output", wireID(r.CallID), r.Text}
	if len(r.Images) > 0 {
		content := []responsesContent{}
		if r.Text != "" {
			content = append(content, responsesContent{Type: "input_text", Text: r.Text})
		}
		for _, i := range r.Images {
			content = append(content, responsesContent{Type: "input_image", ImageURL: dataURL(i)})
		}
		out.Output = content
	}
	return out
}

func dataURL(i drawbridge.Image) string {
	return fmt.Sprintf("data:%s;base64,%s", i.MIMEType, base64.StdEncoding.EncodeToString(i.Data))
}

// openAIThinks reports whether a model of OpenAI thinks, judging by its name.
func openAIThinks(name string) bool {
	for _, plain := range []string{"gpt-3", "gpt-4", "chatgpt", "-chat"} {
		if strings.Contains(name, plain) {
			return false
		}
	}
	return true
}

// parseOpenAIModels parses the list of models of OpenAI and of compatible endpoints. OpenRouter, vLLM and llama.cpp add
// facts.
func parseOpenAIModels(raw []byte) (all []listedModel, ok bool) {
	var list struct {
		Data []struct {
			ID            string
			Created       float64
			ContextLength int `json:"context_length"` // OpenRouter
			MaxModelLen   int `json:"max_model_len"`  // vLLM
			Meta          struct {
				Context int `json:"n_ctx"` // llama.cpp
			}
			TopProvider struct {
				MaxOutput int `json:"max_completion_tokens"`
			} `json:"top_provider"`
			Architecture struct {
				Input []string `json:"input_modalities"`
			}
			Pricing    map[string]json.RawMessage
			Parameters []string `json:"supported_parameters"`
		}
		Object string
	}
	if json.Unmarshal(raw, &list) != nil || list.Data == nil && (list.Object != "list" || len(rawjson.Get(raw, "data")) == 0) {
		return nil, false
	}
	for _, d := range list.Data {
		if d.ID == "" || isOtherModel(d.ID) {
			continue
		}
		l := listedModel{ModelFacts: config.ModelFacts{Name: d.ID, MaxOutput: d.TopProvider.MaxOutput,
			Window: max(d.ContextLength, d.MaxModelLen, d.Meta.Context)}, created: int64(d.Created)}
		if d.Architecture.Input != nil {
			images := slices.Contains(d.Architecture.Input, "image")
			l.Images = &images
		}
		if d.Parameters != nil {
			thinks := slices.Contains(d.Parameters, "reasoning")
			l.Thinking = &thinks
		}
		l.Price = drawbridge.ModelPrice{Input: millionPrice(d.Pricing["prompt"]), Output: millionPrice(d.Pricing["completion"]),
			CacheRead: millionPrice(d.Pricing["input_cache_read"]), CacheWrite: millionPrice(d.Pricing["input_cache_write"])}
		all = append(all, l)
	}
	return all, true
}

// millionPrice returns the price of a million tokens for a price of one, which is a number in a string.
func millionPrice(raw json.RawMessage) float64 {
	var price float64
	if json.Unmarshal([]byte(strings.Trim(string(raw), `"`)), &price) != nil || price < 0 {
		return 0
	}
	return price * 1e6
}

// otherModel matches names of models that do not write texts.
var otherModel = lazyregexp.New(`(?i)^(text-embedding|whisper|tts-|dall-e|gpt-image|omni-moderation|text-moderation|sora|babbage|davinci)|` +
	`-(realtime|audio|transcribe|tts|embedding|search-preview)(-|$)`)

// isOtherModel reports whether the name of a model of OpenAI says that it does not write texts.
func isOtherModel(name string) bool { return otherModel().MatchString(name) }
