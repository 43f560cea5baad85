package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
)

// newPipeline makes the vetting pipeline of the gateway: attest, pin, sanitise, then trust. A tool is pinned as its
// server sent it, so the pin stage stands before the sanitiser.
func (g *Gateway) newPipeline() *vetting.Pipeline {
	g.pinStage = vetting.NewPinStage(g.shared.pinChecker)
	return &vetting.Pipeline{
		Stages: vetting.Chain{vetting.AttestStage{Store: g.shared.db, Log: g.log}, g.pinStage,
			g.shared.vetted.sanitiser},
		Blocked: &g.blocked, Trust: g.serverTrust, Log: g.log,
	}
}

// A questionFilter gives what a server asks in the course of a call as it may be shown.
type questionFilter = func(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage

// newQuestionFilter looks at what servers ask, and has it in the audit, which may be nil.
func newQuestionFilter(s *vetting.Sanitiser, a *store.AuditWriter, log *slog.Logger) questionFilter {
	var record func(audit.Record) error
	if a != nil {
		record = a.Record
	}
	return vetting.NewQuestionFilter(s, record, log, time.Now).Filter
}

// vettedCache is what gateways of one ground know of the listings that they looked at.
type vettedCache struct {
	sanitiser *vetting.Sanitiser

	mu sync.Mutex
	// stored is what the store has, by row.
	stored map[string][]byte
}

// A VettedRecord is what the store keeps of what came of a listing.
type VettedRecord struct {
	// Cards is how many of its tools were on the deck, Notes what people are told of the rest, see Status.
	Cards int      `json:"cards"`
	Notes []string `json:"notes,omitempty"`
	// SanitiserState is the sanitiser's.
	SanitiserState json.RawMessage `json:"book,omitempty"`
}

// restore takes what the store has of a row.
func (v *vettedCache) restore(row string, text []byte) {
	v.mu.Lock()
	v.setStored(row, text)
	v.mu.Unlock()
	v.sanitiser.Restore(row, rawjson.Get(text, "book")) // what is damaged is as good as not kept
}

// maxStoredRows bounds of how many rows it is known what the store has: what is forgotten is written once more.
const maxStoredRows = 1024

// setStored notes what the store has of a row. The lock is held.
func (v *vettedCache) setStored(row string, text []byte) {
	if _, known := v.stored[row]; !known && len(v.stored) >= maxStoredRows {
		clear(v.stored)
	}
	v.stored[row] = text
}

// changedRecords gives what is to be kept of the members, where the store has something else.
func (v *vettedCache) changedRecords(members []deck.ServerSummary) map[string][]byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string][]byte{}
	for _, m := range members {
		book := v.sanitiser.Snapshot(m.ConfigHash)
		text, err := json.Marshal(VettedRecord{Cards: len(m.Cards), Notes: memberNotes(m), SanitiserState: book})
		if err == nil && book != nil && !bytes.Equal(text, v.stored[m.ConfigHash]) {
			v.setStored(m.ConfigHash, text)
			out[m.ConfigHash] = text
		}
	}
	return out
}

// enrolListing takes a listing that the fleet brought.
func (g *Gateway) enrolListing(ctx context.Context, l drawbridge.Listing) {
	err := g.enroller.enrol(ctx, l)
	switch f, _ := errors.AsType[*drawbridge.Fault](err); {
	case err == nil:
	// the server is to end, or its row was changed meanwhile
	case ctx.Err() != nil, f != nil && f.Code == drawbridge.NotFound:
	default:
		g.log.Warn("a server was listed and could not be enrolled", "server", l.Server, "err", err)
	}
	g.saveVetted(ctx, l.Server)
}

// revetStale looks anew at remembered listings that are shown as older rules left them, and keeps what came of all.
func (g *Gateway) revetStale(ctx context.Context) {
	g.mu.Lock()
	members := g.deckMembers()
	g.mu.Unlock()
	for _, m := range members {
		if !g.shared.vetted.sanitiser.IsStale(m) || ctx.Err() != nil {
			continue
		}
		if err := g.enroller.reenrol(ctx, m.ID); err != nil && !errors.Is(err, context.Canceled) {
			g.log.Warn("what a server lists was not looked at by the rules of today", "server", m.ID, "err", err)
		}
	}
	g.saveVetted(ctx)
}

// revetLocked looks again at servers whose list is locked: a person may have unlocked it. It needs mu.
func (g *Gateway) revetLocked(ctx context.Context) error {
	var locked []drawbridge.ServerID
	for _, m := range g.deckMembers() {
		if m.LockTools {
			locked = append(locked, m.ID)
		}
	}
	if len(locked) == 0 {
		return nil
	}
	return g.enroller.reenrol(ctx, locked...)
}

// saveVettedTimeout bounds what is kept of a listing when everything ends.
const saveVettedTimeout = 5 * time.Second

// saveVetted keeps what came of listings, of all where none is named, so that the next start need not look at them.
func (g *Gateway) saveVetted(ctx context.Context, servers ...drawbridge.ServerID) {
	members := slices.DeleteFunc(g.deck.ServerSummaries(), func(m deck.ServerSummary) bool {
		return len(servers) > 0 && !slices.Contains(servers, m.Server)
	})
	fresh := g.shared.vetted.changedRecords(members)
	if len(fresh) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveVettedTimeout)
	defer cancel()
	if err := g.shared.db.SaveVetted(ctx, fresh); err != nil {
		g.log.Warn("what may be shown of listings was not kept", "err", err)
	}
}
