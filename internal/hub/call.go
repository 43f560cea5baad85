package hub

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/command"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A callLine is one line of the hub's response to the verb call. The last line is the result or the fault of the
// request; all other lines are events.
type callLine struct {
	*command.Event
	Result json.RawMessage `json:"result,omitempty"`
	Fault  *command.Fault  `json:"fault,omitempty"`
}

// isLast reports whether the line is the last line of the response.
func (c callLine) isLast() bool { return c.Result != nil || c.Fault != nil }

// Call sends a request of the command line to the hub, which carries out the request with the configuration in o. It
// calls event for each event of the request, such as a pending approval. The error is the fault of the request, or
// ErrNoHub if no hub runs or the hub is too old for this verb. If ctx ends, the hub cancels the request. If the hub
// ends during a tool call, the outcome is unknown: the error is a fault with Ambiguous set.
func Call(ctx context.Context, o Options, r command.Request, event func(command.Event)) (json.RawMessage, error) {
	said := o.newHello(wantCall)
	said.Request = &r
	var last callLine
	err := requestLines(ctx, o, said, func(text []byte) error {
		var line callLine
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		if line.isLast() {
			last = line
			return errAnswered
		}
		if line.Event != nil {
			event(*line.Event)
		}
		return nil
	})
	switch {
	case errors.Is(err, errAnswered):
		return last.Result, last.Fault.Decode()
	case isUnknownVerb(err):
		return nil, errNoHub
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, unansweredFault(r, context.Cause(ctx), "")
	}
	return nil, unansweredFault(r, errors.New("the hub ended before it answered"), "drawbridge ps")
}

// unansweredFault returns the fault of a request that got no response. For a tool call it is ambiguous, because the
// call may have taken effect.
func unansweredFault(r command.Request, why error, next string) error {
	step := r.Method
	if name := r.Name(); name != "" {
		step += " " + name
	}
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.Transient, Step: step, Err: why, Next: next,
		Ambiguous: r.Method == mcp.MethodToolsCall || r.Method == command.MethodAgentCall}
}

// isUnknownVerb reports whether err is the error with which a hub of an older release refuses a verb that it does not
// know.
func isUnknownVerb(err error) bool {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	return ok && f.Code == drawbridge.InvalidInput && strings.HasPrefix(f.Step, unknownVerbText)
}

// sendCall handles the verb call: it carries out the request and sends its events and its result.
func (h *hub) sendCall(ctx context.Context, said hello, l *lineConn) error {
	if said.Request == nil {
		return l.sendWelcome(0, invalidInputFault("read the request to the hub: call needs a request"))
	}
	t, err := h.borrowGateway(ctx, said)
	if err != nil {
		return h.refuseShim(ctx, l, err)
	}
	defer h.returnGateway(t)
	if err := l.sendWelcome(os.Getpid(), nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h.cancelAtClose(l, cancel)
	var write sync.Mutex // calls of an agent send events side by side
	event := func(e command.Event) {
		write.Lock()
		defer write.Unlock()
		if l.writeJSON(callLine{Event: &e}) != nil {
			cancel() // the peer is gone
		}
	}
	result, ok, err := h.agents.Run(ctx, t.gateway, *said.Request, event)
	if !ok {
		result, err = command.Run(ctx, t.gateway, said.Dir, *said.Request, event)
	}
	if err != nil {
		err = l.writeJSON(callLine{Fault: command.EncodeFault(err)})
	} else {
		err = l.writeLine(resultLine(result))
	}
	_ = l.conn.Close()
	return err
}

// resultLine returns the last line of the response to the verb call. It contains the bytes of the result unchanged,
// except that spaces replace line breaks, which would end the line.
func resultLine(result json.RawMessage) []byte {
	if len(result) == 0 {
		result = json.RawMessage("null")
	}
	line := append([]byte(`{"result":`), result...)
	for i, b := range line {
		if b == '\n' || b == '\r' {
			line[i] = ' '
		}
	}
	return append(line, '}')
}

// cancelAtClose calls cancel when the peer closes the connection, or sends another line. It may be used only if the
// peer has nothing more to send.
func (h *hub) cancelAtClose(l *lineConn, cancel context.CancelFunc) {
	h.serving.Go(func() {
		defer cancel()
		_, _ = l.in.Next()
	})
}
