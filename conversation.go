package drawbridge

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A Role is the sender of a [Message].
type Role string

// The roles. Instructions are not a message: see [ModelRequest.Instructions]. Results of tools are parts of a message
// of the user.
const (
	UserRole      Role = "user"
	AssistantRole Role = "assistant"
)

// A Message is one message of a conversation with a language model.
type Message struct {
	Role  Role          `json:"role"`
	Parts []MessagePart `json:"parts"`
}

// A MessagePart is one part of a Message. Exactly one member is set.
type MessagePart struct {
	Text       string      `json:"text,omitempty"`
	Image      *Image      `json:"image,omitempty"`
	Thinking   *Thinking   `json:"thinking,omitempty"`
	ToolCall   *ToolCall   `json:"toolCall,omitempty"`
	ToolResult *ToolResult `json:"toolResult,omitempty"`
	// Typed is the part of a person's Text that the person has typed; nil means all of it. Attached are the paths or
	// URIs of the files whose content is in Text. Models do not get them: they say how far values in the text are
	// trusted.
	Typed    *string  `json:"typed,omitempty"`
	Attached []string `json:"attached,omitempty"`
}

// An Image is a picture in a message.
type Image struct {
	MIMEType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

// Thinking is text that a model wrote for itself before its answer.
type Thinking struct {
	Text string `json:"text,omitempty"`
	// Provider is the object that only the provider of the model understands, such as a signature. It must be sent back
	// unchanged, and only to the model named by Model.
	Provider json.RawMessage `json:"provider,omitempty"`
	// Model is the model that wrote it, as "provider/name".
	Model string `json:"model,omitempty"`
}

// A ToolCall is a model's request to call a tool.
type ToolCall struct {
	// ID identifies the call in its conversation.
	ID   string   `json:"id"`
	Name CardName `json:"name"`
	// Arguments is what the model wrote. It may be invalid JSON.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Provider is the object that only the provider of the model understands; see [Thinking.Provider].
	Provider json.RawMessage `json:"provider,omitempty"`
	Model    string          `json:"model,omitempty"`
}

// toolCallJSON is the JSON form of a ToolCall.
type toolCallJSON struct {
	ID        string          `json:"id"`
	Name      CardName        `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Invalid has the arguments if they are not valid JSON.
	Invalid  string          `json:"invalidArguments,omitempty"`
	Provider json.RawMessage `json:"provider,omitempty"`
	Model    string          `json:"model,omitempty"`
}

// MarshalJSON returns c as a JSON object. Arguments that are not valid JSON become the string member
// "invalidArguments".
func (c ToolCall) MarshalJSON() ([]byte, error) {
	form := toolCallJSON{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Provider: c.Provider, Model: c.Model}
	if len(c.Arguments) > 0 && !json.Valid(c.Arguments) {
		form.Arguments, form.Invalid = nil, string(c.Arguments)
	}
	// The encoder that calls MarshalJSON decides about "<" and "&".
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(form)
	return b.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON returns.
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	var form toolCallJSON
	if err := json.Unmarshal(data, &form); err != nil {
		return err
	}
	*c = ToolCall{ID: form.ID, Name: form.Name, Arguments: form.Arguments, Provider: form.Provider, Model: form.Model}
	if form.Invalid != "" {
		c.Arguments = json.RawMessage(form.Invalid)
	}
	return nil
}

// A ToolResult is the answer to a ToolCall as the model sees it.
type ToolResult struct {
	CallID string   `json:"callId"`
	Name   CardName `json:"name"`
	Text   string   `json:"text"`
	Images []Image  `json:"images,omitempty"`
	// IsError reports that the call failed. The text says why.
	IsError bool `json:"isError,omitempty"`
}

// NewUserMessage returns a message of the user with one text.
func NewUserMessage(text string) Message {
	return Message{Role: UserRole, Parts: []MessagePart{{Text: text}}}
}

// Text returns the text parts of m, joined by blank lines. It omits what the model wrote for itself.
func (m Message) Text() string {
	var texts []string
	for _, part := range m.Parts {
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// ToolCalls returns the calls that m requests, in order.
func (m Message) ToolCalls() (calls []ToolCall) {
	for _, part := range m.Parts {
		if part.ToolCall != nil {
			calls = append(calls, *part.ToolCall)
		}
	}
	return calls
}
