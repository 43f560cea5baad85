package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
)

// newPipeline returns the vetting pipeline of the gateway. It runs the stages attest, pin and sanitise, and then checks
// the trust. The pin stage is before the sanitiser, because a tool is pinned as its server sent it.
func (g *Gateway) newPipeline() *vetting.Pipeline {
	g.pinStage = vetting.NewPinStage(g.shared.pinChecker)
	return &vetting.Pipeline{
		Stages: vetting.Chain{vetting.AttestStage{Store: g.shared.db, Log: g.log}, g.pinStage,
			g.shared.vetted.sanitiser},
		Blocked: &g.blocked, Trust: g.serverTrust, Log: g.log,
	}
}

// A questionFilter sanitises the params of a request that a server sends during a call. The result may be shown to
// people and models.
type questionFilter = func(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage

// newQuestionFilter returns a filter that sanitises requests of servers and records findings in the audit a. If a is
// nil, it records nothing.
func newQuestionFilter(s *vetting.Sanitiser, a *store.AuditWriter, log *slog.Logger) questionFilter {
	var record func(audit.Record) error
	if a != nil {
		record = a.Record
	}
	return vetting.NewQuestionFilter(s, record, log, time.Now).Filter
}

// A vettedCache holds the vetting results of servers. All gateways on one Shared use it.
type vettedCache struct {
	sanitiser *vetting.Sanitiser

	mu sync.Mutex
	// stored maps a configuration hash to the encoded VettedRecord that is in the store for it.
	stored *simplelru.LRU[string, []byte]
}

// A VettedRecord is the result of vetting a server's listing, in the form in which it is stored.
type VettedRecord struct {
	// Cards is the number of tools on the deck. Notes are the notes for people, see [drawbridge.ServerStatus], without
	// the notes in Clashes.
	Cards int      `json:"cards"`
	Notes []string `json:"notes,omitempty"`
	// Clashes are the notes about items whose names other servers already have; Winners are these other servers. The
	// notes are correct only in the naming style Naming.
	Clashes []string              `json:"clashes,omitempty"`
	Naming  deck.NamingStyle      `json:"naming,omitempty"`
	Winners []drawbridge.ServerID `json:"winners,omitempty"`
	// SanitiserState is the sanitiser's result for the configuration row of the server.
	SanitiserState json.RawMessage `json:"book,omitempty"`
}

// newVettedRecord returns the VettedRecord of a server whose items are on the deck as m describes.
func newVettedRecord(m deck.ServerSummary, naming deck.NamingStyle, sanitiserState json.RawMessage) VettedRecord {
	r := VettedRecord{Cards: len(m.Cards), Notes: itemNotes(m), SanitiserState: sanitiserState}
	if len(m.Clashes) == 0 {
		return r
	}
	r.Clashes, r.Naming = clashNotes(m), naming
	for _, c := range m.Clashes {
		if c.Winner != "" {
			r.Winners = append(r.Winners, c.Winner)
		}
	}
	slices.Sort(r.Winners)
	r.Winners = slices.Compact(r.Winners)
	return r
}

// NotesIn returns the notes that are correct for a naming style and for the servers in use. It omits Clashes if they
// were made for another style, or if one of the Winners is not in use.
func (r VettedRecord) NotesIn(style deck.NamingStyle, inUse func(drawbridge.ServerID) bool) []string {
	current := len(r.Clashes) > 0 && cmp.Or(r.Naming, naming.Qualified) == cmp.Or(style, naming.Qualified)
	for _, winner := range r.Winners {
		current = current && inUse(winner)
	}
	if !current {
		return r.Notes
	}
	return slices.Concat(r.Clashes, r.Notes)
}

// restore adds text, the stored VettedRecord for the configuration hash row, to the cache. It also restores the
// sanitiser's result for that row.
func (v *vettedCache) restore(row string, text []byte) {
	v.mu.Lock()
	v.stored.Add(row, text)
	v.mu.Unlock()
	v.sanitiser.Restore(row, rawjson.Get(text, "book")) // a damaged record is treated as missing
}

func newVettedCache(s *vetting.Sanitiser) *vettedCache {
	stored, _ := simplelru.NewLRU[string, []byte](maxStoredRows, nil) // the error is only for sizes below 1
	return &vettedCache{sanitiser: s, stored: stored}
}

// maxStoredRows is the maximum number of records in stored. A record that was removed from the cache is written to the
// store again at the next save, although it is unchanged.
const maxStoredRows = 1024

// changedRecords returns the encoded VettedRecords of the servers whose record differs from the record in the store.
// The keys are configuration hashes.
func (v *vettedCache) changedRecords(members []deck.ServerSummary, naming deck.NamingStyle) map[string][]byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string][]byte{}
	for _, m := range members {
		book := v.sanitiser.Snapshot(m.ConfigHash)
		text, err := json.Marshal(newVettedRecord(m, naming, book))
		known, _ := v.stored.Get(m.ConfigHash)
		if err == nil && book != nil && !bytes.Equal(text, known) {
			v.stored.Add(m.ConfigHash, text)
			out[m.ConfigHash] = text
		}
	}
	return out
}

// enrolListing enrols a listing that the fleet received from a server, and logs an error.
func (g *Gateway) enrolListing(ctx context.Context, l drawbridge.Listing) {
	err := g.enroller.enrol(ctx, l)
	switch f, _ := errors.AsType[*drawbridge.Fault](err); {
	case err == nil:
	// An error is not logged if the server is being stopped, or if its configuration has changed meanwhile.
	case ctx.Err() != nil, f != nil && f.Code == drawbridge.NotFound:
	default:
		g.log.Warn("enrol the listing of a server", "server", l.Server, "err", err)
	}
	g.saveVetted(ctx, l.Server)
}

// revetStale vets and enrols those stored listings again that were vetted by older rules of the shield, and stores the
// results.
func (g *Gateway) revetStale(ctx context.Context) {
	g.mu.Lock()
	members := g.deckMembers()
	g.mu.Unlock()
	for _, m := range members {
		if !g.shared.vetted.sanitiser.IsStale(m) || ctx.Err() != nil {
			continue
		}
		if err := g.enroller.reenrol(ctx, m.ID); err != nil && !errors.Is(err, context.Canceled) {
			g.log.Warn("vet a remembered listing by the present rules", "server", m.ID, "err", err)
		}
	}
	g.saveVetted(ctx)
}

// revetLocked vets and enrols the listings of servers with a locked tool list again, because a person may have unlocked
// the list. The caller must hold mu.
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

// saveVettedTimeout is the time limit for storing vetting results. They are stored even after the context of the caller
// has ended.
const saveVettedTimeout = 5 * time.Second

// saveVetted stores the vetting results of the named servers, or of all servers if none is named. The next start then
// need not vet their listings. It also stores the results of servers with name clashes, because the listing of another
// server may have changed these clashes.
func (g *Gateway) saveVetted(ctx context.Context, servers ...drawbridge.ServerID) {
	members := slices.DeleteFunc(g.deck.ServerSummaries(), func(m deck.ServerSummary) bool {
		return len(servers) > 0 && !slices.Contains(servers, m.Server) && len(m.Clashes) == 0
	})
	fresh := g.shared.vetted.changedRecords(members, g.config.Naming)
	if len(fresh) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveVettedTimeout)
	defer cancel()
	if err := g.shared.db.SaveVetted(ctx, fresh); err != nil {
		g.log.Warn("store the results of vetting", "err", err)
	}
}
