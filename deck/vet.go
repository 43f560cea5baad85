package deck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/gate"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/deck/mishap"
	"github.com/drawbridge-mcp/drawbridge/deck/offer"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// vet has the vetter look at a listing. One that panics has said nothing.
func (d *Deck) vet(ctx context.Context, m Member, l drawbridge.Listing) (v Vetted, err error) {
	if d.vetter == nil {
		return offer.Unvetted(l), nil
	}
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("the vetter panicked, the listing is not shown", "server", m.ID, "panic", mishap.What(p), "at", mishap.Where())
			v, err = Vetted{}, fmt.Errorf("vet the listing of %s: panic", m.ID)
		}
	}()
	m.MaxTools = d.limit(m.MaxTools)
	if v, err = d.vetter.Vet(ctx, m, l); err != nil {
		return Vetted{}, fmt.Errorf("vet the listing of %s: %w", m.ID, err)
	}
	return v, nil
}

// vetSkills shows the skills of an answer as the vetter does: those of a list, or the one that was asked for.
func (d *Deck) vetSkills(ctx context.Context, server drawbridge.ServerID, result json.RawMessage) (_ json.RawMessage, err error) {
	v, ok := d.vetter.(SkillVetter)
	if !ok {
		return result, nil
	}
	m := d.view.Load().member(server)
	if m == nil { // it left while it was asked: by whose row would they be looked at?
		return nil, fmt.Errorf("vet the skills of %s: the configuration has no such server now", server)
	}
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("the vetter panicked, skills are not shown", "server", server, "panic", mishap.What(p), "at", mishap.Where())
			err = fmt.Errorf("vet the skills of %s: panic", server)
		}
	}()
	look := func(entry json.RawMessage) json.RawMessage {
		shown, e := v.VetSkill(ctx, m.Member, entry)
		if err = errors.Join(err, e); shown == nil || e != nil {
			return json.RawMessage("null")
		}
		return shown
	}
	result = label.Each(result, "skills", look)
	if entry := wire.Get(result, "skill"); entry != nil {
		if shown := look(entry); !sameBytes(shown, entry) {
			result = wire.Apply(result, wire.Put(shown, "skill"))
		}
	}
	return result, err
}

// Revet looks again at what servers listed last, all of them where none is named: after a change of what the vetter goes by.
// What comes of it is enrolled like a new listing. The error joins those of Enrol.
func (d *Deck) Revet(ctx context.Context, servers ...drawbridge.ServerID) error {
	var errs []error
	for _, m := range d.view.Load().members {
		if len(servers) == 0 || slices.Contains(servers, m.ID) {
			errs = append(errs, d.revet(ctx, m.ID))
		}
	}
	return errors.Join(errs...)
}

func (d *Deck) revet(ctx context.Context, id drawbridge.ServerID) error {
	defer d.turns.Take(id)()
	m := d.view.Load().member(id)
	if m == nil || m.said == nil {
		return nil
	}
	return d.enrol(ctx, m, *m.said)
}

// Listing gives what a server listed last, as it came; false where nobody knows.
func (d *Deck) Listing(id drawbridge.ServerID) (drawbridge.Listing, bool) {
	m := d.view.Load().member(id)
	if m == nil || m.said == nil {
		return drawbridge.Listing{}, false
	}
	return *m.said, true
}

// recalled is a member without a listing: its cards are those that the ledger has live, as far as they may be shown.
func (d *Deck) recalled(ctx context.Context, m *member) *member {
	if d.vetter == nil || len(m.tools) == 0 {
		return m
	}
	own := make(map[string]string, len(m.tools))
	l := drawbridge.Listing{Server: m.ID, Row: m.Row}
	for _, it := range m.tools {
		own[it.offer.Name] = it.spec.Tool
		l.Tools = append(l.Tools, it.offer.Raw)
	}
	v, err := d.vet(ctx, m.Member, l)
	if err != nil {
		return d.unvetted(m, err)
	}
	offers := m.sort(tools, v.Tools, 0, nil)
	for i := range offers {
		offers[i].Own = own[offers[i].Own]
	}
	m.tools, m.notes = d.maker.items(tools, m.ID, offers, m.tools), v.Notes
	m.pages = d.maker.pages(m)
	return m
}

// unvetted is a member of which nothing can be shown, since nobody could look at it.
func (d *Deck) unvetted(m *member, why error) *member {
	d.log.Error("what is remembered of a server is not shown", "server", m.ID, "err", why)
	return &member{Member: m.Member, scopes: m.scopes, leftOut: []LeftOut{{Kind: "listing", Reason: why.Error(), Code: "unvetted"}}}
}

// sort sorts out what of a list can be on the deck, and notes what cannot. Before is what the member had.
func (m *member) sort(k kind, list []Shown, most int, before []*item) []offer.Offer {
	offers, out := offer.Sort(k.word, k.member, list, most, func(i int) (offer.Offer, bool) {
		if i >= len(before) {
			return offer.Offer{}, false
		}
		return before[i].offer, true
	})
	m.leftOut = append(m.leftOut, out...)
	return offers
}

// bar refuses a call of what waits for a person, and one that comes back with something that we did not give out.
func (t target) bar(method string) (drawbridge.Verdict, error) {
	switch {
	case t.held != "":
		verdict := drawbridge.Verdict{Rule: "held", Reason: t.held, Next: t.next}
		return verdict, gate.Barred(method, t.spec, verdict, errors.New(t.held))
	case t.unfit != nil:
		return drawbridge.Verdict{Rule: "state", Reason: t.unfit.Error()}, invalid(method, t.unfit)
	}
	return drawbridge.Verdict{}, nil
}

// recordDone records what was done to a listing, as far as one listing may fill the audit.
func (d *Deck) recordDone(server drawbridge.ServerID, notes []Note, leftOut []LeftOut) {
	for _, n := range notes[:min(len(notes), maxRecorded)] {
		d.trail.Shield(server, n.Name, n.Did, n.Why)
	}
	for _, l := range leftOut[:min(len(leftOut), maxRecorded)] {
		if l.Code != "" {
			d.trail.Shield(server, l.Name, l.Code, l.Reason)
		}
	}
}

// params gives the params of a call as the server knows them.
func (t target) params(said json.RawMessage) json.RawMessage { return offer.Restore(said, t.names) }

// maxTold is how much of what was done to one listing is logged one by one.
const maxTold = 5

// maxRecorded is how much of it is in the audit.
const maxRecorded = 50

// tell logs and records what was done to a member's listing, and what the vetter left out, where that is new.
func (d *Deck) tell(m, before *member) {
	notes, leftOut := m.notes, m.leftOut
	if before != nil {
		notes, leftOut = offer.News(notes, before.notes), offer.News(leftOut, before.leftOut)
	}
	if before != nil { // else it is what an earlier process was told, and recorded
		d.recordDone(m.ID, notes, leftOut)
	}
	for i, n := range notes {
		if i == maxTold {
			d.log.Warn("more of what a server says was changed", "server", m.ID, "count", len(notes)-i)
			break
		}
		d.log.Warn("something of what a server says was changed", "server", m.ID, "kind", n.Kind, "name", clip(n.Name), "did", n.Did, "why", n.Why)
	}
	told := 0
	for _, l := range leftOut {
		if l.Code != "" && told < maxTold {
			told++
			d.log.Warn("something of what a server lists was left out", "server", m.ID, "kind", l.Kind, "name", clip(l.Name), "code", l.Code, "reason", l.Reason)
		}
	}
}
