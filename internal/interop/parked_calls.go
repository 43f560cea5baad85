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

// MaxParkedCalls is the default number of calls of one principal that may be parked at once.
const MaxParkedCalls = 256

// NewParkedCalls returns an empty ParkedCalls: a call waits for at most wait, and at most most calls of one principal
// are parked.
func NewParkedCalls(wait time.Duration, most int) *ParkedCalls {
	return &ParkedCalls{timeout: wait, maxPerPrincipal: most, byHandle: map[string]*parkedCall{},
		perPrincipal: map[string]int{}}
}

// handlePrefix begins a requestState that names a parked call. The rest is random.
const handlePrefix = "drawbridge/parked:"

// ParkedCalls keeps calls that wait for their callers, each under a handle that is good once. Use NewParkedCalls.
type ParkedCalls struct {
	timeout         time.Duration
	maxPerPrincipal int

	mu           sync.Mutex
	closed       bool
	byHandle     map[string]*parkedCall
	perPrincipal map[string]int // by principal
}

// A parkedCall is a call with the timer that ends it.
type parkedCall struct {
	*statelessCall
	timer *time.Timer
}

// ParkedCallHandle returns the handle in the params of a call, if any.
func ParkedCallHandle(params json.RawMessage) (handle string, ok bool) {
	// Searched without the slash, which some encoders escape; nearly no call has one, and the search is cheaper than
	// reading.
	if !bytes.Contains(params, []byte("parked")) {
		return "", false
	}
	state, ok := rawjson.DecodeString(rawjson.Get(params, "requestState"))
	if !ok || !strings.HasPrefix(state, handlePrefix) {
		return "", false
	}
	return state, true
}

// park keeps a call until its caller comes back, and returns the result with the handle. It returns false if the caller
// has too many parked calls.
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

// remove removes and returns the call of a handle, or nil if there is none. The caller holds mu.
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

// expire ends a call whose caller did not come back.
func (p *ParkedCalls) expire(handle string) {
	p.mu.Lock()
	t := p.remove(handle)
	p.mu.Unlock()
	if t != nil {
		t.cancel(errors.New("the caller did not come back with answers"))
	}
}

// Close ends every parked call; later calls are refused.
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

// ResumeCall resumes a parked call, with results as for BeginCall. The error is a *drawbridge.Fault InvalidInput for a
// handle that is not parked, or not for this server and principal, and for malformed answers.
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

// takeParked takes out a call for a caller with the right to it, and hands it the answers and the Peer of their
// request.
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
