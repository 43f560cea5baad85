package llm

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// anthropicAPI is Anthropic's Messages API.
var anthropicAPI = chatAPI{
	base: "https://api.anthropic.com/v1", version: "/v1",
	header:    map[string]string{"Anthropic-Version": "2023-06-01"},
	addKey:    func(h http.Header, key string) { h.Set("X-Api-Key", key) },
	request:   anthropicRequest,
	reader:    func(a *answer) streamReader { return &anthropicReader{answer: a, blocks: map[int]*answerPart{}} },
	listPath:  "/models?limit=1000",
	parseList: parseAnthropicModels,
}

// defaultMaxOutput is the limit of an answer where nothing is known about a model. It is the limit of the smallest
// models that still answer. maxDefaultOutput limits what is asked for without a wish of the caller.
const (
	defaultMaxOutput = 8192
	maxDefaultOutput = 32000
)

// An anthropicBody is the body of a request.
type anthropicBody struct {
	Model        string             `json:"model"`
	MaxTokens    int                `json:"max_tokens"`
	Stream       bool               `json:"stream"`
	Tools        []anthropicTool    `json:"tools,omitempty"`
	System       []anthropicBlock   `json:"system,omitempty"`
	Messages     []anthropicMessage `json:"messages"`
	Thinking     *anthropicThinking `json:"thinking,omitempty"`
	OutputConfig *anthropicEffort   `json:"output_config,omitempty"`
}

type anthropicThinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens,omitempty"`
	Display      string `json:"display,omitempty"`
}

type anthropicEffort struct {
	Effort string `json:"effort"`
}

type anthropicTool struct {
	Type         string          `json:"type,omitempty"`
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	DeferLoading bool            `json:"defer_loading,omitempty"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

type anthropicMessage struct {
	Role    drawbridge.Role  `json:"role"`
	Content []anthropicBlock `json:"content"`
}

type cacheControl struct {
	Type string `json:"type"`
}

// An anthropicBlock is a block of content. The members of its Type are set.
type anthropicBlock struct {
	Type         string           `json:"type"`
	Text         string           `json:"text,omitempty"`
	Source       *anthropicImage  `json:"source,omitempty"`
	ID           string           `json:"id,omitempty"`
	Name         string           `json:"name,omitempty"`
	Input        json.RawMessage  `json:"input,omitempty"`
	ToolUseID    string           `json:"tool_use_id,omitempty"`
	Content      []anthropicBlock `json:"content,omitempty"`
	IsError      bool             `json:"is_error,omitempty"`
	CacheControl *cacheControl    `json:"cache_control,omitempty"`
	// raw is the whole block, if it is sent as it came.
	raw json.RawMessage
}

// MarshalJSON returns the block as it came, or its members.
func (b anthropicBlock) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type members anthropicBlock
	return json.Marshal(members(b))
}

type anthropicImage struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// anthropicRequest returns the path and the body of a request. The end of each part that the next request repeats is
// marked, so that the provider finds its cached prefix: the tools, the instructions, and the last two messages of the
// user.
func anthropicRequest(m *ChatModel, r drawbridge.ModelRequest) (string, any) {
	b := anthropicBody{Model: m.info.Name, Stream: true}
	b.MaxTokens = cmp.Or(r.MaxOutput, min(cmp.Or(m.info.MaxOutput, defaultMaxOutput), maxDefaultOutput))
	searches := m.searches(r)
	if searches {
		b.Tools = []anthropicTool{{Type: anthropicSearchType, Name: anthropicSearchName}}
	}
	last := len(b.Tools) - 1 // of the tools that are part of the cached prefix
	for _, t := range m.tools(r) {
		b.Tools = append(b.Tools, anthropicTool{Name: wireName(t.Name), Description: t.Description,
			InputSchema: normaliseSchema(t.InputSchema, schemaDialect{}), DeferLoading: t.Deferred})
		if !t.Deferred {
			last = len(b.Tools) - 1
		}
	}
	ephemeral := &cacheControl{"ephemeral"}
	if last >= 0 {
		b.Tools[last].CacheControl = ephemeral
	}
	if r.Instructions != "" {
		b.System = []anthropicBlock{{Type: "text", Text: r.Instructions, CacheControl: ephemeral}}
	}
	if searches {
		r.Messages = pairedSearches(r.Messages)
	} else {
		r.Messages = withoutSearches(r.Messages)
	}
	history := cleanHistory(r.Messages)
	for _, message := range history {
		if blocks := m.anthropicBlocks(message, r.Tools); len(blocks) > 0 {
			b.Messages = append(b.Messages, anthropicMessage{message.Role, blocks})
		}
	}
	marked := 0
	for _, message := range slices.Backward(b.Messages) {
		if message.Role == drawbridge.UserRole && marked < 2 {
			message.Content[len(message.Content)-1].CacheControl = ephemeral
			marked++
		}
	}
	m.setAnthropicThinking(&b, r.Thinking, history)
	return "/messages", b
}

// anthropicBlocks returns the content of a message. tools are those of the request.
func (m *ChatModel) anthropicBlocks(message drawbridge.Message, tools []drawbridge.ToolDefinition) (all []anthropicBlock) {
	for _, p := range message.Parts {
		switch {
		case p.Text != "":
			all = append(all, anthropicBlock{Type: "text", Text: p.Text})
		case p.Image != nil:
			all = append(all, newAnthropicImage(*p.Image))
		case p.Thinking != nil:
			if m.isOwn(p.Thinking.Model) && len(p.Thinking.Provider) > 0 {
				all = append(all, anthropicBlock{raw: knownReferences(p.Thinking.Provider, tools)})
			}
		case p.ToolCall != nil:
			all = append(all, anthropicBlock{Type: "tool_use", ID: wireID(p.ToolCall.ID), Name: wireName(p.ToolCall.Name),
				Input: argumentsObject(p.ToolCall.Arguments)})
		case p.ToolResult != nil:
			all = append(all, newAnthropicResult(*p.ToolResult))
		}
	}
	return all
}

func newAnthropicImage(i drawbridge.Image) anthropicBlock {
	return anthropicBlock{Type: "image", Source: &anthropicImage{"base64", i.MIMEType, i.Data}}
}

func newAnthropicResult(r drawbridge.ToolResult) anthropicBlock {
	b := anthropicBlock{Type: "tool_result", ToolUseID: wireID(r.CallID), IsError: r.IsError}
	if strings.TrimSpace(r.Text) != "" {
		b.Content = append(b.Content, anthropicBlock{Type: "text", Text: r.Text})
	}
	for _, i := range r.Images {
		b.Content = append(b.Content, newAnthropicImage(i))
	}
	return b
}

// anthropicBudgets are the tokens for thinking at each level, for models that think within a budget.
var anthropicBudgets = map[drawbridge.ThinkingLevel]int{
	drawbridge.ThinkingMinimal: 1024, drawbridge.ThinkingLow: 4096, drawbridge.ThinkingMedium: 10000,
	drawbridge.ThinkingHigh: 20000, drawbridge.ThinkingXHigh: 32000,
}

// setAnthropicThinking sets how much the model thinks.
func (m *ChatModel) setAnthropicThinking(b *anthropicBody, level drawbridge.ThinkingLevel,
	history []drawbridge.Message) {
	s := m.thinking
	if !s.known {
		s = anthropicThinkingByName(m.info.Name)
	}
	switch {
	case level == "":
	case level == drawbridge.ThinkingOff:
		if s.off {
			b.Thinking = &anthropicThinking{Type: "disabled"}
		}
	case s.adaptive:
		b.Thinking = &anthropicThinking{Type: "adaptive", Display: "summarized"}
		if e := nearestEffort(level, s.efforts); e != "" {
			b.OutputConfig = &anthropicEffort{e}
		}
	case s.budget && !m.lacksOwnThinking(history):
		budget := anthropicBudgets[level]
		if most := m.info.MaxOutput; b.MaxTokens < budget+4096 && most > 0 {
			b.MaxTokens = min(budget+4096, most)
		}
		if budget = min(budget, b.MaxTokens/2); budget >= 1024 {
			b.Thinking = &anthropicThinking{Type: "enabled", BudgetTokens: budget}
		}
	}
}

// lacksOwnThinking reports whether the model is in a loop of calls in which a call was made without its own thinking.
// The provider then refuses a budget for thinking.
func (m *ChatModel) lacksOwnThinking(history []drawbridge.Message) bool {
	return slices.ContainsFunc(history[currentTurn(history):], func(message drawbridge.Message) bool {
		return message.Role == drawbridge.AssistantRole && len(message.ToolCalls()) > 0 &&
			!slices.ContainsFunc(message.Parts, func(p drawbridge.MessagePart) bool {
				return p.Thinking != nil && m.isOwn(p.Thinking.Model) && !isSearchPart(p)
			})
	})
}

// nearestEffort returns the step of efforts that is nearest to a level; empty without steps.
func nearestEffort(level drawbridge.ThinkingLevel, efforts []string) string {
	wanted := map[drawbridge.ThinkingLevel][]string{
		drawbridge.ThinkingOff:     {"none", "minimal", "low"},
		drawbridge.ThinkingMinimal: {"minimal", "low"},
		drawbridge.ThinkingLow:     {"low", "medium"},
		drawbridge.ThinkingMedium:  {"medium", "low", "high"},
		drawbridge.ThinkingHigh:    {"high", "medium"},
		drawbridge.ThinkingXHigh:   {"xhigh", "max", "high"},
	}[level]
	for _, e := range wanted {
		if slices.Contains(efforts, e) {
			return e
		}
	}
	return ""
}

// anthropicThinkingByName returns how a model thinks if the provider does not tell. Models before Claude 4.6 think
// within a budget.
func anthropicThinkingByName(name string) thinkingSupport {
	s := thinkingSupport{known: true, off: true}
	for _, old := range []string{"claude-3", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-5", "claude-sonnet-4-0",
		"claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-2", "claude-sonnet-4-2"} {
		if strings.Contains(name, old) {
			s.budget = !strings.Contains(name, "claude-3") || strings.Contains(name, "claude-3-7")
			return s
		}
	}
	if !strings.Contains(name, "claude") {
		s.budget = true // another model behind the same API
		return s
	}
	s.adaptive, s.efforts = true, []string{"low", "medium", "high"}
	return s
}

// parseAnthropicModels parses the list of models.
func parseAnthropicModels(raw []byte) (all []listedModel, ok bool) {
	type support struct{ Supported bool }
	var list struct {
		Data []struct {
			ID             string
			MaxInputTokens int       `json:"max_input_tokens"`
			MaxTokens      int       `json:"max_tokens"`
			CreatedAt      time.Time `json:"created_at"`
			Lifecycle      string
			Capabilities   *struct {
				Effort   map[string]json.RawMessage
				Image    *support `json:"image_input"`
				Thinking struct {
					Supported bool
					Types     map[string]support
				}
			}
		}
	}
	if json.Unmarshal(raw, &list) != nil || list.Data == nil {
		return nil, false
	}
	for _, d := range list.Data {
		if d.Lifecycle == "retired" {
			continue
		}
		l := listedModel{ModelFacts: config.ModelFacts{Name: d.ID, Window: d.MaxInputTokens, MaxOutput: d.MaxTokens},
			created: d.CreatedAt.Unix()}
		if c := d.Capabilities; c != nil {
			if c.Image != nil {
				l.Images = &c.Image.Supported
			}
			l.Thinking = &c.Thinking.Supported
			types := c.Thinking.Types
			l.thinking = thinkingSupport{known: true, adaptive: types["adaptive"].Supported,
				budget: types["enabled"].Supported, off: types["disabled"].Supported}
			for _, step := range []string{"low", "medium", "high", "xhigh", "max"} {
				var s support
				if json.Unmarshal(c.Effort[step], &s) == nil && s.Supported {
					l.thinking.efforts = append(l.thinking.efforts, step)
				}
			}
		}
		all = append(all, l)
	}
	return all, true
}
