package interop

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// MaxParkedCalls is the default maximum number of parked calls of one principal.
const MaxParkedCalls = 256

// NewParkedCalls returns a ParkedCalls without calls. A call is cancelled if its caller sends no answers within wait.
// most is the maximum number of parked calls of one principal.
func NewParkedCalls(wait time.Duration, most int) *ParkedCalls {
	return &ParkedCalls{timeout: wait, maxPerPrincipal: most, byHandle: map[string]*parkedCall{},
		perPrincipal: map[string]int{}}
}

// handlePrefix is the prefix of a requestState that is the handle of a parked call. The rest of the handle is random.
const handlePrefix = "drawbridge/parked:"

// ParkedCalls holds the calls of stateless callers that wait for the callers' answers to questions. Each call has a
// handle that can be used once. Create a ParkedCalls with NewParkedCalls.
type ParkedCalls struct {
	timeout         time.Duration
	maxPerPrincipal int

	mu           sync.Mutex
	closed       bool
	byHandle     map[string]*parkedCall
	perPrincipal map[string]int // number of parked calls by principal
}

// A parkedCall is a call with the timer that cancels it.
type parkedCall struct {
	*statelessCall
	timer *time.Timer
}

// ParkedCallHandle returns the handle in the params of a call, if there is one.
func ParkedCallHandle(params json.RawMessage) (handle string, ok bool) {
	// The search is faster than parsing, and almost no call has a handle. The search text has no slash, because some
	// encoders escape it.
	if !bytes.Contains(params, []byte("parked")) {
		return "", false
	}
	state, ok := rawjson.DecodeString(rawjson.Get(params, "requestState"))
	if !ok || !strings.HasPrefix(state, handlePrefix) {
		return "", false
	}
	return state, true
}

// park stores a call until its caller sends answers. It returns the result that asks the caller for the answers and
// contains the call's handle. It returns false if the principal has too many parked calls, or if ParkedCalls is closed.
func (p *ParkedCalls) park(t *statelessCall) (drawbridge.Result, bool) {
	handle := handlePrefix + rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.perPrincipal[t.principal] >= p.maxPerPrincipal {
		return drawbridge.Result{}, false
	}
	p.perPrincipal[t.principal]++
	p.byHandle[handle] = &parkedCall{t, time.AfterFunc(p.timeout, func() { p.expire(handle) })}
	return t.inputRequiredResult(handle), true
}

// remove removes and returns the call with a handle; nil if there is none. The caller must hold mu.
func (p *ParkedCalls) remove(handle string) *statelessCall {
	s := p.byHandle[handle]
	if s == nil {
		return nil
	}
	s.timer.Stop()
	delete(p.byHandle, handle)
	if p.perPrincipal[s.principal]--; p.perPrincipal[s.principal] == 0 {
		delete(p.perPrincipal, s.principal)
	}
	return s.statelessCall
}

// expire cancels a call whose caller did not send answers in time.
func (p *ParkedCalls) expire(handle string) {
	p.mu.Lock()
	t := p.remove(handle)
	p.mu.Unlock()
	if t != nil {
		t.cancel(errors.New("the caller did not come back with answers"))
	}
}

// Close cancels all parked calls. After Close no more calls are parked.
func (p *ParkedCalls) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for handle := range p.byHandle {
		p.remove(handle).cancel(errParkingClosed)
	}
}

// Len returns the number of parked calls.
func (p *ParkedCalls) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byHandle)
}

var errParkingClosed = errors.New("shutting down")

// ResumeCall passes the answers in a new request to the parked call with the handle. It returns the call's next result,
// as BeginCall does. The error is a *drawbridge.Fault with the code InvalidInput for an unknown handle, for a handle of
// another server or principal, or for malformed answers.
func (p *ParkedCalls) ResumeCall(ctx context.Context, server drawbridge.ServerID, step, handle string,
	call drawbridge.Call) (drawbridge.Result, error) {
	t, err := p.takeParked(server, handle, call)
	if err != nil {
		return drawbridge.Result{}, &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput, Step: step, Err: err,
		}
	}
	return t.waitForOutcome(ctx, p, call)
}

var errNotParked = errors.New("requestState: no call waits for it: it was used before, or the call has ended")

// takeParked removes and returns the call with a handle, if it belongs to the server and to the principal of the new
// request. It makes the new request the call's current request and passes the answers to the call.
func (p *ParkedCalls) takeParked(server drawbridge.ServerID, handle string, call drawbridge.Call) (
	*statelessCall, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.byHandle[handle]
	if s == nil || s.env.Server != server || s.principal != call.Caller.Principal {
		return nil, errNotParked
	}
	if err := s.takeAnswers(call); err != nil {
		return nil, err
	}
	return p.remove(handle), nil
}
