package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/exchange"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/bridge/process"
	"github.com/drawbridge-mcp/drawbridge/bridge/signin"
)

var (
	errNotRunning = errors.New("the fleet is not running")
	errRemoved    = errors.New("the server was taken out of the fleet")
	errGone       = errors.New("the caller's session has ended")
)

func unknown(id drawbridge.ServerID) error {
	return &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("server %q", string(id)), Err: errors.New("not in the fleet"),
	}
}

// mountFault is why a server could not be mounted.
func (e *endpoint) mountFault(step string, err error) *drawbridge.Fault {
	f := &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: link.CodeOf(err),
		Step: fmt.Sprintf("mount %s: %s", e.row.ID, step), Err: e.veil.OverError(err),
	}
	switch {
	case f.Code == drawbridge.AuthFailure:
		f.Next = signin.Needed(err).Next(e.row.ID)
	case e.row.Command != "" && process.Next(err) != "":
		f.Next = process.Next(err)
	}
	return f
}

// unavailable answers a call for a server that is away and not about to come back in this moment.
func (e *endpoint) unavailable(step string, last error) *drawbridge.Fault {
	err, code := fmt.Errorf("server %s is unavailable", e.row.ID), drawbridge.Transient
	if last != nil {
		if was := link.CodeOf(last); was == drawbridge.AuthFailure || was == drawbridge.PolicyBlocked {
			code, last = was, link.WithoutNext(last)
		}
		err = fmt.Errorf("server %s is unavailable: %w", e.row.ID, last)
	}
	f := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: code, Step: step, Err: err}
	switch {
	case code == drawbridge.AuthFailure:
		f.Next = signin.Needed(last).NextOpen(e.row.ID)
	case code.Retryable():
		f.Next = "retry"
	}
	return f
}

// callFault is why a call that was on its way has no result. sent says that the server may have it.
func (e *endpoint) callFault(step string, err error) *drawbridge.Fault {
	if reply, ok := errors.AsType[*link.ReplyError](err); ok {
		return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: reply.FaultCode(), Step: step, Err: e.veil.OverError(err), Raw: reply.Object}
	}
	var limit *exchange.LimitError
	f := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: link.CodeOf(err), Step: step, Err: e.veil.OverError(err)}
	switch {
	case f.Code == drawbridge.AuthFailure:
		f.Next = signin.Needed(err).NextOpen(e.row.ID)
	case errors.Is(err, link.ErrLost), errors.As(err, &limit):
		f.Ambiguous = true
		f.Next = "it may have taken effect: look before it is repeated"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.Ambiguous = true
	}
	return f
}
