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

// vetSkills applies [Options].FilterSkill to each skill in a result of skills/list or skills/get. A skill that must not
// be shown is replaced with null. If the filter fails or panics, vetSkills returns an error.
func (d *Deck) vetSkills(ctx context.Context, server drawbridge.ServerID, result json.RawMessage) (
	_ json.RawMessage, err error) {
	if d.filterSkill == nil {
		return result, nil
	}
	m := d.view.Load().server(server)
	if m == nil { // the server was removed, so its trust settings are unknown
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

// LastListing returns the last listing of a server, as the server sent it. It returns false if the server was never listed.
func (d *Deck) LastListing(id drawbridge.ServerID) (drawbridge.Listing, bool) {
	m := d.view.Load().server(id)
	if m == nil || m.rawListing == nil {
		return drawbridge.Listing{}, false
	}
	return *m.rawListing, true
}

// describes reports whether a listing was received from the server s with its current configuration.
func describes(l drawbridge.Listing, s Server) bool {
	return l.Server == s.ID && l.ConfigHash == s.ConfigHash
}

// ListingToVet returns the listing of a server from an earlier process, so that the deck can show items before the
// server has started. The caller must vet the listing, and pass it to [Deck.Configure] as [Server].Remembered. last is
// the last listing in the store; nil if there is none. If last is of the present configuration, ListingToVet returns
// it. Otherwise it returns a listing of the server's live tools in the ledger, whose ListedAt is zero. ok is false if
// the deck already has the server with this configuration, or if the ledger has no tools of it.
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
		return e.Card.ConfigHash != s.ConfigHash // Configure retires this entry
	})
	live, _ := d.liveByTool(all)
	for _, e := range all {
		if live[e.Card.Tool].Key == e.Key {
			l.Tools = append(l.Tools, e.Card.Definition)
		}
	}
	return l, len(l.Tools) > 0
}

// applyLedgerListing returns the state m of a server, whose tools are from the ledger, with only those tools that v
// allows to be shown.
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

// unvettedServer returns the state of a server without items, for a remembered listing that could not be vetted. why is
// the error of vetting.
func (d *Deck) unvettedServer(m *serverState, why error) *serverState {
	d.log.Error("remembered tools of the server are not shown", "server", m.ID, "err", why)
	return &serverState{Server: m.Server, scopes: m.scopes, late: m.late,
		omitted: []OmittedItem{{Kind: "listing", Reason: why.Error(), Code: "unvetted"}}}
}

// selectOffers returns the objects of a list that may be items on the deck, and adds the omitted objects to m.omitted.
// most is the maximum number of offers; 0 means no limit. before are the items of the server's previous list.
func (m *serverState) selectOffers(k itemKind, list []VettedItem, most int, before []*item) []offeredItem {
	offers, out := selectOffers(k.word, k.member, list, most, func(i int) (offeredItem, bool) {
		if i >= len(before) {
			return offeredItem{}, false
		}
		return before[i].offer, true
	})
	for i := range offers {
		offers[i].notForScripts = m.NotForScripts
	}
	m.omitted = append(m.omitted, out...)
	return offers
}

// recordVetting writes audit records for changes and omissions that vetting made in a listing, up to maxAuditedNotes of
// each.
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

// maxLoggedNotes is the maximum number of log lines about changes, and about omissions, in one listing.
const maxLoggedNotes = 5

// maxAuditedNotes is the maximum number of audit records about changes, and about omissions, in one listing.
const maxAuditedNotes = 50

// logVetting logs the changes and omissions that vetting made in the listing of m and that are not in the state before.
// It also writes audit records about them. If before is nil, it writes no records, because the process that received
// the listing has written them.
func (d *Deck) logVetting(m, before *serverState) {
	notes, leftOut := m.notes, m.omitted
	if before != nil {
		notes, leftOut = addedSince(notes, before.notes), addedSince(leftOut, before.omitted)
	}
	if before != nil { // without before, an earlier process recorded it
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
