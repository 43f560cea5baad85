package command

import (
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Fault is an error as the hub sends it to a command, in JSON. Text is the text of the fault's cause, or the whole
// text of an error that is not a *drawbridge.Fault.
type Fault struct {
	Kind      drawbridge.FaultKind `json:"kind,omitempty"`
	Code      drawbridge.FaultCode `json:"code,omitempty"`
	Step      string               `json:"step,omitempty"`
	Text      string               `json:"text,omitempty"`
	Next      string               `json:"next,omitempty"`
	Ambiguous bool                 `json:"ambiguous,omitempty"`
	Raw       json.RawMessage      `json:"raw,omitempty"`
}

// EncodeFault converts an error to a Fault. It returns nil for nil.
func EncodeFault(err error) *Fault {
	if err == nil {
		return nil
	}
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok {
		return &Fault{Text: err.Error()}
	}
	one := &Fault{Kind: f.Kind, Code: f.Code, Step: f.Step, Next: f.Next, Ambiguous: f.Ambiguous, Raw: f.Raw}
	if f.Err != nil {
		one.Text = f.Err.Error()
	}
	return one
}

// Decode returns the error that EncodeFault encoded: a *drawbridge.Fault, or another error with the same text. It
// returns nil for nil.
func (f *Fault) Decode() error {
	switch {
	case f == nil:
		return nil
	case f.Code == "":
		return errors.New(f.Text)
	}
	out := &drawbridge.Fault{Kind: f.Kind, Code: f.Code, Step: f.Step, Next: f.Next, Ambiguous: f.Ambiguous, Raw: f.Raw}
	if f.Text != "" {
		out.Err = errors.New(f.Text)
	}
	return out
}
