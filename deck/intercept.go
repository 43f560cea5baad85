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

// An Interceptor is called before and after calls of tools, and can change or block them. When the guards have allowed
// a call, the Before methods of all interceptors are called in order. Each of them can change the arguments, block the
// call, or do nothing. If arguments were changed, the guards decide again. After that the call may need an approval, is
// recorded in the audit, and is sent. Then the After methods are called in reverse order, and each of them can change
// the result. The audit records each change.
//
// If an interceptor returns an error or panics, the current call fails, because the interceptor may have a protective
// purpose. Other calls are not affected. The methods are called from several goroutines. They must return when ctx
// ends, and must not retain their arguments.
type Interceptor interface {
	// Name identifies the interceptor in the audit and in errors.
	Name() string
	// Intercepts reports whether Before and After must be called for calls of this tool.
	Intercepts(spec drawbridge.Spec) bool
	// Before is called before the call is sent. Its result may change the arguments or block the call.
	Before(ctx context.Context, c *InterceptedCall) (Interception, error)
	// After is called when the call has succeeded or failed, unless this interceptor's Before blocked the call or
	// returned an error. It returns a new result, which must be a JSON object, or nil to leave the result unchanged. If
	// the call failed, the returned result is ignored.
	After(ctx context.Context, c *InterceptedCall, o CallOutcome) (json.RawMessage, error)
}

// An InterceptedCall is the data of a call that an [Interceptor] receives.
type InterceptedCall struct {
	Caller drawbridge.Caller
	Spec   drawbridge.Spec
	// Arguments are the arguments under their listed names, with the changes of the interceptors that were called
	// before. Nil means that the call has no arguments.
	Arguments json.RawMessage
}

// An Interception is the decision of an [Interceptor] on a call. The zero value leaves the call unchanged.
type Interception struct {
	// Arguments is a JSON object that replaces the arguments of the call; nil leaves them unchanged.
	Arguments json.RawMessage
	// Blocked is set to block the call. It is the reason that the caller gets; if it is empty, the call is not blocked.
	Blocked string
}

// A CallOutcome is the outcome of a call: a result or an error.
type CallOutcome struct {
	Result json.RawMessage
	Err    error
}

// enterInterceptors calls the Before methods of the interceptors for a call of a tool. It refuses the call if an
// interceptor blocks it, returns an error, or returns arguments that are not a JSON object.
func (d *Deck) enterInterceptors(ctx context.Context, s *callState) error {
	if len(d.interceptors) == 0 || s.target.kind != tools.word || s.target.searches {
		return nil
	}
	s.intercepted = InterceptedCall{Caller: withoutProof(s.call.Caller), Spec: s.target.spec, Arguments: s.params.Arguments}
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

// useArguments replaces the arguments of the call with those of the interceptors, and asks the guards again.
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

// leaveInterceptors calls the After methods of the entered interceptors after a successful call, in reverse order. If
// one of them fails, the caller gets a fault instead of the result.
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

// leaveAfterFailure calls the After methods of the entered interceptors after a failed call, in reverse order. Their
// results are ignored, and their errors are only logged.
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

// recoverInterceptor must be deferred. It recovers from a panic of an interceptor, logs it, and sets *err to an error
// that does not contain the panic value.
func (d *Deck) recoverInterceptor(i Interceptor, err *error) {
	if p := recover(); p != nil {
		d.log.Error("an interceptor panicked", "interceptor", i.Name(), "panic", panicMessage(p), "at", panicLocation())
		*err = errors.New("it panicked")
	}
}

// refuseIntercepted returns the error for a call that the interceptor i blocked, or whose Before method failed. why is
// the reason.
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
