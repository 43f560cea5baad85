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
)

// vetListing runs the vetter on a listing. A panic is returned as an error.
func (d *Deck) vetListing(ctx context.Context, m Server, l drawbridge.Listing) (v VettedListing, err error) {
	if d.vetter == nil {
		return unvettedListing(l), nil
	}
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("vetter panicked, listing not shown", "server", m.ID, "panic", panicMessage(p), "at",
				panicLocation())
			v, err = VettedListing{}, fmt.Errorf("vet the listing of %s: panic", m.ID)
		}
	}()
	m.MaxTools = d.toolLimit(m.MaxTools)
	if v, err = d.vetter.Vet(ctx, m, l); err != nil {
		return VettedListing{}, fmt.Errorf("vet the listing of %s: %w", m.ID, err)
	}
	return v, nil
}

// vetSkills runs the skill vetter on a result: on each skill of a list, or on the one that was requested.
func (d *Deck) vetSkills(ctx context.Context, server drawbridge.ServerID, result json.RawMessage) (
	_ json.RawMessage, err error) {
	v, ok := d.vetter.(SkillVetter)
	if !ok {
		return result, nil
	}
	m := d.view.Load().server(server)
	if m == nil { // the server left meanwhile, so its trust settings are unknown
		return nil, fmt.Errorf("vet the skills of %s: the server is not configured any more", server)
	}
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("vetter panicked, skills not shown", "server", server, "panic", panicMessage(p), "at",
				panicLocation())
			err = fmt.Errorf("vet the skills of %s: panic", server)
		}
	}()
	look := func(entry json.RawMessage) json.RawMessage {
		shown, e := v.VetSkill(ctx, m.Server, entry)
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

// Revet vets and enrols the last listings of the servers again, or of all servers if none is named. Call it after a
// change of the vetter's rules. The error joins those of Enrol.
func (d *Deck) Revet(ctx context.Context, servers ...drawbridge.ServerID) error {
	var errs []error
	for _, m := range d.view.Load().servers {
		if len(servers) == 0 || slices.Contains(servers, m.ID) {
			errs = append(errs, d.revetServer(ctx, m.ID))
		}
	}
	return errors.Join(errs...)
}

func (d *Deck) revetServer(ctx context.Context, id drawbridge.ServerID) error {
	defer d.serverLocks.lock(id)()
	m := d.view.Load().server(id)
	if m == nil || m.rawListing == nil {
		return nil
	}
	return d.enrolListing(ctx, m, *m.rawListing)
}

// LastListing returns the last listing of a server as received; false if there is none.
func (d *Deck) LastListing(id drawbridge.ServerID) (drawbridge.Listing, bool) {
	m := d.view.Load().server(id)
	if m == nil || m.rawListing == nil {
		return drawbridge.Listing{}, false
	}
	return *m.rawListing, true
}

// vetRemembered returns a server without a listing, with the shown part of the cards that are live in the ledger.
func (d *Deck) vetRemembered(ctx context.Context, m *serverState) *serverState {
	if d.vetter == nil || len(m.tools) == 0 {
		return m
	}
	own := make(map[string]string, len(m.tools))
	l := drawbridge.Listing{Server: m.ID, ConfigHash: m.ConfigHash}
	for _, it := range m.tools {
		own[it.offer.Name] = it.spec.Tool
		l.Tools = append(l.Tools, it.offer.Raw)
	}
	v, err := d.vetListing(ctx, m.Server, l)
	if err != nil {
		return d.unvettedServer(m, err)
	}
	offers := m.selectOffers(tools, v.Tools, 0, nil)
	for i := range offers {
		offers[i].ownName = own[offers[i].ownName]
	}
	m.tools, m.notes = d.maker.makeItems(tools, m.ID, offers, m.tools), v.Notes
	m.pages = d.maker.unlistedPages(m)
	return m
}

// unvettedServer returns a server without items, because vetting failed.
func (d *Deck) unvettedServer(m *serverState, why error) *serverState {
	d.log.Error("remembered tools of the server are not shown", "server", m.ID, "err", why)
	return &serverState{Server: m.Server, scopes: m.scopes,
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
