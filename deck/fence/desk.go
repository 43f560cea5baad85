package fence

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Held is an answer that its caller is not given.
type Held struct {
	// Principal called Card of Server by Method.
	Principal, Card, Method string
	Server                  drawbridge.ServerID
	// Rules are those that it met, Result is all of it, as the server sent it but for URIs that are known by others here.
	Rules  []string
	Result json.RawMessage
}

// A Holder keeps answers for a person to read.
type Holder interface {
	// Hold keeps an answer, and gives the name by which a person finds it. After an error it is lost, and not given to its
	// caller all the same.
	Hold(ctx context.Context, h Held) (id string, err error)
}

// A Desk is where the answers of servers pass on their way to who called. All but Always may be nil.
type Desk struct {
	// Always says which callers are given answers fenced of servers whose rows do not say.
	Always func(drawbridge.Caller) bool
	Look   Look
	Holder Holder
	// Note has on record what was done to an answer of a server's tool.
	Note func(server drawbridge.ServerID, tool, rule, why string)
	Log  *slog.Logger
}

// A Pass is what is done to one answer. The zero Pass does nothing.
type Pass struct {
	desk           *Desk
	call           drawbridge.Call
	server         drawbridge.ServerID
	card, tool     string
	fenced, barred bool
}

// Pass says what is done to the answer to a call of a server's tool, which callers know as card: row is what the server's row says
// of fences, see Wanted; hold says that its answers are held back in which rules are met.
func (d *Desk) Pass(call drawbridge.Call, server drawbridge.ServerID, card, tool string, row *bool, hold bool) Pass {
	return Pass{d, call, server, card, tool, Wanted(call.Caller, row, d.Always(call.Caller)), hold}
}

// Take gives an answer as its caller is given it. The error is a *drawbridge.Fault, for one that is held back.
func (p Pass) Take(ctx context.Context, result json.RawMessage) (json.RawMessage, error) {
	if !p.fenced && !p.barred {
		return result, nil
	}
	f := New(p.server, p.tool, p.desk.Look)
	shown := f.Result(p.call.Method, result)
	if p.barred {
		f.structured(result)
	}
	switch met := f.Met(); {
	case len(met) == 0:
	case p.barred:
		p.desk.Note(p.server, p.tool, "held", "its answer met "+strings.Join(met, ", "))
		return nil, p.hold(ctx, met, result)
	default:
		p.desk.Note(p.server, p.tool, "flagged", "its answer met "+strings.Join(met, ", "))
	}
	if !p.fenced {
		return result, nil
	}
	return shown, nil
}

// hold keeps an answer back. The fault says what was met and where a person reads it, and nothing of what the server said.
func (p Pass) hold(ctx context.Context, met []string, result json.RawMessage) error {
	f := &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: fmt.Sprintf("%s %.200s", p.call.Method, p.card),
		Err:  fmt.Errorf("the call was made, and its answer is held back: it met %s", strings.Join(met, ", ")),
		Next: "do not call this again: the answer could not be kept, and the log of the gateway says why",
	}
	if p.desk.Holder == nil {
		return f
	}
	h := Held{Principal: p.call.Caller.Principal, Card: p.card, Method: p.call.Method, Server: p.server, Rules: met, Result: result}
	id, err := p.desk.Holder.Hold(context.WithoutCancel(ctx), h)
	if err != nil {
		p.desk.Log.Error("an answer that is held back could not be kept", "server", p.server, "card", p.card, "err", err)
		return f
	}
	f.Next = "do not call this again: a person can read the answer with drawbridge shield results " + id
	return f
}

// structured looks at the texts of a tool's structured content, names among them, and at those of its "_meta".
func (f *Fence) structured(result json.RawMessage) {
	for m := range wire.Members(result) {
		switch {
		case m.Is("structuredContent"), m.Is("_meta"):
			f.each(m.Value)
		case m.Is("result"): // of a task
			f.structured(m.Value)
		}
	}
}

func (f *Fence) each(value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	switch value[0] {
	case '{':
		for m := range wire.Members(value) {
			f.each(m.Name)
			f.each(m.Value)
		}
	case '[':
		for element := range wire.Elements(value) {
			f.each(element)
		}
	case '"':
		if text, ok := wire.Text(value); ok {
			f.read(text)
		}
	}
}
