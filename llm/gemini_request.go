package llm

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// geminiAPI is Google's Gemini API.
var geminiAPI = chatAPI{
	base: "https://generativelanguage.googleapis.com/v1beta", version: "/v1beta",
	addKey:    func(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) },
	request:   geminiRequest,
	reader:    func(a *answer) streamReader { return &geminiReader{answer: a} },
	wireName:  geminiName,
	listPath:  "/models?pageSize=1000",
	parseList: parseGeminiModels,
}

// A geminiBody is the body of a request.
type geminiBody struct {
	System   *geminiContent  `json:"systemInstruction,omitempty"`
	Contents []geminiContent `json:"contents"`
	Tools    []geminiTools   `json:"tools,omitempty"`
	Config   geminiConfig    `json:"generationConfig"`
}

type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

// A geminiPart is a part of content. One member is set, and the signature beside it.
type geminiPart struct {
	Text      string          `json:"text,omitempty"`
	Inline    *geminiBlob     `json:"inlineData,omitempty"`
	Call      *geminiCall     `json:"functionCall,omitempty"`
	Result    *geminiResult   `json:"functionResponse,omitempty"`
	Signature json.RawMessage `json:"thoughtSignature,omitempty"`
}

type geminiBlob struct {
	MIMEType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type geminiResult struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

type geminiTools struct {
	Functions []geminiFunction `json:"functionDeclarations"`
}

type geminiFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema"`
}

type geminiConfig struct {
	MaxOutputTokens int             `json:"maxOutputTokens,omitempty"`
	Thinking        *geminiThinking `json:"thinkingConfig,omitempty"`
}

type geminiThinking struct {
	IncludeThoughts bool   `json:"includeThoughts,omitempty"`
	Budget          *int   `json:"thinkingBudget,omitempty"`
	Level           string `json:"thinkingLevel,omitempty"`
}

// geminiRequest returns the path and the body of a request.
func geminiRequest(m *ChatModel, r drawbridge.ModelRequest) (string, any) {
	b := geminiBody{Contents: []geminiContent{}}
	b.Config = geminiConfig{MaxOutputTokens: r.MaxOutput, Thinking: m.geminiThinking(r.Thinking)}
	if r.Instructions != "" {
		b.System = &geminiContent{Parts: []geminiPart{{Text: r.Instructions}}}
	}
	var functions []geminiFunction
	for _, t := range m.tools(r) {
		functions = append(functions, geminiFunction{geminiName(t.Name), t.Description,
			normaliseSchema(t.InputSchema, geminiSchema)})
	}
	if functions != nil {
		b.Tools = []geminiTools{{functions}}
	}
	history := cleanHistory(r.Messages)
	turn := currentTurn(history)
	ids := map[string]string{} // the provider's own IDs of calls
	for i, message := range history {
		role := "user"
		if message.Role == drawbridge.AssistantRole {
			role = "model"
		}
		if parts := m.geminiParts(message, i >= turn, ids); len(parts) > 0 {
			b.Contents = append(b.Contents, geminiContent{role, parts})
		}
	}
	return "/models/" + url.PathEscape(m.info.Name) + ":streamGenerateContent?alt=sse", b
}

// geminiName returns a tool's name with a first character that Gemini accepts.
func geminiName(name drawbridge.CardName) string {
	wire := wireName(name)
	if c := wire[0]; c >= '0' && c <= '9' || c == '-' {
		return onlyWireCharacters("_"+wire, 64, "unknown")
	}
	return wire
}

// skipSignature is the signature with which Gemini accepts a call of another model. Models before Gemini 3 need none.
const skipSignature = `"skip_thought_signature_validator"`

// geminiParts returns the parts of a message. ids maps the IDs of calls to those that the provider gave them.
func (m *ChatModel) geminiParts(message drawbridge.Message, current bool, ids map[string]string) (all []geminiPart) {
	var images []geminiPart
	signed := false
	for _, p := range message.Parts {
		switch {
		case p.Text != "":
			all = append(all, geminiPart{Text: p.Text})
		case p.Image != nil:
			all = append(all, geminiPart{Inline: &geminiBlob{p.Image.MIMEType, p.Image.Data}})
		case p.ToolCall != nil:
			part := geminiPart{Call: &geminiCall{Name: geminiName(p.ToolCall.Name), Args: argumentsObject(p.ToolCall.Arguments)}}
			if m.isOwn(p.ToolCall.Model) {
				part.Call.ID = rawjson.GetString(p.ToolCall.Provider, "id")
				part.Signature = rawjson.Get(p.ToolCall.Provider, "thoughtSignature")
				ids[p.ToolCall.ID] = part.Call.ID
			}
			if signed = signed || len(part.Signature) > 0; !signed && current && geminiNeedsSignature(m.info.Name) {
				part.Signature, signed = json.RawMessage(skipSignature), true
			}
			all = append(all, part)
		case p.ToolResult != nil:
			r := p.ToolResult
			key := "output"
			if r.IsError {
				key = "error"
			}
			all = append(all, geminiPart{Result: &geminiResult{ids[r.CallID], geminiName(r.Name), map[string]string{key: r.Text}}})
			for _, i := range r.Images {
				images = append(images, geminiPart{Inline: &geminiBlob{i.MIMEType, i.Data}})
			}
		}
	}
	return append(all, images...)
}

func geminiNeedsSignature(name string) bool {
	return !strings.HasPrefix(name, "gemini-2") && !strings.HasPrefix(name, "gemini-1") && strings.HasPrefix(name, "gemini-")
}

// geminiThinking returns how much the model thinks; nil for a model that does not.
func (m *ChatModel) geminiThinking(level drawbridge.ThinkingLevel) *geminiThinking {
	if !m.mayThink() {
		return nil
	}
	t := &geminiThinking{IncludeThoughts: level != drawbridge.ThinkingOff}
	if level == "" {
		return t
	}
	if strings.HasPrefix(m.info.Name, "gemini-2") { // these think within a budget
		budget := map[drawbridge.ThinkingLevel]int{
			drawbridge.ThinkingOff: 0, drawbridge.ThinkingMinimal: 512, drawbridge.ThinkingLow: 2048,
			drawbridge.ThinkingMedium: 8192, drawbridge.ThinkingHigh: 20000, drawbridge.ThinkingXHigh: 24576,
		}[level]
		if strings.Contains(m.info.Name, "pro") {
			budget = max(budget, 128) // it cannot be turned off
		}
		t.Budget = &budget
		return t
	}
	steps := []string{"minimal", "low", "medium", "high"}
	if strings.Contains(m.info.Name, "pro") {
		steps = []string{"low", "medium", "high"}
	}
	t.Level = nearestEffort(level, steps)
	return t
}

// geminiThinks reports whether a model thinks, judging by its name.
func geminiThinks(name string) bool {
	return strings.HasPrefix(name, "gemini-") && !strings.HasPrefix(name, "gemini-1") && !strings.HasPrefix(name, "gemini-2.0")
}

// parseGeminiModels parses the list of models.
func parseGeminiModels(raw []byte) (all []listedModel, ok bool) {
	var list struct {
		Models []struct {
			Name     string
			Input    int      `json:"inputTokenLimit"`
			Output   int      `json:"outputTokenLimit"`
			Methods  []string `json:"supportedGenerationMethods"`
			Thinking *bool
		}
	}
	if json.Unmarshal(raw, &list) != nil || list.Models == nil {
		return nil, false
	}
	for _, d := range list.Models {
		name := strings.TrimPrefix(d.Name, "models/")
		if name == "" || d.Methods != nil && !slices.Contains(d.Methods, "generateContent") {
			continue
		}
		l := listedModel{ModelFacts: config.ModelFacts{Name: name, Window: d.Input, MaxOutput: d.Output}}
		thinks := d.Thinking != nil && *d.Thinking
		l.Thinking = &thinks
		all = append(all, l)
	}
	return all, true
}
