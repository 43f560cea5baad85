package deck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/declare"
	"github.com/drawbridge-mcp/drawbridge/deck/fence"
	"github.com/drawbridge-mcp/drawbridge/deck/finder"
	"github.com/drawbridge-mcp/drawbridge/deck/gate"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/deck/offer"
	"github.com/drawbridge-mcp/drawbridge/deck/seal"
	"github.com/drawbridge-mcp/drawbridge/deck/skill"
	"github.com/drawbridge-mcp/drawbridge/deck/trail"
	"github.com/drawbridge-mcp/drawbridge/deck/vigil"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Deck is the cards that can be called now, with their siblings. Its methods may be called from several goroutines.
type Deck struct {
	up       Upstream
	log      *slog.Logger
	maker    maker
	journal  ledger.Journal
	stream   string
	watcher  string // the principal whose connections are watched
	fences   fence.Desk
	shipped  []*item
	finder   *finder.Finder
	gate     *gate.Gate
	approver Approver     // nil is nobody
	trail    *trail.Trail // nil leaves none
	vetter   Vetter       // nil shows what comes
	sealer   seal.Sealer
	now      func() time.Time
	maxTools int
	// beforeList and beforeUnknown may be nil.
	beforeList    func(context.Context)
	beforeUnknown func(context.Context, drawbridge.Caller, string)

	view      atomic.Pointer[view]
	versions  atomic.Uint64
	listeners vigil.Listeners[Event]
	watches   vigil.Vigils
	skills    skill.Kept
	held      seal.Held
	links     label.Links
	turns     offer.Turns

	// mu is held while the deck changes: one change at a time. Readers take the view.
	mu     sync.Mutex
	ledger ledger.Snapshot // what is live: the log is the journal's, and grows for ever
	keys   ledger.Keys
}

// New makes a deck that remembers what its journal says and shows no server yet: [Deck.Configure] says which there are.
// The error is the journal's, or a *drawbridge.Fault InvalidInput for a naming that there is not or two shipped cards of
// one name.
func New(ctx context.Context, up Upstream, o Options) (*Deck, error) {
	d := &Deck{
		up: up, log: o.Logger, journal: o.Journal, stream: o.Stream, watcher: o.Owner, approver: o.Approver, vetter: o.Vetter,
		maker: maker{up, o.Naming}, now: o.Now, maxTools: o.MaxTools, finder: finder.New(o.Discovery),
		beforeList: o.BeforeList, beforeUnknown: o.BeforeUnknown,
	}
	if d.beforeUnknown == nil && d.beforeList != nil {
		d.beforeUnknown = func(ctx context.Context, _ drawbridge.Caller, _ string) { d.beforeList(ctx) }
	}
	if o.Fence == nil {
		o.Fence = func(drawbridge.Caller) bool { return false }
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.gate = gate.New(o.Guards, d.log)
	if d.now == nil {
		d.now = time.Now
	}
	if d.maxTools == 0 {
		d.maxTools = DefaultMaxTools
	}
	switch o.Naming {
	case "", Qualified, MCP, Bare:
	default:
		return nil, &drawbridge.Fault{
			Kind: drawbridge.BuildFailed, Code: drawbridge.InvalidInput,
			Step: "make the deck", Err: fmt.Errorf("no such naming %q", o.Naming),
			Next: "one of qualified, mcp, bare",
		}
	}
	d.trail = trail.New(o.Audit, d.log)
	d.fences = fence.Desk{Always: o.Fence, Look: o.Look, Holder: o.Holder, Note: d.trail.Shield, Log: d.log}
	d.sealer = seal.New(o.StateKeys, d.now)
	for _, c := range o.Cards {
		spec := c.Spec()
		for _, other := range d.shipped {
			if other.spec.Name == spec.Name {
				return nil, &drawbridge.Fault{
					Kind: drawbridge.BuildFailed, Code: drawbridge.InvalidInput,
					Step: "make the deck", Err: fmt.Errorf("two shipped cards are named %q", spec.Name),
				}
			}
		}
		d.shipped = append(d.shipped, &item{
			kind: tools.word, spec: spec, offer: offer.Offer{Name: string(spec.Name), Raw: spec.Definition}, names: []drawbridge.CardName{spec.Name}, card: c,
		})
	}
	d.shipped = append(d.shipped, d.ownFinders()...)
	if d.journal != nil {
		var err error
		if d.ledger, err = ledger.Fold(ctx, d.journal, d.stream); err != nil {
			return nil, fmt.Errorf("replay the ledger: %w", err)
		}
	}
	d.view.Store(newView(d.gate, d.shipped, nil, nil, d.version))
	return d, nil
}

func (d *Deck) version() uint64 { return d.versions.Add(1) }

// Configure says which servers there are, in configuration order. What a server had listed stays, if its row is the same;
// the live cards of servers that are not named, or whose row is another, are retired. The error is the journal's, and then
// the deck shows what it showed before.
func (d *Deck) Configure(ctx context.Context, servers []Member) error {
	rows := make(map[drawbridge.ServerID]string, len(servers))
	for _, s := range servers {
		rows[s.ID] = s.Row
	}
	return d.change(func(v *view) ([]*member, error) {
		var batch []ledger.Entry
		for _, e := range d.ledger.Live() {
			if row, ok := rows[e.Server]; !ok || row != e.Card.Row {
				batch = append(batch, d.retire(e))
			}
		}
		if err := d.record(ctx, batch); err != nil {
			return nil, err
		}
		members := make([]*member, 0, len(servers))
		for _, s := range servers {
			m, err := d.configured(ctx, v.member(s.ID), s)
			if err != nil {
				return nil, err
			}
			members = append(members, m)
		}
		for _, m := range v.members {
			if _, ok := rows[m.ID]; !ok {
				d.watches.Forget(m.ID)
				d.skills.Forget(m.ID)
				d.held.Forget(m.ID)
				d.links.Forget(m.ID)
			}
		}
		return members, nil
	})
}

// configured is a server as a member: as it was before, if it was, else as it is remembered.
func (d *Deck) configured(ctx context.Context, before *member, s Member) (*member, error) {
	listing := s.Remembered
	s.Remembered = nil
	if before != nil && before.Row == s.Row {
		same := *before
		same.Member = s
		return &same, nil
	}
	m := d.remembered(s)
	if listing == nil || listing.Server != s.ID || listing.Row != s.Row {
		return d.recalled(ctx, m), nil
	}
	v, err := d.vet(ctx, m.Member, *listing)
	if err != nil {
		return d.unvetted(m, err), nil
	}
	return d.enrolled(ctx, m, *listing, v)
}

// remembered is a member before its listing: its cards are those that the ledger has live, as an earlier process left them.
func (d *Deck) remembered(s Member) *member {
	m := &member{Member: s, scopes: []drawbridge.Scope{drawbridge.ServerScope(s.ID)}}
	all := d.ledger.LiveOf(s.ID)
	live, _ := d.byTool(all)
	var offers []offer.Offer
	for _, e := range all {
		if live[e.Card.Tool].Key == e.Key {
			offers = append(offers, offer.Offer{Own: e.Card.Tool, Name: wire.GetText(e.Card.Definition, "name"), Raw: e.Card.Definition})
		}
	}
	m.tools = d.maker.items(tools, s.ID, offers, nil)
	m.pages = d.maker.pages(m)
	return m
}

// Enrol takes a listing: it compares the tools with what is live, records the differences as one batch, and shows the
// server as it is now. A listing that says the same as the last one records nothing and tells nobody. The error is a
// *drawbridge.Fault NotFound for a server that is not configured or was listed by another row, or else the vetter's or the
// journal's; then nothing has changed.
func (d *Deck) Enrol(ctx context.Context, l drawbridge.Listing) error {
	defer d.turns.Take(l.Server)()
	return d.enrol(ctx, d.view.Load().member(l.Server), l)
}

// enrol takes a listing of a member, in the server's turn. Others may enrol theirs while it is vetted.
func (d *Deck) enrol(ctx context.Context, m *member, l drawbridge.Listing) error {
	gone := &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("enrol %s", l.Server), Err: errors.New("the configuration has no such server now"),
	}
	if m == nil || m.Row != l.Row {
		return gone
	}
	vetted, err := d.vet(ctx, m.Member, l)
	if err != nil {
		return err
	}
	return d.change(func(v *view) ([]*member, error) {
		before := v.member(l.Server)
		if before == nil || before.Row != l.Row {
			return nil, gone
		}
		m, err := d.enrolled(ctx, before, l, vetted)
		if err != nil {
			return nil, err
		}
		return with(v.members, m), nil
	})
}

// enrolled is a member as a listing makes it, of which so much may be shown. What differs in its tools is recorded.
func (d *Deck) enrolled(ctx context.Context, before *member, l drawbridge.Listing, v Vetted) (*member, error) {
	said := l
	l.Info, l.Capabilities, l.Instructions = v.Info, v.Capabilities, v.Instructions
	m := &member{Member: before.Member, scopes: before.scopes, listing: &l, said: &said, notes: v.Notes}
	offers, err := d.enrolTools(ctx, m.Member, m.sort(tools, v.Tools, d.limit(m.MaxTools), before.tools))
	if err != nil {
		return nil, err
	}
	m.tools = d.maker.items(tools, m.ID, offers, before.tools)
	take := func(k kind, list []Shown, before []*item) []*item {
		return d.maker.items(k, m.ID, m.sort(k, list, 0, before), before)
	}
	m.prompts = take(prompts, v.Prompts, before.prompts)
	m.resources = take(resources, v.Resources, before.resources)
	m.templates = take(templates, v.Templates, before.templates)
	m.pages = d.maker.pages(m)
	skills := declare.Settings(l.Capabilities, wire.Declarations()[0], wire.ExtensionSkills)
	m.skills, m.directories = skills != nil, declare.ReadsDirectories(skills)
	return m, nil
}

// Withdraw retires the live cards of a server and forgets what it listed. It stays configured: its next listing brings
// everything back. A server that is not configured has nothing to withdraw. The error is the journal's.
func (d *Deck) Withdraw(ctx context.Context, id drawbridge.ServerID) error {
	return d.change(func(v *view) ([]*member, error) {
		before := v.member(id)
		if before == nil {
			return nil, nil
		}
		var batch []ledger.Entry
		for _, e := range d.ledger.LiveOf(id) {
			batch = append(batch, d.retire(e))
		}
		if err := d.record(ctx, batch); err != nil {
			return nil, err
		}
		return with(v.members, &member{Member: before.Member, scopes: before.scopes}), nil
	})
}

// with is members with m in the place of the member of the same name.
func with(members []*member, m *member) []*member {
	out := slices.Clone(members)
	for i := range out {
		if out[i].ID == m.ID {
			out[i] = m
		}
	}
	return out
}

func (d *Deck) limit(own int) int {
	if own != 0 {
		return own
	}
	return d.maxTools
}

// change makes the next view of the members that f gives, and tells what is different. f holds the deck; it gives nil
// where nothing changes.
func (d *Deck) change(f func(v *view) ([]*member, error)) error {
	events, err := func() ([]Event, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		old := d.view.Load()
		members, err := f(old)
		if err != nil || members == nil {
			return nil, err
		}
		next := newView(d.gate, d.shipped, members, old, d.version)
		d.view.Store(next)
		d.warn(old, next)
		return differences(old, next), nil
	}()
	d.listeners.Tell(events...)
	return err
}

// Review has the deck shown anew, and all callers told that the lists changed: what is hidden from whom is another matter
// now, as a guard knows who calls this.
func (d *Deck) Review() {
	d.mu.Lock()
	old := d.view.Load()
	next := newView(d.gate, d.shipped, old.members, nil, d.version)
	d.view.Store(next)
	d.mu.Unlock()
	d.listeners.Tell(differences(old, next)...)
}

// warn logs the clashes that are new, once for each two servers, and for each server how much of what it lists is not on
// the deck, where that changed.
func (d *Deck) warn(old, next *view) {
	for _, m := range next.members {
		known := map[Clash]bool{}
		for _, c := range old.clashesOf(m.ID) {
			known[c] = true
		}
		fresh := slices.DeleteFunc(next.clashesOf(m.ID), func(c Clash) bool { return known[c] })
		for len(fresh) > 0 {
			first, count := fresh[0], len(fresh)
			fresh = slices.DeleteFunc(fresh, func(c Clash) bool { return c.Winner == first.Winner })
			d.log.Warn("a server has names that an earlier one has", "server", m.ID, "winner", first.Winner,
				"count", count-len(fresh), "first", first.Name, "listed", first.Listed)
		}
	}
	for _, m := range next.members {
		before := old.member(m.ID)
		if n := len(m.leftOut); n > 0 && (before == nil || len(before.leftOut) != n) {
			d.log.Warn("some of what a server lists is not on the deck", "server", m.ID, "count", n, "first", m.leftOut[0].Reason)
		}
		d.tell(m, before)
	}
}

// differences are the events that lead from one view to the next.
func differences(old, next *view) []Event {
	var out []Event
	differ := func(a, b *shelf) bool { return a.whole.Version != b.whole.Version }
	if differ(old.tools, next.tools) {
		out = append(out, Event{Kind: ToolsChanged})
	}
	if differ(old.prompts, next.prompts) {
		out = append(out, Event{Kind: PromptsChanged})
	}
	if differ(old.resources, next.resources) || differ(old.templates, next.templates) {
		out = append(out, Event{Kind: ResourcesChanged})
	}
	return out
}

// enrolTools records how the offers differ from what is live of the server, as one batch, and gives the offers as they are
// live afterwards. One that says the same as before in other bytes stays as it was: a server that writes the members of
// its tools in a new order each time does not break every model's prompt cache.
func (d *Deck) enrolTools(ctx context.Context, m Member, offers []offer.Offer) ([]offer.Offer, error) {
	all := d.ledger.LiveOf(m.ID)
	live, batch := d.byTool(all)
	out := make([]offer.Offer, 0, len(offers))
	var enrolled []ledger.Entry
	for _, o := range offers {
		e, ok := live[o.Own]
		delete(live, o.Own)
		if ok && sameMeaning(e.Card.Definition, o.Raw) {
			o.Raw = e.Card.Definition
			out = append(out, o)
			continue
		}
		out = append(out, o)
		card := &ledger.Card{Server: m.ID, Tool: o.Own, Row: m.Row, Definition: o.Raw}
		key := d.keyOf(card)
		if ok && e.Key != key {
			batch = append(batch, d.retire(e))
		}
		enrolled = append(enrolled, ledger.Entry{Op: ledger.Enroll, Key: key, Server: m.ID, Card: card, At: d.now()})
	}
	for _, e := range all {
		if gone, ok := live[e.Card.Tool]; ok && gone.Key == e.Key {
			batch = append(batch, d.retire(e))
		}
	}
	return out, d.record(ctx, append(batch, enrolled...))
}

// byTool gives what is live of a server by tool. Two processes that saw two versions of one tool may both have enrolled
// theirs: the later counts, and surplus retires the others.
func (d *Deck) byTool(all []ledger.Entry) (live map[string]ledger.Entry, surplus []ledger.Entry) {
	live = make(map[string]ledger.Entry, len(all))
	for _, e := range all {
		if earlier, ok := live[e.Card.Tool]; ok {
			surplus = append(surplus, d.retire(earlier))
		}
		live[e.Card.Tool] = e
	}
	return live, surplus
}

// keyOf is the card's content key; a key of its own where another card has that one, as it can be where a server's name
// ends in "_".
func (d *Deck) keyOf(c *ledger.Card) ledger.Key {
	key := c.Key()
	if e, ok := d.ledger.Get(key); ok && (e.Server != c.Server || e.Card.Tool != c.Tool) {
		return d.keys.Next(d.now())
	}
	return key
}

func (d *Deck) retire(e ledger.Entry) ledger.Entry {
	return ledger.Entry{Op: ledger.Retire, Key: e.Key, Server: e.Server, At: d.now()}
}

// record appends a batch to the journal, and then to the ledger. An empty batch touches neither.
func (d *Deck) record(ctx context.Context, batch []ledger.Entry) error {
	if len(batch) == 0 {
		return nil
	}
	if d.journal != nil {
		stored, err := d.journal.Append(ctx, d.stream, batch)
		if err != nil {
			return fmt.Errorf("record in the ledger: %w", err)
		}
		batch = stored
	} else {
		for i := range batch {
			batch[i].Seq = d.ledger.HighWater() + 1 + uint64(i)
		}
	}
	d.ledger = d.ledger.With(batch...)
	return nil
}

// sameMeaning says whether two JSON objects say the same.
func sameMeaning(a, b json.RawMessage) bool {
	return sameBytes(a, b) || bytes.Equal(wire.Canonical(a), wire.Canonical(b))
}
