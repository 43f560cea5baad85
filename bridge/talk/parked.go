package talk

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
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// MaxParked is how many talks of one principal may be parked at once where nobody says otherwise.
const MaxParked = 256

// NewParking makes an empty Parking: for so long a talk waits at most, and so many of one principal may.
func NewParking(wait time.Duration, most int) *Parking {
	return &Parking{wait: wait, most: most, talks: map[string]*space{}, count: map[string]int{}}
}

// handlePrefix begins a requestState that names a parked talk. The rest of it nobody can guess.
const handlePrefix = "drawbridge/parked:"

// Parking keeps the talks that wait for their callers, each under a handle that is good once. The zero value is no use:
// see NewParking.
type Parking struct {
	wait time.Duration
	most int

	mu     sync.Mutex
	closed bool
	talks  map[string]*space
	count  map[string]int // by principal
}

// A space is a talk with the timer that ends it.
type space struct {
	*talk
	timer *time.Timer
}

// Handle gives the handle in the params of a call, if it has one.
func Handle(params json.RawMessage) (handle string, ok bool) {
	// Searched without the slash, which some encoders escape; nearly no call has one, and the search is cheaper than reading.
	if !bytes.Contains(params, []byte("parked")) {
		return "", false
	}
	state, ok := wire.Text(wire.Get(params, "requestState"))
	if !ok || !strings.HasPrefix(state, handlePrefix) {
		return "", false
	}
	return state, true
}

// park keeps a talk until its caller comes back, and gives the result that says how. It says false where the caller has
// too many parked already.
func (p *Parking) park(t *talk) (drawbridge.Result, bool) {
	handle := handlePrefix + rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.count[t.principal] >= p.most {
		return drawbridge.Result{}, false
	}
	p.count[t.principal]++
	p.talks[handle] = &space{t, time.AfterFunc(p.wait, func() { p.expire(handle) })}
	return t.asks(handle), true
}

// remove takes a talk out; nil where there is none of this handle. It needs mu.
func (p *Parking) remove(handle string) *talk {
	s := p.talks[handle]
	if s == nil {
		return nil
	}
	s.timer.Stop()
	delete(p.talks, handle)
	if p.count[s.principal]--; p.count[s.principal] == 0 {
		delete(p.count, s.principal)
	}
	return s.talk
}

// expire ends a talk whose caller did not come back.
func (p *Parking) expire(handle string) {
	p.mu.Lock()
	t := p.remove(handle)
	p.mu.Unlock()
	if t != nil {
		t.cancel(errors.New("the caller did not come back with answers"))
	}
}

// Close ends every talk and takes no more.
func (p *Parking) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for handle := range p.talks {
		p.remove(handle).cancel(errClosed)
	}
}

// Len says how many talks are parked.
func (p *Parking) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.talks)
}

var errClosed = errors.New("the end has come")

// Resume goes on with a parked talk, as Begin does. The error is a *drawbridge.Fault InvalidInput for a handle that is not parked, or not
// for this server and principal, and for answers that are none.
func (p *Parking) Resume(ctx context.Context, server drawbridge.ServerID, step, handle string, call drawbridge.Call) (drawbridge.Result, error) {
	t, err := p.claim(server, handle, call)
	if err != nil {
		return drawbridge.Result{}, &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput, Step: step, Err: err,
		}
	}
	return t.wait(ctx, p, call)
}

var errNotParked = errors.New("requestState: no call waits for it: it was used before, or the call has ended")

// claim takes a talk out for whoever has the right to it, and gives it the answers and the ear of their request.
func (p *Parking) claim(server drawbridge.ServerID, handle string, call drawbridge.Call) (*talk, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.talks[handle]
	if s == nil || s.line.Server != server || s.principal != call.Caller.Principal {
		return nil, errNotParked
	}
	if err := s.take(call); err != nil {
		return nil, err
	}
	return p.remove(handle), nil
}
