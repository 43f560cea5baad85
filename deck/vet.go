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
	if m == nil { // it left while it was asked: by whose row would they be looked at?
		return nil, fmt.Errorf("vet the skills of %s: the configuration has no such server now", server)
	}
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("the skill filter panicked, skills are not shown", "server", server, "panic", panicMessage(p), "at",
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

// LastListing gives what a server listed last, as it came; false where nobody knows.
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
	m.tools, m.notes = d.maker.makeItems(tools, m.ID, offers, m.tools), v.Notes
	m.pages = d.maker.unlistedPages(m)
	return m
}

// unvettedServer is a member of which nothing can be shown, since nobody could look at it.
func (d *Deck) unvettedServer(m *serverState, why error) *serverState {
	d.log.Error("what is remembered of a server is not shown", "server", m.ID, "err", why)
	return &serverState{Server: m.Server, scopes: m.scopes,
		omitted: []OmittedItem{{Kind: "listing", Reason: why.Error(), Code: "unvetted"}}}
}

// selectOffers sorts out what of a list can be on the deck, and notes what cannot. Before is what the member had.
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

// heldVerdict refuses a call of what waits for a person, and one that comes back with something that we did not give
// out.
func (t callTarget) heldVerdict(method string) (drawbridge.Verdict, error) {
	switch {
	case t.heldReason != "":
		verdict := drawbridge.Verdict{Rule: "held", Reason: t.heldReason, Next: t.nextStep}
		return verdict, refusalFault(method, t.spec, verdict, errors.New(t.heldReason))
	case t.paramsErr != nil:
		return drawbridge.Verdict{Rule: "state", Reason: t.paramsErr.Error()}, faultInvalid(method, t.paramsErr)
	}
	return drawbridge.Verdict{}, nil
}

// recordVetting records what was done to a listing, as far as one listing may fill the audit.
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

// serverParams gives the params of a call as the server knows them.
func (t callTarget) serverParams(said json.RawMessage) json.RawMessage {
	return restoreArgumentNames(said, t.ownArguments)
}

// maxLoggedNotes is how much of what was done to one listing is logged one by one.
const maxLoggedNotes = 5

// maxAuditedNotes is how much of it is in the audit.
const maxAuditedNotes = 50

// logVetting logs and records what was done to a member's listing, and what the vetter left out, where that is new.
func (d *Deck) logVetting(m, before *serverState) {
	notes, leftOut := m.notes, m.omitted
	if before != nil {
		notes, leftOut = addedSince(notes, before.notes), addedSince(leftOut, before.omitted)
	}
	if before != nil { // else it is what an earlier process was told, and recorded
		d.recordVetting(m.ID, notes, leftOut)
	}
	for i, n := range notes {
		if i == maxLoggedNotes {
			d.log.Warn("more of what a server says was changed", "server", m.ID, "count", len(notes)-i)
			break
		}
		d.log.Warn("something of what a server says was changed", "server", m.ID, "kind", n.Kind, "name", clip(n.Name),
			"did", n.Action, "why", n.Why)
	}
	told := 0
	for _, l := range leftOut {
		if l.Code != "" && told < maxLoggedNotes {
			told++
			d.log.Warn("something of what a server lists was left out", "server", m.ID, "kind", l.Kind, "name",
				clip(l.Name), "code", l.Code, "reason", l.Reason)
		}
	}
}
