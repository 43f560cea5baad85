package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway/pins"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// bars are what of servers may not be called, as they were vetted last. The deck goes by them when it looks at a call; the call of
// a server that has just started has to wait for its list, and is looked at again when that was vetted, which is what these are for.
type bars struct {
	mu sync.RWMutex
	// by has what is barred of a server, by method and own name; unvetted why nothing is known of what a server lists now.
	by       map[drawbridge.ServerID]map[[2]string]deck.Shown
	unvetted map[drawbridge.ServerID]error
}

// note takes what came of a listing that was vetted, or why it was not.
func (b *bars) note(id drawbridge.ServerID, v deck.Vetted, err error) {
	barred := map[[2]string]deck.Shown{}
	for method, all := range map[string][]deck.Shown{wire.MethodToolsCall: v.Tools, wire.MethodPromptsGet: v.Prompts} {
		for _, s := range all {
			if s.Held != "" || s.Code == pins.Rejected {
				barred[[2]string{method, wire.GetText(s.Own, "name")}] = s
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.by == nil {
		b.by, b.unvetted = map[drawbridge.ServerID]map[[2]string]deck.Shown{}, map[drawbridge.ServerID]error{}
	}
	if b.unvetted[id] = err; err == nil {
		delete(b.unvetted, id)
		b.by[id] = barred
	}
}

// admit refuses a call of what is barred. The error is a *drawbridge.Fault.
func (b *bars) admit(_ context.Context, id drawbridge.ServerID, call drawbridge.Call) error {
	b.mu.RLock()
	barred, unvetted := b.by[id], b.unvetted[id]
	b.mu.RUnlock()
	if len(barred) == 0 && unvetted == nil {
		return nil
	}
	name, _ := wire.NameOf(call.Method, call.Params)
	f := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: fmt.Sprintf("%s %s on %s", call.Method, name, id)}
	if unvetted != nil {
		f.Err = fmt.Errorf("what its server lists now could not be looked at: %w", unvetted)
		return f
	}
	s, ok := barred[[2]string{call.Method, name}]
	if !ok {
		return nil
	}
	f.Err, f.Next = errors.New(cmp.Or(s.Held, s.Why)), s.Next
	return f
}
