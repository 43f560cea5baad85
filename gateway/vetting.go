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

// newPipeline returns the vetting pipeline of the gateway: attest, pin, sanitise, then trust. The pin stage is before
// the sanitiser, because a tool is pinned as its server sent it.
func (g *Gateway) newPipeline() *vetting.Pipeline {
	g.pinStage = vetting.NewPinStage(g.shared.pinChecker)
	return &vetting.Pipeline{
		Stages: vetting.Chain{vetting.AttestStage{Store: g.shared.db, Log: g.log}, g.pinStage,
			g.shared.vetted.sanitiser},
		Blocked: &g.blocked, Trust: g.serverTrust, Log: g.log,
	}
}

// A questionFilter returns the sanitised params of a request that a server sends during a call. They are safe to show.
type questionFilter = func(server drawbridge.ServerID, method string, params json.RawMessage) json.RawMessage

// newQuestionFilter returns a filter that sanitises requests of servers and records findings in the audit a; a may be
// nil.
func newQuestionFilter(s *vetting.Sanitiser, a *store.AuditWriter, log *slog.Logger) questionFilter {
	var record func(audit.Record) error
	if a != nil {
		record = a.Record
	}
	return vetting.NewQuestionFilter(s, record, log, time.Now).Filter
}

// A vettedCache holds the vetting results that the gateways on one Shared use.
type vettedCache struct {
	sanitiser *vetting.Sanitiser

	mu sync.Mutex
	// stored holds the encoded VettedRecord that is in the store, by configuration hash.
	stored *simplelru.LRU[string, []byte]
}

// A VettedRecord is the stored result of vetting a listing.
type VettedRecord struct {
	// Cards is the number of tools on the deck. Notes are the notes for people, see [drawbridge.ServerStatus], without
	// the notes in Clashes.
	Cards int      `json:"cards"`
	Notes []string `json:"notes,omitempty"`
	// Clashes are the notes about names that other servers already have, in the naming style Naming. Winners are those
	// servers.
	Clashes []string              `json:"clashes,omitempty"`
	Naming  deck.NamingStyle      `json:"naming,omitempty"`
	Winners []drawbridge.ServerID `json:"winners,omitempty"`
	// SanitiserState is the state of the sanitiser for the row.
	SanitiserState json.RawMessage `json:"book,omitempty"`
}

// newVettedRecord returns the record of a server in a naming style.
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

// NotesIn returns the notes that apply to a naming style and to the servers in use. Notes about names are left out if
// they were made for another style, or if one of the Winners is not in use.
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

// restore adds the stored record of a row to the cache and restores the sanitiser's state for the row.
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

// maxStoredRows is the maximum number of records in stored. A record that the cache has dropped is written to the store
// again.
const maxStoredRows = 1024

// changedRecords returns the encoded records of the servers that differ from the stored records, by configuration hash.
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

// enrolListing enrols a listing that the fleet received.
func (g *Gateway) enrolListing(ctx context.Context, l drawbridge.Listing) {
	err := g.enroller.enrol(ctx, l)
	switch f, _ := errors.AsType[*drawbridge.Fault](err); {
	case err == nil:
	// Not logged: the server is being stopped, or its row has changed meanwhile.
	case ctx.Err() != nil, f != nil && f.Code == drawbridge.NotFound:
	default:
		g.log.Warn("enrol the listing of a server", "server", l.Server, "err", err)
	}
	g.saveVetted(ctx, l.Server)
}

// revetStale vets the stored listings again that were vetted by older rules, and stores the results.
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

// revetLocked vets the servers with a locked tool list again, because a person may have unlocked the list. The caller
// must hold mu.
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

// saveVettedTimeout limits the time to store vetting results, even after the context has ended.
const saveVettedTimeout = 5 * time.Second

// saveVetted stores the vetting results of the named servers, or of all servers if none is named. It also stores the
// results of servers with name clashes, because the listing of another server may have changed them. The next start
// then need not vet these listings.
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
