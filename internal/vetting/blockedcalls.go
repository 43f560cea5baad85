package vetting

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
)

// BlockedCalls stores which tools and prompts may not be called, from the last vetted listing of each server. The deck
// already refuses a call of an item that is blocked when the call arrives. But the call may start the server, and the
// server's new listing may block the item; then Check refuses the call. The zero value blocks nothing. Its methods may
// be called from several goroutines.
type BlockedCalls struct {
	mu sync.RWMutex
	// blocked contains the blocked items of each server, by method and name. vetErrors contains an error for each
	// server whose last listing could not be vetted.
	blocked   map[drawbridge.ServerID]map[[2]string]deck.VettedItem
	vetErrors map[drawbridge.ServerID]error
}

// Update replaces the blocked items of a server by those of a vetted listing. If vetting failed, err is the error, and
// Update stores it instead.
func (b *BlockedCalls) Update(id drawbridge.ServerID, v deck.VettedListing, err error) {
	blocked := map[[2]string]deck.VettedItem{}
	for method, all := range map[string][]deck.VettedItem{mcp.MethodToolsCall: v.Tools,
		mcp.MethodPromptsGet: v.Prompts} {
		for _, item := range all {
			if item.HeldReason != "" || item.Code == CodeRejected {
				blocked[[2]string{method, rawjson.GetString(item.Original, "name")}] = item
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
		b.blocked[id] = blocked
	}
}

// Check returns an error for a call of a blocked item, and for every call to a server whose last listing could not be
// vetted. The error is a *drawbridge.Fault with code PolicyBlocked.
func (b *BlockedCalls) Check(_ context.Context, id drawbridge.ServerID, call drawbridge.Call) error {
	b.mu.RLock()
	blocked, vetErr := b.blocked[id], b.vetErrors[id]
	b.mu.RUnlock()
	if len(blocked) == 0 && vetErr == nil {
		return nil
	}
	name, _ := mcp.TargetName(call.Method, call.Params)
	f := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked,
		Step: fmt.Sprintf("%s %s on %s", call.Method, name, id)}
	if vetErr != nil {
		f.Err = fmt.Errorf("the listing of its server could not be vetted: %w", vetErr)
		return f
	}
	item, ok := blocked[[2]string{call.Method, name}]
	if !ok {
		return nil
	}
	f.Err, f.Next = errors.New(cmp.Or(item.HeldReason, item.OmitReason)), item.NextStep
	return f
}
