package upstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/oauth"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

var (
	errNotRunning = errors.New("the fleet is not running")
	errRemoved    = errors.New("the server was removed from the fleet")
	errCallerGone = errors.New("the caller's session has ended")
)

func unknownServerFault(id drawbridge.ServerID) error {
	return &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("server %q", string(id)), Err: errors.New("not in the fleet"),
	}
}

// mountFault returns the fault for a server that could not be mounted.
func (e *managedServer) mountFault(step string, err error) *drawbridge.Fault {
	f := &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: transport.FaultCodeOf(err),
		Step: fmt.Sprintf("mount %s: %s", e.config.ID, step), Err: e.redactor.redactError(err),
	}
	missing, noKey := errors.AsType[missingKeyError](err)
	switch {
	case noKey:
		f.Next = "store it with drawbridge secret set " + missing.credential
	case f.Code == drawbridge.AuthFailure:
		f.Next = oauth.SignInRequired(err).Advice(e.config.ID)
	case e.config.CommandLineProblem() != "" && process.StartAdvice(err) != "":
		f.Next = e.config.CommandLineProblem()
	case e.config.Command != "" && process.StartAdvice(err) != "":
		f.Next = process.StartAdvice(err)
	}
	return f
}

// unavailableFault returns the fault for a call to a server that is not available. last is the cause; it may be nil.
func (e *managedServer) unavailableFault(step string, last error) *drawbridge.Fault {
	err, code := fmt.Errorf("server %s is unavailable", e.config.ID), drawbridge.Transient
	if last != nil {
		if was := transport.FaultCodeOf(last); was == drawbridge.AuthFailure || was == drawbridge.PolicyBlocked {
			code, last = was, transport.WithoutNextStep(last)
		}
		err = fmt.Errorf("server %s is unavailable: %w", e.config.ID, last)
	}
	f := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: code, Step: step, Err: err}
	switch {
	case code == drawbridge.AuthFailure:
		f.Next = oauth.SignInRequired(last).AdviceWithURL(e.config.ID)
	case code.Retryable():
		f.Next = "retry"
	}
	return f
}

// callFault returns the fault for a call that was sent and ended with err.
func (e *managedServer) callFault(step string, err error) *drawbridge.Fault {
	if reply, ok := errors.AsType[*transport.ResponseError](err); ok {
		return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: reply.FaultCode(), Step: step,
			Err: e.redactor.redactError(err), Raw: reply.Object}
	}
	var limit *callTimeoutError
	f := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: transport.FaultCodeOf(err), Step: step,
		Err: e.redactor.redactError(err)}
	switch {
	case f.Code == drawbridge.AuthFailure:
		f.Next = oauth.SignInRequired(err).AdviceWithURL(e.config.ID)
	case errors.Is(err, transport.ErrLost), errors.As(err, &limit), transport.IsMalformed(err):
		f.Ambiguous = true
		f.Next = "it may have taken effect: check before repeating it"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.Ambiguous = true
	}
	return f
}
