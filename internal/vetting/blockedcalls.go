package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
)

// blockedCalls are what of servers may not be called, as they were vetted last. The deck goes by them when it looks at
// a call; the call of a server that has just started has to wait for its list, and is looked at again when that was
// vetted, which is what these are for.
type blockedCalls struct {
	mu sync.RWMutex
	// blocked has what is barred of a server, by method and own name; unvetted why nothing is known of what a server
	// lists now.
	blocked   map[drawbridge.ServerID]map[[2]string]deck.VettedItem
	vetErrors map[drawbridge.ServerID]error
}

// update takes what came of a listing that was vetted, or why it was not.
func (b *blockedCalls) update(id drawbridge.ServerID, v deck.VettedListing, err error) {
	barred := map[[2]string]deck.VettedItem{}
	for method, all := range map[string][]deck.VettedItem{mcp.MethodToolsCall: v.Tools,
		mcp.MethodPromptsGet: v.Prompts} {
		for _, s := range all {
			if s.HeldReason != "" || s.Code == vetting.CodeRejected {
				barred[[2]string{method, rawjson.GetString(s.Original, "name")}] = s
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.blocked == nil {
		b.blocked, b.vetErrors = map[drawbridge.ServerID]map[[2]string]deck.VettedItem{},
			map[drawbridge.ServerID]error{}
	}
	if b.vetErrors[id] = err; err == nil {
		delete(b.vetErrors, id)
		b.blocked[id] = barred
	}
}

// check refuses a call of what is barred. The error is a *drawbridge.Fault.
func (b *blockedCalls) check(_ context.Context, id drawbridge.ServerID, call drawbridge.Call) error {
	b.mu.RLock()
	barred, unvetted := b.blocked[id], b.vetErrors[id]
	b.mu.RUnlock()
	if len(barred) == 0 && unvetted == nil {
		return nil
	}
	name, _ := mcp.TargetName(call.Method, call.Params)
	f := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked,
		Step: fmt.Sprintf("%s %s on %s", call.Method, name, id)}
	if unvetted != nil {
		f.Err = fmt.Errorf("what its server lists now could not be looked at: %w", unvetted)
		return f
	}
	s, ok := barred[[2]string{call.Method, name}]
	if !ok {
		return nil
	}
	f.Err, f.Next = errors.New(cmp.Or(s.HeldReason, s.OmitReason)), s.NextStep
	return f
}
