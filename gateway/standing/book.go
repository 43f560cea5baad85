// Package standing is the book that a process keeps of how its servers behave: it notes what happens, has it in the store, and
// tells when a server is to leave the deck and when it may come back.
//
// What was noted counts at once, and is in the store soon after. Several processes may keep the same accounts: each has what
// the others noted when it next writes or reads its own. An account that cannot be read is one of a server that is not trusted.
package standing

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/trust"
)

// Kind is the kind of the accounts, which are by what servers are started or reached as.
const Kind = "trust"

const (
	// gather is how long calls that succeeded wait for others, to be written with them; again is when a write is tried again.
	gather = time.Second
	again  = 5 * time.Second
	// most is how many events of a server wait for the store: while it is away the others count in this process only.
	most = 4 * trust.Kept
)

// A Store keeps accounts that one process at a time changes.
type Store interface {
	// Change gives work the body of an account and the time, and keeps what it gives. An error of work changes nothing, and
	// comes back as it is.
	Change(ctx context.Context, kind, name string, work func(body []byte, now time.Time) ([]byte, error)) error

	// Accounts gives the bodies of all accounts of a kind, by name.
	Accounts(ctx context.Context, kind string) (map[string][]byte, error)
}

// Options are what a book can do without.
type Options struct {
	Rules trust.Rules
	// Logger is told of quarantines, and of what cannot be written; nil is silence.
	Logger *slog.Logger
}

// A Book has the accounts of servers. Its methods may be called from several goroutines.
type Book struct {
	store Store
	rules trust.Rules
	log   *slog.Logger
	// wake has Run look at once.
	wake chan struct{}
	// writing is held by who writes or reads the store: what waits is written once, and is not lost on the way.
	writing sync.Mutex

	mu       sync.Mutex
	accounts map[string]*account
	watchers map[int]func(name string)
	next     int
}

// An account is what the book has of one server.
type account struct {
	trust.Account
	state trust.State
	// pending are events that the store does not have, since when the first of them waits; urgent says that one of them
	// should not.
	pending []trust.Event
	since   time.Time
	urgent  bool
	// told says that watchers know of a quarantine.
	told bool
}

// New makes a book that has read nothing. It needs the store.
func New(store Store, o Options) *Book {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Book{
		store: store, rules: o.Rules, log: o.Logger, wake: make(chan struct{}, 1),
		accounts: map[string]*account{}, watchers: map[int]func(string){},
	}
}

// Read reads what the store has, beside what is still to be written. It is for the beginning, and for when another process may
// have changed an account. The error is the store's.
func (b *Book) Read(ctx context.Context) error {
	b.writing.Lock() // what is written meanwhile would be neither in what was read nor in what waits
	defer b.writing.Unlock()
	bodies, err := b.store.Accounts(ctx, Kind)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, body := range bodies {
		b.of(name).take(b.rules, read(body).Settled(time.Now()))
	}
	b.rouse()
	return nil
}

// read reads an account. One that cannot be read has nothing in its favour.
func read(body []byte) trust.Account {
	a, err := trust.ReadAccount(body)
	if err != nil {
		a.Events = []trust.Event{{
			At: time.Now().UTC().Truncate(time.Millisecond), Kind: trust.Summary, Lost: 1, Held: true, Why: "what was kept of it cannot be read",
		}}
	}
	return a
}

// take puts what the store has in the place of what was known, but for what it does not have yet.
func (a *account) take(r trust.Rules, kept trust.Account) {
	a.Account = kept.With(a.pending...)
	a.state = r.Fold(a.Events)
}

// of gives the account of a name. It needs mu.
func (b *Book) of(name string) *account {
	a := b.accounts[name]
	if a == nil {
		a = &account{}
		b.accounts[name] = a
	}
	return a
}

// Note takes note of what happened with a server: name is that of its account, server what it is called. Moments that are
// zero are now. A call that succeeded is nothing to note where nothing speaks against the server.
func (b *Book) Note(name, server string, events ...trust.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.of(name)
	a.Server = server
	if len(events) == 1 && events[0].Kind == trust.Succeeded && a.spotless() {
		return
	}
	now := time.Now()
	a.settle(b.rules, now)
	for _, e := range events {
		if e.Kind == trust.Succeeded && b.rules.Score(a.state, now) == 1 {
			continue
		}
		if e.At.IsZero() {
			e.At = now
		}
		e.At = e.At.UTC().Truncate(time.Millisecond)
		if a.add(b.rules, e) {
			a.wait(e, now)
			b.rouse()
		}
	}
}

// spotless says that nothing ever spoke against the server: it is trusted as far as any at every time.
func (a *account) spotless() bool { return len(a.Events) == 0 }

// settle has nothing be later than now, see trust.Account.Settled. Where nothing is, it costs a look at the last event.
func (a *account) settle(r trust.Rules, now time.Time) {
	if n := len(a.Events); n == 0 || !a.Events[n-1].At.After(now) {
		return
	}
	a.Account = a.Account.Settled(now)
	a.pending = trust.Account{Events: a.pending}.Settled(now).Events
	a.state = r.Fold(a.Events)
}

// add takes an event into the account, and says whether it counts.
func (a *account) add(r trust.Rules, e trust.Event) bool {
	before := len(a.Events)
	if len(e.Marks) == 0 && (before == 0 || !e.At.Before(a.Events[before-1].At)) {
		a.Events = append(a.Events, e) // nothing to look for, and nothing to fold anew
		a.state = r.After(a.state, e)
	} else if a.Account = a.With(e); len(a.Events) > before {
		a.state = r.Fold(a.Events)
	}
	added := len(a.Events) > before
	a.Account = a.Short(r)
	return added
}

// wait has an event wait for the store.
func (a *account) wait(e trust.Event, now time.Time) {
	if len(a.pending) == 0 {
		a.since = now
	}
	if len(a.pending) < most {
		a.pending = append(a.pending, e)
	}
	a.urgent = a.urgent || e.Kind != trust.Succeeded
}

// rouse has Run look at what there is to do.
func (b *Book) rouse() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// A Standing is how a server stands.
type Standing struct {
	// Score is from 0 to 1.
	Score float64
	// Quarantined says that its cards are not to be on a deck, until Until if nothing more happens.
	Quarantined bool
	Until       time.Time
	// Reasons are the last events that explain the score, the newest first.
	Reasons []trust.Event
}

// reasons is how many reasons are shown.
const reasons = 20

// Of says how the server of an account stands now.
func (b *Book) Of(name string) Standing {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if a == nil {
		return Standing{Score: 1}
	}
	a.settle(b.rules, now)
	return Standing{
		Score: b.rules.Score(a.state, now), Quarantined: b.rules.Quarantined(a.state, now), Until: b.rules.Until(a.state, now),
		Reasons: a.Reasons(reasons),
	}
}

// Quarantined says whether the server of an account is quarantined now.
func (b *Book) Quarantined(name string) bool {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if a == nil {
		return false
	}
	a.settle(b.rules, now)
	return b.rules.Quarantined(a.state, now)
}

// Reset notes that a person forgave a server everything, and has it in the store. The error is the store's.
func (b *Book) Reset(ctx context.Context, name, server string) error {
	b.Note(name, server, trust.Event{Kind: trust.Reset})
	return b.write(ctx, name)
}

// Watch has f told the name of each account whose quarantine begins or ends, by Run, one after another, and may take its time.
// The function that it gives ends that.
func (b *Book) Watch(f func(name string)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.next
	b.next++
	b.watchers[id] = f
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, id)
	}
}

// Run writes what was noted, and tells watchers at the moments when quarantines begin and end, until ctx ends. What is not
// written then is for Flush.
func (b *Book) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.wake:
		case <-timer.C:
		}
		b.writeDue(ctx, time.Now())
		b.tell()
		timer.Stop()
		if at := b.due(); !at.IsZero() {
			timer.Reset(time.Until(at))
		}
	}
}

// Flush writes what is not written. The error is the store's.
func (b *Book) Flush(ctx context.Context) error {
	for _, name := range b.names(func(a *account) bool { return len(a.pending) > 0 }) {
		if err := b.write(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// names gives the accounts of which something is true, in their order.
func (b *Book) names(is func(*account) bool) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, a := range b.accounts {
		if is(a) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// writeDue writes what should not wait, and what has waited.
func (b *Book) writeDue(ctx context.Context, now time.Time) {
	for _, name := range b.names(func(a *account) bool { return len(a.pending) > 0 && !a.dueAt().After(now) }) {
		err := b.write(ctx, name)
		if err == nil || ctx.Err() != nil {
			continue
		}
		b.log.Warn("what was noted of a server is not in the store yet", "error", err)
		b.mu.Lock()
		a := b.of(name)
		a.urgent, a.since = false, now.Add(again-gather)
		b.mu.Unlock()
	}
}

// dueAt is when what waits is to be written.
func (a *account) dueAt() time.Time {
	if a.urgent {
		return a.since
	}
	return a.since.Add(gather)
}

// write puts what waits into the store, and takes from there what others put.
func (b *Book) write(ctx context.Context, name string) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	a := b.of(name)
	a.settle(b.rules, time.Now())
	pending, server := slices.Clone(a.pending), a.Server
	b.mu.Unlock()
	settled := time.Now() // what the store has of a clock that was put back comes before what is noted by this one
	for _, e := range pending {
		if e.At.Before(settled) {
			settled = e.At
		}
	}
	var kept trust.Account
	err := b.store.Change(ctx, Kind, name, func(body []byte, _ time.Time) ([]byte, error) {
		kept = read(body).Settled(settled).With(pending...).Short(b.rules)
		kept.Server = server
		return kept.Text()
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a.pending = slices.Clone(a.pending[len(pending):])
	a.urgent = slices.ContainsFunc(a.pending, func(e trust.Event) bool { return e.Kind != trust.Succeeded })
	a.take(b.rules, kept)
	return nil
}

// tell tells watchers of the quarantines that began and ended.
func (b *Book) tell() {
	now := time.Now()
	changed := b.names(func(a *account) bool {
		a.settle(b.rules, now)
		return a.told != b.rules.Quarantined(a.state, now)
	})
	for _, name := range changed {
		b.mu.Lock()
		a := b.accounts[name]
		a.told = b.rules.Quarantined(a.state, now)
		word := "a server is quarantined"
		if !a.told {
			word = "a server is not quarantined any more"
		}
		b.log.Warn(word, "server", a.Server, "trust", b.rules.Score(a.state, now), "until", b.rules.Until(a.state, now))
		var watchers []func(string)
		for id := range b.next {
			if f := b.watchers[id]; f != nil {
				watchers = append(watchers, f)
			}
		}
		b.mu.Unlock()
		for _, f := range watchers {
			f(name)
		}
	}
}

// due is when there is something to do next; zero for never.
func (b *Book) due() (at time.Time) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.accounts {
		moments := []time.Time{b.rules.Until(a.state, now)}
		if len(a.pending) > 0 {
			moments = append(moments, a.dueAt())
		}
		for _, m := range moments {
			if !m.IsZero() && (at.IsZero() || m.Before(at)) {
				at = m
			}
		}
	}
	return at
}
