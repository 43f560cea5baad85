package deck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// vetSkills applies the skill filter to the skills of a result: those of a list, or the one that was requested.
func (d *Deck) vetSkills(ctx context.Context, server drawbridge.ServerID, result json.RawMessage) (
	_ json.RawMessage, err error) {
	if d.filterSkill == nil {
		return result, nil
	}
	m := d.view.Load().server(server)
	if m == nil { // the server left meanwhile, so its trust settings are unknown
		return nil, fmt.Errorf("vet the skills of %s: the server is not configured any more", server)
	}
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("the skill filter panicked, skills are not shown", "server", server, "panic",
				panicMessage(p), "at",
				panicLocation())
			err = fmt.Errorf("vet the skills of %s: panic", server)
		}
	}()
	look := func(entry json.RawMessage) json.RawMessage {
		shown, e := d.filterSkill(ctx, m.Server, entry)
		if err = errors.Join(err, e); shown == nil || e != nil {
			return json.RawMessage("null")
		}
		return shown
	}
	result = naming.MapElements(result, "skills", look)
	if entry := rawjson.Get(result, "skill"); entry != nil {
		if shown := look(entry); !sameBytes(shown, entry) {
			result = rawjson.Apply(result, rawjson.Put(shown, "skill"))
		}
	}
	return result, err
}

// LastListing returns the last listing of a server, as the server sent it; false if the server never listed.
func (d *Deck) LastListing(id drawbridge.ServerID) (drawbridge.Listing, bool) {
	m := d.view.Load().server(id)
	if m == nil || m.rawListing == nil {
		return drawbridge.Listing{}, false
	}
	return *m.rawListing, true
}

// describes reports whether a listing is one of the server with its present configuration.
func describes(l drawbridge.Listing, s Server) bool {
	return l.Server == s.ID && l.ConfigHash == s.ConfigHash
}

// ListingToVet returns the listing of a server to vet before [Deck.Configure], for [RememberedListing]: last, the last
// listing that is stored, or else the tools that are live in the ledger. The latter has no ListedAt. It reports false
// if the deck shows this configuration of the server already, or if nothing is remembered.
func (d *Deck) ListingToVet(s Server, last *drawbridge.Listing) (l drawbridge.Listing, ok bool) {
	if m := d.view.Load().server(s.ID); m != nil && m.ConfigHash == s.ConfigHash {
		return l, false
	}
	if last != nil && describes(*last, s) {
		return *last, true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l = drawbridge.Listing{Server: s.ID, ConfigHash: s.ConfigHash}
	all := slices.DeleteFunc(slices.Clone(d.ledger.LiveByServer(s.ID)), func(e ledger.Entry) bool {
		return e.Card.ConfigHash != s.ConfigHash // Configure retires it
	})
	live, _ := d.liveByTool(all)
	for _, e := range all {
		if live[e.Card.Tool].Key == e.Key {
			l.Tools = append(l.Tools, e.Card.Definition)
		}
	}
	return l, len(l.Tools) > 0
}

// applyLedgerListing returns a server whose tools are those that the ledger has live, as far as v shows them.
func (d *Deck) applyLedgerListing(m *serverState, v VettedListing) *serverState {
	own := make(map[string]string, len(m.tools))
	for _, it := range m.tools {
		own[it.offer.Name] = it.spec.Tool
	}
	offers := m.selectOffers(tools, v.Tools, 0, nil)
	for i := range offers {
		offers[i].ownName = own[offers[i].ownName]
	}
	m.tools, m.notes = d.maker.makeItems(tools, m.ID, offers, m.tools, len(m.tools) > 0), v.Notes
	m.pages = d.maker.unlistedPages(m)
	return m
}

// unvettedServer returns a server without items, because vetting failed.
func (d *Deck) unvettedServer(m *serverState, why error) *serverState {
	d.log.Error("remembered tools of the server are not shown", "server", m.ID, "err", why)
	return &serverState{Server: m.Server, scopes: m.scopes, late: m.late,
		omitted: []OmittedItem{{Kind: "listing", Reason: why.Error(), Code: "unvetted"}}}
}

// selectOffers returns the offers of a list and notes the omitted items. Before has the server's previous items.
func (m *serverState) selectOffers(k itemKind, list []VettedItem, most int, before []*item) []offeredItem {
	offers, out := selectOffers(k.word, k.member, list, most, func(i int) (offeredItem, bool) {
		if i >= len(before) {
			return offeredItem{}, false
		}
		return before[i].offer, true
	})
	m.omitted = append(m.omitted, out...)
	return offers
}

// recordVetting records the changes to a listing in the audit, up to a limit.
func (d *Deck) recordVetting(server drawbridge.ServerID, notes []VettingNote, leftOut []OmittedItem) {
	for _, n := range notes[:min(len(notes), maxAuditedNotes)] {
		d.callLog.RecordShieldAction(server, n.Name, n.Action, n.Why)
	}
	for _, l := range leftOut[:min(len(leftOut), maxAuditedNotes)] {
		if l.Code != "" {
			d.callLog.RecordShieldAction(server, l.Name, l.Code, l.Reason)
		}
	}
}

// maxLoggedNotes bounds the log lines about the changes to one listing.
const maxLoggedNotes = 5

// maxAuditedNotes bounds the audit records about the changes to one listing.
const maxAuditedNotes = 50

// logVetting logs and records new changes to a listing and new omissions by the vetter.
func (d *Deck) logVetting(m, before *serverState) {
	notes, leftOut := m.notes, m.omitted
	if before != nil {
		notes, leftOut = addedSince(notes, before.notes), addedSince(leftOut, before.omitted)
	}
	if before != nil { // else an earlier process recorded it
		d.recordVetting(m.ID, notes, leftOut)
	}
	for i, n := range notes {
		if i == maxLoggedNotes {
			d.log.Warn("more texts of the server were changed", "server", m.ID, "count", len(notes)-i)
			break
		}
		d.log.Warn("a text of the server was changed", "server", m.ID, "kind", n.Kind, "name", clipText(n.Name),
			"did", n.Action, "why", n.Why)
	}
	told := 0
	for _, l := range leftOut {
		if l.Code != "" && told < maxLoggedNotes {
			told++
			d.log.Warn("an item of the server was left out", "server", m.ID, "kind", l.Kind, "name",
				clipText(l.Name), "code", l.Code, "reason", l.Reason)
		}
	}
}
