package deck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An Interceptor stands around calls of tools. Before a call is approved, recorded and sent, the interceptors are entered
// in order, and each may continue, rewrite the arguments, or block the call. After it they are left in reverse order, and
// each may rewrite the result. The guards have allowed the call before the first is entered, and decide again on
// arguments that were rewritten. Each rewriting is on record.
//
// An error or a panic of an interceptor fails that call, and no other one: an interceptor may be there to protect
// something. Its methods are called from several goroutines, must honour ctx, and must not keep what they are given.
type Interceptor interface {
	// Name identifies the interceptor on record and in errors.
	Name() string
	// Intercepts reports whether it wants the calls of a tool.
	Intercepts(spec drawbridge.Spec) bool
	// Before is called before the call.
	Before(ctx context.Context, c *InterceptedCall) (Interception, error)
	// After is called after the call if Before let it continue. It returns the result, a JSON object; nil keeps the
	// result. What it returns for a call that failed is ignored.
	After(ctx context.Context, c *InterceptedCall, o CallOutcome) (json.RawMessage, error)
}

// An InterceptedCall is a call as an [Interceptor] sees it.
type InterceptedCall struct {
	Caller drawbridge.Caller
	Spec   drawbridge.Spec
	// Arguments are the arguments under the names that the caller knows, as the interceptors before left them. Nil means
	// that the call has none.
	Arguments json.RawMessage
}

// An Interception is what an [Interceptor] wants done to a call. The zero value lets it continue.
type Interception struct {
	// Arguments, a JSON object, replace those of the call; nil keeps them.
	Arguments json.RawMessage
	// Blocked is the reason for the caller why the call is not made; empty lets it continue.
	Blocked string
}

// A CallOutcome is how a call ended: with a result or an error.
type CallOutcome struct {
	Result json.RawMessage
	Err    error
}

// enterInterceptors enters the interceptors. It refuses a call that one of them blocks or fails.
func (d *Deck) enterInterceptors(ctx context.Context, s *callState) error {
	if len(d.interceptors) == 0 || s.target.kind != tools.word || s.target.findTools {
		return nil
	}
	s.intercepted = InterceptedCall{Caller: s.call.Caller, Spec: s.target.spec, Arguments: s.params.Arguments}
	c, rewritten := &s.intercepted, false
	for _, i := range d.interceptors {
		if !i.Intercepts(c.Spec) {
			continue
		}
		what, err := d.enterInterceptor(ctx, i, c)
		switch {
		case err != nil:
			return s.refuseIntercepted(i, err.Error())
		case what.Blocked != "":
			return s.refuseIntercepted(i, what.Blocked)
		case what.Arguments != nil && !bytes.Equal(what.Arguments, c.Arguments):
			if err := checkObject(what.Arguments); err != nil {
				return s.refuseIntercepted(i, fmt.Sprintf("its arguments are not usable: %v", err))
			}
			s.log.NoteRewriting(i.Name(), "arguments", c.Arguments)
			c.Arguments, rewritten = what.Arguments, true
		}
		s.entered = append(s.entered, i)
	}
	if !rewritten {
		return nil
	}
	return d.useArguments(ctx, s, c.Arguments)
}

// useArguments puts arguments in place of the caller's, and asks the guards about them.
func (d *Deck) useArguments(ctx context.Context, s *callState, arguments json.RawMessage) error {
	s.call.Params = rawjson.Apply(s.call.Params, rawjson.Put(arguments, "arguments"))
	s.params.Arguments = arguments
	if name, ok := findRenamedArgument(s.call.Params, s.target.ownArguments); ok {
		s.target.paramsErr = fmt.Errorf("the rewritten arguments have %q, which has another name here", clipText(name))
	}
	return d.checkGuards(ctx, s)
}

func (d *Deck) enterInterceptor(ctx context.Context, i Interceptor, c *InterceptedCall) (what Interception, err error) {
	defer d.recoverInterceptor(i, &err)
	return i.Before(ctx, c)
}

// leaveInterceptors leaves the interceptors after a call that succeeded.
func (d *Deck) leaveInterceptors(ctx context.Context, s *callState) error {
	for len(s.entered) > 0 {
		i := s.entered[len(s.entered)-1]
		s.entered = s.entered[:len(s.entered)-1]
		result, err := d.leaveInterceptor(ctx, i, s, CallOutcome{Result: s.result.Raw})
		if err == nil && result != nil && !bytes.Equal(result, s.result.Raw) {
			if err = checkObject(result); err == nil {
				s.log.NoteRewriting(i.Name(), "result", s.result.Raw)
				s.result.Raw = result
			}
		}
		if err != nil {
			return &drawbridge.Fault{
				Kind: drawbridge.Backend, Code: drawbridge.ServerError, Ambiguous: true, Err: err,
				Step: "the call was made, and interceptor " + clipText(i.Name()) + " withholds its result",
			}
		}
	}
	return nil
}

// leaveAfterFailure leaves the interceptors of a call that failed. They cannot change that.
func (d *Deck) leaveAfterFailure(ctx context.Context, s *callState, failure error) {
	for _, i := range slices.Backward(s.entered) {
		if _, err := d.leaveInterceptor(ctx, i, s, CallOutcome{Err: failure}); err != nil {
			d.log.Warn("an interceptor failed after a failed call", "interceptor", i.Name(), "err", err)
		}
	}
}

func (d *Deck) leaveInterceptor(ctx context.Context, i Interceptor, s *callState,
	o CallOutcome) (result json.RawMessage, err error) {
	defer d.recoverInterceptor(i, &err)
	return i.After(ctx, &s.intercepted, o)
}

// recoverInterceptor turns a panic into an error without its value.
func (d *Deck) recoverInterceptor(i Interceptor, err *error) {
	if p := recover(); p != nil {
		d.log.Error("an interceptor panicked", "interceptor", i.Name(), "panic", panicMessage(p), "at", panicLocation())
		*err = errors.New("it panicked")
	}
}

// refuseIntercepted refuses a call that an interceptor blocked or failed.
func (s *callState) refuseIntercepted(i Interceptor, why string) error {
	verdict := drawbridge.Verdict{Rule: "interceptor " + clipText(i.Name()), Reason: why}
	return s.refuse(verdict, refusalFault(s.call.Method, s.target.spec, verdict,
		fmt.Errorf("blocked by %s: %s", clipText(i.Name()), why)))
}

// checkObject returns an error unless raw is one JSON object.
func checkObject(raw json.RawMessage) error {
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return errors.New("not a JSON object")
	}
	return rawjson.Valid(raw)
}
