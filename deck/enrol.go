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
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// A Deck contains all tools, prompts, resources and skills that can be called now, and handles the calls. It is safe
// for concurrent use.
type Deck struct {
	upstream         Upstream
	log              *slog.Logger
	maker            itemMaker
	journal          ledger.Journal
	stream           string
	owner            string // the principal whose connections are watched
	resultGuard      ResultGuard
	taskCards        []drawbridge.CardName // the shipped cards that may answer with a task
	searcher         *toolsearch.Finder
	guards           *guardChain
	interceptors     []Interceptor
	scanForeignCards bool
	outputs          *OutputLearner // nil learns nothing
	ownTasks         TaskBackend    // nil has no tasks
	// If approver is nil, calls that need an approval are refused.
	approver    Approver
	callLog     *audit.CallLog                                                          // nil records nothing
	boundary    atomic.Pointer[Boundary]                                                // nil without a workspace
	trail       *ReadTrail                                                              // nil stores nothing
	filterSkill func(context.Context, Server, json.RawMessage) (json.RawMessage, error) // nil shows all skills
	sealer      tokenSealer
	now         func() time.Time
	maxTools    int
	// ending is the context of New without its cancellation. EndSession derives its context from ending, so that it can
	// still unsubscribe when New's context has ended.
	ending context.Context
	// beforeList and beforeUnknown may be nil.
	beforeList    func(context.Context)
	beforeUnknown func(context.Context, drawbridge.Caller, string)

	view          atomic.Pointer[view]
	versions      atomic.Uint64
	listeners     eventListeners[Event]
	subscriptions subscriptionTable
	skills        *skillCache
	taskHolders   taskHolders
	linkOwners    naming.LinkOwners

	// mu serializes changes of the deck. Readers load the view without it.
	mu         sync.Mutex
	shipped    []*item
	configured bool            // Configure has succeeded at least once
	ledger     ledger.Snapshot // the live entries only; the journal stores all entries and grows forever
	keys       ledger.KeyGenerator
}

// New returns a deck without servers; [Deck.Configure] adds the servers. It reads the earlier enrolments from the
// journal. The error is the journal's, or a *drawbridge.Fault InvalidInput. The fault reports an unknown naming style,
// or two shipped cards with the same name.
func New(ctx context.Context, up Upstream, o Options) (*Deck, error) {
	d := &Deck{
		upstream: up, log: o.Logger, journal: o.Journal, stream: o.Stream, owner: o.Owner, approver: o.Approver,
		filterSkill: o.FilterSkill, trail: o.ReadTrail, ending: context.WithoutCancel(ctx),
		maker: itemMaker{up, o.Naming}, now: o.Now, maxTools: o.MaxTools, searcher: toolsearch.New(o.Discovery),
		skills: newSkillCache(), beforeList: o.BeforeList, beforeUnknown: o.BeforeUnknown,
	}
	if d.beforeUnknown == nil && d.beforeList != nil {
		d.beforeUnknown = func(ctx context.Context, _ drawbridge.Caller, _ string) { d.beforeList(ctx) }
	}
	if o.Spotlight == nil {
		o.Spotlight = func(drawbridge.Caller) bool { return false }
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.guards = newGuardChain(o.Guards, d.log)
	d.interceptors, d.scanForeignCards = slices.Clone(o.Interceptors), o.ScanForeignCards
	d.outputs, d.ownTasks = o.OutputLearner, o.OwnTasks
	if d.now == nil {
		d.now = time.Now
	}
	if d.maxTools == 0 {
		d.maxTools = DefaultMaxTools
	}
	switch o.Naming {
	case "", QualifiedNames, MCPNames, BareNames:
	default:
		return nil, &drawbridge.Fault{
			Kind: drawbridge.BuildFailed, Code: drawbridge.InvalidInput,
			Step: "make the deck", Err: fmt.Errorf("no such naming %q", o.Naming),
			Next: "use one of qualified, mcp, bare",
		}
	}
	d.callLog = audit.NewCallLog(o.Audit, d.log)
	d.resultGuard = ResultGuard{MarkFor: o.Spotlight, Inspect: o.Inspect, Holder: o.ResultHolder,
		RecordAction: d.callLog.RecordShieldAction, Log: d.log, Scanner: o.ResultScanner}
	d.sealer = newTokenSealer(o.SealKeys, d.now)
	for i, c := range slices.Concat(o.Cards, o.Tools) {
		it := shippedItem(c, i >= len(o.Cards))
		if indexOfCard(d.shipped, it.spec.Name) >= 0 {
			return nil, duplicateCardFault(it.spec.Name)
		}
		d.shipped = append(d.shipped, it)
		if supportsTask(it.spec.Definition) {
			d.taskCards = append(d.taskCards, it.spec.Name)
		}
	}
	if o.Boundary != nil {
		d.boundary.Store(&o.Boundary)
	}
	d.shipped = append(d.shipped, d.searchCards()...)
	for _, c := range o.Resources {
		it, err := ownTemplate(c)
		if err != nil {
			return nil, err
		}
		d.shipped = append(d.shipped, it)
	}
	if d.journal != nil {
		var err error
		if d.ledger, err = ledger.FoldStream(ctx, d.journal, d.stream); err != nil {
			return nil, fmt.Errorf("replay the ledger: %w", err)
		}
	}
	d.view.Store(newView(d.guards, d.shipped, nil, nil, nil, d.nextVersion))
	return d, nil
}

func (d *Deck) nextVersion() uint64 { return d.versions.Add(1) }

// Configure replaces the servers of the deck; servers are in configuration order. A server with an unchanged
// configuration keeps its listing. The tools of removed servers, and of servers whose configuration changed, are
// retired in the journal. If the journal fails, Configure returns its error, and the deck shows the same items as
// before.
func (d *Deck) Configure(ctx context.Context, servers []Server) error {
	rows := make(map[drawbridge.ServerID]string, len(servers))
	for _, s := range servers {
		rows[s.ID] = s.ConfigHash
	}
	return d.updateView(func(v *view) ([]*serverState, error) {
		var batch []ledger.Entry
		for _, e := range d.ledger.Live() {
			if row, ok := rows[e.Server]; !ok || row != e.Card.ConfigHash {
				batch = append(batch, d.retireEntry(e))
			}
		}
		if err := d.appendToLedger(ctx, batch); err != nil {
			return nil, err
		}
		members := make([]*serverState, 0, len(servers))
		for _, s := range servers {
			before := v.server(s.ID)
			m, err := d.configureServer(ctx, before, s)
			if err != nil {
				return nil, err
			}
			m.late = before == nil && d.configured || before != nil && before.late
			members = append(members, m)
		}
		for _, m := range v.servers {
			if _, ok := rows[m.ID]; !ok {
				d.subscriptions.ForgetServer(m.ID)
				d.skills.forgetServer(m.ID)
				d.taskHolders.ForgetServer(m.ID)
				d.linkOwners.ForgetServer(m.ID)
			}
		}
		d.configured = true
		return members, nil
	})
}

// configureServer returns the new state of a server. If the configuration is unchanged, the items of the previous state
// are used. Otherwise the items are from s.Remembered if it is set and of this configuration, or else from the ledger.
func (d *Deck) configureServer(ctx context.Context, before *serverState, s Server) (*serverState, error) {
	r := s.Remembered
	s.Remembered = nil
	if before != nil && before.ConfigHash == s.ConfigHash {
		same := *before
		same.Server = s
		return &same, nil
	}
	m := d.serverFromLedger(s)
	switch {
	case r == nil || !describes(r.Listing, s):
		return m, nil
	case r.Err != nil:
		return d.unvettedServer(m, r.Err), nil
	case r.Listing.ListedAt.IsZero():
		return d.applyLedgerListing(m, r.Vetted), nil
	}
	return d.applyListing(ctx, m, r.Listing, r.Vetted)
}

// serverFromLedger returns the state of a server without a listing. Its tools are the server's live entries in the
// ledger.
func (d *Deck) serverFromLedger(s Server) *serverState {
	m := &serverState{Server: s, scopes: []drawbridge.Scope{drawbridge.ServerScope(s.ID)}}
	all := d.ledger.LiveByServer(s.ID)
	live, _ := d.liveByTool(all)
	var offers []offeredItem
	for _, e := range all {
		if live[e.Card.Tool].Key == e.Key {
			offers = append(offers, offeredItem{ownName: e.Card.Tool, Name: rawjson.GetString(e.Card.Definition,
				"name"), Raw: e.Card.Definition, notForScripts: s.NotForScripts})
		}
	}
	m.tools = d.maker.makeItems(tools, s.ID, offers, nil, false)
	m.pages = d.maker.unlistedPages(m)
	return m
}

// Enrol replaces the items of a server with the items of the listing l. vetted contains these items in the form in
// which they may be shown. Enrol compares the tools with the server's live tools in the ledger, and appends the
// differences to the journal as one batch. Without a difference it appends nothing. Listeners are notified only
// if a list has changed. The listings of a server must be enrolled one after another, in the order in which they were
// received. The error is the journal's, or a *drawbridge.Fault NotFound. The fault means that the server is not
// configured, or that its configuration has changed since the listing. After an error nothing has changed.
func (d *Deck) Enrol(ctx context.Context, l drawbridge.Listing, vetted VettedListing) error {
	return d.updateView(func(v *view) ([]*serverState, error) {
		before := v.server(l.Server)
		if before == nil || before.ConfigHash != l.ConfigHash {
			return nil, notConfiguredFault(l.Server)
		}
		m, err := d.applyListing(ctx, before, l, vetted)
		if err != nil {
			return nil, err
		}
		return replaceServer(v.servers, m), nil
	})
}

// ServerOf returns the configured server that sent a listing. If the server is not configured, or its configuration has
// changed since the listing, the error is a *drawbridge.Fault NotFound.
func (d *Deck) ServerOf(l drawbridge.Listing) (Server, error) {
	m := d.view.Load().server(l.Server)
	if m == nil || m.ConfigHash != l.ConfigHash {
		return Server{}, notConfiguredFault(l.Server)
	}
	return m.Server, nil
}

func notConfiguredFault(id drawbridge.ServerID) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("enrol %s", id), Err: errors.New("the configuration has no such server now"),
	}
}

// applyListing returns the state of a server after the new listing l, and appends the changes of the server's tools to
// the journal. v contains the items of l in the form in which they may be shown.
func (d *Deck) applyListing(ctx context.Context, before *serverState, l drawbridge.Listing,
	v VettedListing) (*serverState, error) {
	said := l
	l.Info, l.Capabilities, l.Instructions = v.Info, v.Capabilities, v.Instructions
	m := &serverState{Server: before.Server, scopes: before.scopes, listing: &l, rawListing: &said, notes: v.Notes,
		late: before.late}
	offers, err := d.enrolTools(ctx, m.Server, m.selectOffers(tools, v.Tools, d.toolLimit(m.MaxTools), before.tools))
	if err != nil {
		return nil, err
	}
	m.tools = d.maker.makeItems(tools, m.ID, offers, before.tools, before.listing != nil || len(before.tools) > 0)
	known := before.listing != nil
	take := func(k itemKind, list []VettedItem, before []*item) []*item {
		return d.maker.makeItems(k, m.ID, m.selectOffers(k, list, 0, before), before, known)
	}
	m.prompts = take(prompts, v.Prompts, before.prompts)
	m.resources = take(resources, v.Resources, before.resources)
	m.templates = take(templates, v.Templates, before.templates)
	m.pages = d.maker.unlistedPages(m)
	skills := extensionSettings(l.Capabilities, mcp.ExtensionMembers()[0], mcp.ExtensionSkills)
	m.skills, m.directories = skills != nil, supportsDirectoryRead(skills)
	return m, nil
}

// RetireServer removes all items and the listing of a server, and retires its live tools in the journal. The server
// stays configured, and its next listing adds its items again. For a server that is not configured, RetireServer does
// nothing. The error is the journal's.
func (d *Deck) RetireServer(ctx context.Context, id drawbridge.ServerID) error {
	return d.updateView(func(v *view) ([]*serverState, error) {
		before := v.server(id)
		if before == nil {
			return nil, nil
		}
		var batch []ledger.Entry
		for _, e := range d.ledger.LiveByServer(id) {
			batch = append(batch, d.retireEntry(e))
		}
		if err := d.appendToLedger(ctx, batch); err != nil {
			return nil, err
		}
		return replaceServer(v.servers, &serverState{Server: before.Server, scopes: before.scopes, late: before.late}),
			nil
	})
}

// replaceServer returns a copy of members in which m replaces the member with the same ID.
func replaceServer(members []*serverState, m *serverState) []*serverState {
	out := slices.Clone(members)
	for i := range out {
		if out[i].ID == m.ID {
			out[i] = m
		}
	}
	return out
}

func (d *Deck) toolLimit(own int) int {
	if own != 0 {
		return own
	}
	return d.maxTools
}

// updateView calls f with the current view while it holds mu, and replaces the view with a view of the members that f
// returns. After it has released mu, it notifies the listeners of the changed lists. If f returns an error or nil
// members, the view does not change.
func (d *Deck) updateView(f func(v *view) ([]*serverState, error)) error {
	events, err := func() ([]Event, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		old := d.view.Load()
		members, err := f(old)
		if err != nil || members == nil {
			return nil, err
		}
		next := newView(d.guards, d.shipped, members, old, old, d.nextVersion)
		d.view.Store(next)
		d.logChanges(old, next)
		return changeEvents(old, next), nil
	}()
	d.listeners.notify(events...)
	return err
}

// Refresh creates a new view of the same servers, and notifies the listeners that all lists may have changed. It must
// be called when the set of items that a guard hides has changed.
func (d *Deck) Refresh() {
	d.mu.Lock()
	old := d.view.Load()
	next := newView(d.guards, d.shipped, old.servers, old, nil, d.nextVersion)
	d.view.Store(next)
	d.mu.Unlock()
	d.listeners.notify(changeEvents(old, next)...)
}

// logChanges logs the differences between two views that a person should know. These are new name clashes, one line for
// each pair of servers; changed numbers of omitted items; and new vetting notes.
func (d *Deck) logChanges(old, next *view) {
	for _, m := range next.servers {
		known := map[NameClash]bool{}
		for _, c := range old.clashesOf(m.ID) {
			known[c] = true
		}
		fresh := slices.DeleteFunc(next.clashesOf(m.ID), func(c NameClash) bool { return known[c] })
		for len(fresh) > 0 {
			first, count := fresh[0], len(fresh)
			fresh = slices.DeleteFunc(fresh, func(c NameClash) bool { return c.Winner == first.Winner })
			d.log.Warn("server has names that another server has", "server", m.ID, "winner", first.Winner,
				"count", count-len(fresh), "first", first.Name, "listed", first.Listed)
		}
	}
	for _, m := range next.servers {
		before := old.server(m.ID)
		if n := len(m.omitted); n > 0 && (before == nil || len(before.omitted) != n) {
			d.log.Warn("some items of the server are not on the deck", "server", m.ID, "count", n, "first",
				m.omitted[0].Reason)
		}
		d.logVetting(m, before)
	}
}

// changeEvents returns one event for each kind of list whose version differs between the two views. Resources and
// templates share one event.
func changeEvents(old, next *view) []Event {
	var out []Event
	differ := func(a, b *itemIndex) bool { return a.fullList.Version != b.fullList.Version }
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

// enrolTools appends the differences between the offers and the server's live tools to the journal, as one batch. It
// returns the offers with the definitions to be listed. If an offer differs from the live tool only in formatting or in
// the order of members, the live tool's bytes are listed. So a server that reorders the members of its tools does not
// change the list, and models can still use their prompt caches.
func (d *Deck) enrolTools(ctx context.Context, m Server, offers []offeredItem) ([]offeredItem, error) {
	all := d.ledger.LiveByServer(m.ID)
	live, batch := d.liveByTool(all)
	out := make([]offeredItem, 0, len(offers))
	var enrolled []ledger.Entry
	for _, o := range offers {
		e, ok := live[o.ownName]
		delete(live, o.ownName)
		if ok && sameJSON(e.Card.Definition, o.Raw) {
			o.Raw = e.Card.Definition
			out = append(out, o)
			continue
		}
		out = append(out, o)
		card := &ledger.EnrolledCard{Server: m.ID, Tool: o.ownName, ConfigHash: m.ConfigHash, Definition: o.Raw}
		key := d.contentKey(card)
		if ok && e.Key != key {
			batch = append(batch, d.retireEntry(e))
		}
		enrolled = append(enrolled, ledger.Entry{Op: ledger.OpEnrol, Key: key, Server: m.ID, Card: card, At: d.now()})
	}
	for _, e := range all {
		if gone, ok := live[e.Card.Tool]; ok && gone.Key == e.Key {
			batch = append(batch, d.retireEntry(e))
		}
	}
	return out, d.appendToLedger(ctx, append(batch, enrolled...))
}

// liveByTool returns the live entries of a server by tool name. A tool has several live entries if two processes
// enrolled different definitions of it. Then live has the last of these entries, and surplus has entries that retire
// the others.
func (d *Deck) liveByTool(all []ledger.Entry) (live map[string]ledger.Entry, surplus []ledger.Entry) {
	live = make(map[string]ledger.Entry, len(all))
	for _, e := range all {
		if earlier, ok := live[e.Card.Tool]; ok {
			surplus = append(surplus, d.retireEntry(earlier))
		}
		live[e.Card.Tool] = e
	}
	return live, surplus
}

// contentKey returns the card's content key. If a card of another tool already has this key, it returns a generated key
// instead. Two tools can have the same content key if a server's ID ends in "_".
func (d *Deck) contentKey(c *ledger.EnrolledCard) ledger.CardKey {
	key := c.Key()
	if e, ok := d.ledger.LiveEntry(key); ok && (e.Server != c.Server || e.Card.Tool != c.Tool) {
		return d.keys.Next(d.now())
	}
	return key
}

func (d *Deck) retireEntry(e ledger.Entry) ledger.Entry {
	return ledger.Entry{Op: ledger.OpRetire, Key: e.Key, Server: e.Server, At: d.now()}
}

// appendToLedger appends a batch of entries to the journal, if there is one, and then to d.ledger. It does nothing for
// an empty batch.
func (d *Deck) appendToLedger(ctx context.Context, batch []ledger.Entry) error {
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

// sameJSON reports whether two JSON objects have the same canonical form.
func sameJSON(a, b json.RawMessage) bool {
	return sameBytes(a, b) || bytes.Equal(rawjson.Canonical(a), rawjson.Canonical(b))
}
