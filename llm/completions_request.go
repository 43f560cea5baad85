package llm

import (
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// completionsAPI is OpenAI's Chat Completions API, which most other servers have too: Ollama, llama.cpp, vLLM,
// OpenRouter and many more.
var completionsAPI = chatAPI{
	base: "https://api.openai.com/v1", version: "/v1",
	request:   completionsRequest,
	reader:    func(a *answer) streamReader { return &completionsReader{answer: a} },
	listPath:  "/models",
	parseList: parseOpenAIModels,
}

// A completionsBody is the body of a request.
type completionsBody struct {
	Model               string               `json:"model"`
	Messages            []completionsMessage `json:"messages"`
	Tools               []completionsTool    `json:"tools,omitempty"`
	Stream              bool                 `json:"stream"`
	StreamOptions       map[string]bool      `json:"stream_options"`
	MaxTokens           int                  `json:"max_tokens,omitempty"`
	MaxCompletionTokens int                  `json:"max_completion_tokens,omitempty"`
	ReasoningEffort     string               `json:"reasoning_effort,omitempty"`
	PromptCacheKey      string               `json:"prompt_cache_key,omitempty"`
}

type completionsMessage struct {
	Role       string            `json:"role"`
	Content    any               `json:"content,omitempty"` // a text, or a list of parts
	ToolCalls  []completionsCall `json:"tool_calls,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"`
	// The thinking of this model, under the name that its endpoint uses.
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	Reasoning        string          `json:"reasoning,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
}

type completionsPart struct {
	Type     string            `json:"type"`
	Text     string            `json:"text,omitempty"`
	ImageURL map[string]string `json:"image_url,omitempty"`
}

type completionsTool struct {
	Type     string              `json:"type"`
	Function completionsFunction `json:"function"`
}

type completionsFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type completionsCall struct {
	ID       string            `json:"id"`
	Type     string            `json:"type"`
	Function map[string]string `json:"function"`
}

// completionsRequest returns the path and the body of a request.
func completionsRequest(m *ChatModel, r drawbridge.ModelRequest) (string, any) {
	b := completionsBody{Model: m.info.Name, Stream: true, StreamOptions: map[string]bool{"include_usage": true},
		Messages: []completionsMessage{}}
	if m.official {
		b.MaxCompletionTokens, b.PromptCacheKey = r.MaxOutput, cacheKey(r.CacheKey)
	} else {
		b.MaxTokens = r.MaxOutput
	}
	if m.mayThink() {
		b.ReasoningEffort = m.completionsEffort(r.Thinking)
	}
	if r.Instructions != "" {
		b.Messages = append(b.Messages, completionsMessage{Role: "system", Content: r.Instructions})
	}
	for _, t := range m.tools(r) {
		b.Tools = append(b.Tools, completionsTool{"function", completionsFunction{Name: wireName(t.Name),
			Description: t.Description, Parameters: normaliseSchema(t.InputSchema, chatSchema)}})
	}
	history := cleanHistory(r.Messages)
	turn := currentTurn(history)
	for i, message := range history {
		if message.Role == drawbridge.AssistantRole {
			b.Messages = append(b.Messages, m.completionsAnswer(message, i >= turn)...)
		} else {
			b.Messages = append(b.Messages, completionsInput(message)...)
		}
	}
	return "/chat/completions", b
}

// completionsEffort returns the step that is nearest to a level. Compatible endpoints have three steps.
func (m *ChatModel) completionsEffort(level drawbridge.ThinkingLevel) string {
	if m.official {
		return openAIEffort(level, m.info.Name)
	}
	return nearestEffort(level, []string{"none", "low", "medium", "high"})
}

// completionsAnswer returns a message of the model. Its thinking is sent back during the turn in which it was written.
func (m *ChatModel) completionsAnswer(message drawbridge.Message, current bool) []completionsMessage {
	out := completionsMessage{Role: "assistant"}
	if text := message.Text(); text != "" {
		out.Content = text
	}
	for _, p := range message.Parts {
		switch {
		case p.ToolCall != nil:
			out.ToolCalls = append(out.ToolCalls, completionsCall{wireID(p.ToolCall.ID), "function", map[string]string{
				"name": wireName(p.ToolCall.Name), "arguments": string(argumentsObject(p.ToolCall.Arguments))}})
		case p.Thinking != nil && current && m.isOwn(p.Thinking.Model):
			out.ReasoningDetails = rawjson.Get(p.Thinking.Provider, "reasoning_details")
			switch rawjson.GetString(p.Thinking.Provider, "field") {
			case "reasoning_content":
				out.ReasoningContent += p.Thinking.Text
			case "reasoning":
				out.Reasoning += p.Thinking.Text
			}
		}
	}
	if out.Content == nil && len(out.ToolCalls) == 0 {
		return nil
	}
	return []completionsMessage{out}
}

// completionsInput returns the messages for a message of the user: one for each result, and one for the rest. Results
// have no images in this API, so they follow the results.
func completionsInput(message drawbridge.Message) (all []completionsMessage) {
	var parts []completionsPart
	image := func(i drawbridge.Image) {
		parts = append(parts, completionsPart{Type: "image_url", ImageURL: map[string]string{"url": dataURL(i)}})
	}
	onlyText := true
	for _, p := range message.Parts {
		switch {
		case p.Text != "":
			parts = append(parts, completionsPart{Type: "text", Text: p.Text})
		case p.Image != nil:
			onlyText = false
			image(*p.Image)
		case p.ToolResult != nil:
			r := *p.ToolResult
			text := r.Text
			if len(r.Images) > 0 {
				onlyText = false
				text = strings.TrimSpace(text + "\n\n(The images follow.)")
				parts = append(parts, completionsPart{Type: "text", Text: "Images of the result of " + wireName(r.Name) + ":"})
			}
			for _, i := range r.Images {
				image(i)
			}
			all = append(all, completionsMessage{Role: "tool", ToolCallID: wireID(r.CallID), Content: text})
		}
	}
	switch {
	case len(parts) == 0:
	case onlyText: // some servers accept only a text
		all = append(all, completionsMessage{Role: "user", Content: message.Text()})
	default:
		all = append(all, completionsMessage{Role: "user", Content: parts})
	}
	return all
}
