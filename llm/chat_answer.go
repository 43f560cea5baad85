package llm

import (
	"crypto/rand"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// maxAnswerParts is the maximum number of parts of an answer.
	maxAnswerParts = 4096
	// maxCallName is the maximum length of a tool's name, as a model writes it.
	maxCallName = 256
	// maxCallID is the maximum length of the ID of a call; providers accept 64 characters.
	maxCallID = 64
)

// An answerPart is a part of an answer that is still arriving.
type answerPart struct {
	kind partKind
	text strings.Builder // for a call, its arguments
	// id and name are those of a call. provider is the object that is sent back.
	id, name string
	provider json.RawMessage
}

// A partKind is the kind of an answerPart.
type partKind int

const (
	textPart partKind = iota
	thinkingPart
	callPart
	// searchPart is a part of the provider's own search for tools. Its text is not shown.
	searchPart
)

// An answer collects the parts of an answer as they arrive.
type answer struct {
	model string
	// cardName returns the name of the tool that the model calls by a name on the wire.
	cardName func(wire string) drawbridge.CardName
	usedIDs  map[string]bool
	emit     func(drawbridge.ModelDelta)
	parts    []*answerPart
	usage    drawbridge.ModelUsage
	stop     drawbridge.StopReason // empty until the model has stopped
}

// add adds a part. It returns an error if the answer has too many parts.
func (a *answer) add(kind partKind) (*answerPart, error) {
	if len(a.parts) >= maxAnswerParts {
		return nil, errTooLarge
	}
	p := &answerPart{kind: kind}
	a.parts = append(a.parts, p)
	return p, nil
}

// last returns the last part if it is of that kind, and otherwise a new one.
func (a *answer) last(kind partKind) (*answerPart, error) {
	if n := len(a.parts); n > 0 && a.parts[n-1].kind == kind {
		return a.parts[n-1], nil
	}
	return a.add(kind)
}

// write appends text to a part, and emits it unless it is an argument.
func (a *answer) write(p *answerPart, text string) {
	if text == "" {
		return
	}
	p.text.WriteString(text)
	switch p.kind {
	case textPart:
		a.emit(drawbridge.ModelDelta{Text: text})
	case thinkingPart:
		a.emit(drawbridge.ModelDelta{Thinking: text})
	}
}

// writeText appends to the last part if it is of that kind, and otherwise to a new one.
func (a *answer) writeText(kind partKind, text string) error {
	if text == "" {
		return nil
	}
	p, err := a.last(kind)
	if err == nil {
		a.write(p, text)
	}
	return err
}

// setCall sets the ID and the name of a call, and emits the name.
func (a *answer) setCall(p *answerPart, id, name string) {
	p.id, p.name = id, name
	if name != "" {
		a.emit(drawbridge.ModelDelta{Call: a.callName(name)})
	}
}

func (a *answer) callName(wire string) drawbridge.CardName {
	if len(wire) > maxCallName {
		wire = strings.ToValidUTF8(wire[:maxCallName], "")
	}
	return a.cardName(wire)
}

// response returns the answer. It returns an error if the model has not stopped, or if it stopped without an answer.
func (a *answer) response() (drawbridge.ModelResponse, error) {
	if a.stop == "" {
		return drawbridge.ModelResponse{}, errCut
	}
	r := drawbridge.ModelResponse{Message: drawbridge.Message{Role: drawbridge.AssistantRole}, Stop: a.stop,
		Usage: a.usage, Model: a.model}
	for _, p := range a.parts {
		if part, ok := a.part(p); ok {
			r.Message.Parts = append(r.Message.Parts, part)
		}
	}
	calls := len(r.Message.ToolCalls())
	switch {
	case calls > 0 && r.Stop == drawbridge.StopEnd:
		r.Stop = drawbridge.StopToolCalls // some endpoints say "stop"
	case calls == 0 && r.Stop == drawbridge.StopToolCalls:
		r.Stop = drawbridge.StopEnd
	}
	if r.Stop == drawbridge.StopEnd && len(r.Message.Parts) == 0 && a.usage.Output == 0 {
		return drawbridge.ModelResponse{}, errEmpty
	}
	return r, nil
}

// part returns a part of the message. The second result is false for a part without content.
func (a *answer) part(p *answerPart) (drawbridge.MessagePart, bool) {
	text := strings.ToValidUTF8(p.text.String(), "\uFFFD")
	switch p.kind {
	case searchPart:
		return drawbridge.MessagePart{Thinking: &drawbridge.Thinking{Provider: p.provider, Model: a.model}}, len(p.provider) > 0
	case thinkingPart:
		return drawbridge.MessagePart{Thinking: &drawbridge.Thinking{Text: text, Provider: p.provider, Model: a.model}},
			text != "" || len(p.provider) > 0
	case callPart:
		call := &drawbridge.ToolCall{ID: a.uniqueID(p.id), Name: a.callName(p.name), Arguments: json.RawMessage(text)}
		if len(p.provider) > 0 {
			call.Provider, call.Model = p.provider, a.model
		}
		return drawbridge.MessagePart{ToolCall: call}, true
	}
	return drawbridge.MessagePart{Text: text}, text != ""
}

// uniqueID returns id, or a new ID if id is empty, too long or already used in the conversation. Some servers number
// the calls of each answer from 0.
func (a *answer) uniqueID(id string) string {
	if id == "" || len(id) > maxCallID || a.usedIDs[id] || strings.ToValidUTF8(id, "") != id {
		id = "call_" + rand.Text()
	}
	a.usedIDs[id] = true
	return id
}

// finish returns the answer; it is the method of streamReader for all readers that embed an answer.
func (a *answer) finish() (drawbridge.ModelResponse, error) { return a.response() }
