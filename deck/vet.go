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

// vetSkills applies the skill filter to the skills in a result of skills/list or skills/get.
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

// LastListing returns the last listing of a server, as the server sent it. It returns false if there is no listing.
func (d *Deck) LastListing(id drawbridge.ServerID) (drawbridge.Listing, bool) {
	m := d.view.Load().server(id)
	if m == nil || m.rawListing == nil {
		return drawbridge.Listing{}, false
	}
	return *m.rawListing, true
}

// describes reports whether a listing is of the server s with its current configuration.
func describes(l drawbridge.Listing, s Server) bool {
	return l.Server == s.ID && l.ConfigHash == s.ConfigHash
}

// ListingToVet returns a listing of a server from an earlier process. The listing is to be vetted for
// [RememberedListing] before [Deck.Configure]. It is last, the last stored listing, or otherwise a listing of the live
// tools in the ledger, without ListedAt. ok is false if the deck already shows this configuration of the server, or if
// there is no such listing.
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

// applyLedgerListing returns the state of a server whose tools are the live tools of the ledger that v shows.
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

// unvettedServer returns the state of a server without items. It is used if vetting failed.
func (d *Deck) unvettedServer(m *serverState, why error) *serverState {
	d.log.Error("remembered tools of the server are not shown", "server", m.ID, "err", why)
	return &serverState{Server: m.Server, scopes: m.scopes, late: m.late,
		omitted: []OmittedItem{{Kind: "listing", Reason: why.Error(), Code: "unvetted"}}}
}

// selectOffers returns the offers of a list, and adds the omitted items to m.omitted. before are the server's previous
// items.
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

// recordVetting records the changes of a listing and the omissions by the vetter in the audit, up to maxAuditedNotes of
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

// maxLoggedNotes limits the log lines about the changes of one listing.
const maxLoggedNotes = 5

// maxAuditedNotes limits the audit records about the changes of one listing.
const maxAuditedNotes = 50

// logVetting logs and records the new changes of a listing and the new omissions by the vetter.
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
