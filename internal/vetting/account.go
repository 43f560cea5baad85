// Package vetting decides which part of a server's listing may be shown. A [Pipeline] runs the stages: attest, pin,
// sanitise, and then trust, which hides servers in quarantine.
//
// Nothing is shown that no stage let through, and an object that no stage changed is shown byte for byte. Notes record
// every change for people. An honest listing that was vetted once costs a hash when it comes again, in this process or
// the next. If a stage cannot decide, for want of the store or the lockfile, nothing of the listing is shown.
//
// Trust accounts are shared through the store: an event counts at once in this process, and in others after they next
// read or write the account. An unreadable account quarantines its server. The package enrols nothing and asks no
// person: package shield finds changes and injected text, and people decide on them elsewhere.
package vetting

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/trust"
)

// trustAccountKind is the kind of the store accounts with the trust of servers, see gateway.trustAccountID.
const trustAccountKind = "trust"

const (
	// flushDelay is how long events of successful calls wait, so that several are written at once. flushRetryDelay is
	// the time until a failed write is tried again.
	flushDelay      = time.Second
	flushRetryDelay = 5 * time.Second
	// maxPendingEvents bounds the events of one server that wait for the store. While the store fails, further events
	// count in this process only.
	maxPendingEvents = 4 * trust.MaxEvents
)

// An AccountStore stores accounts, which one process at a time changes.
type AccountStore interface {
	// UpdateAccount calls work with the body of an account and the time, and stores the result. An error of work
	// changes nothing, and is returned as it is.
	UpdateAccount(ctx context.Context, kind, name string, work func(body []byte, now time.Time) ([]byte, error)) error

	// Accounts returns the bodies of all accounts of a kind, by name.
	Accounts(ctx context.Context, kind string) (map[string][]byte, error)
}

// TrustOptions are the options of TrustAccounts.
type TrustOptions struct {
	Rules trust.ScoreRules
	// Logger receives quarantines and failed writes; nil discards them.
	Logger *slog.Logger
}

// TrustAccounts are the trust accounts of servers. Its methods may be called from several goroutines.
type TrustAccounts struct {
	store AccountStore
	rules trust.ScoreRules
	log   *slog.Logger
	// wake makes Run check at once for work.
	wake chan struct{}
	// writing is held while the store is read or written, so that each pending event is written once, and none is lost.
	writing sync.Mutex

	mu       sync.Mutex
	accounts map[string]*trustAccount
	watchers map[int]func(ctx context.Context, name string)
	next     int
}

// A trustAccount is the account of one server.
type trustAccount struct {
	trust.EventHistory
	state trust.ScoreState
	// pending are the events that the store lacks; the first has waited since pendingSince. urgent reports that one of
	// them should be written at once.
	pending      []trust.Event
	pendingSince time.Time
	urgent       bool
	// announced reports whether watchers know of a quarantine, logged whether the log has it.
	announced, logged bool
}

// NewTrustAccounts returns accounts that are empty before Load.
func NewTrustAccounts(store AccountStore, o TrustOptions) *TrustAccounts {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &TrustAccounts{
		store: store, rules: o.Rules, log: o.Logger, wake: make(chan struct{}, 1),
		accounts: map[string]*trustAccount{}, watchers: map[int]func(context.Context, string){},
	}
}

// Load reads the accounts in the store, and keeps pending events. Call it at the start, and when another process may
// have changed an account. The error is the store's.
func (b *TrustAccounts) Load(ctx context.Context) error {
	b.writing.Lock() // an event that is written meanwhile would be neither in the bodies nor pending
	defer b.writing.Unlock()
	bodies, err := b.store.Accounts(ctx, trustAccountKind)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, body := range bodies {
		b.getOrAdd(name).merge(b.rules, parseTrustAccount(body).AsOf(time.Now()))
	}
	b.wakeRun()
	return nil
}

// parseTrustAccount reads an account. An unreadable one is an account in quarantine with the lowest score.
func parseTrustAccount(body []byte) trust.EventHistory {
	a, err := trust.ParseHistory(body)
	if err != nil {
		a.Events = []trust.Event{{
			At: time.Now().UTC().Truncate(time.Millisecond), Kind: trust.EventSummary, MissingScore: 1,
			Quarantined: true, Why: "its stored account cannot be read",
		}}
	}
	return a
}

// merge replaces the history by the stored one, with the pending events added.
func (a *trustAccount) merge(r trust.ScoreRules, kept trust.EventHistory) {
	a.EventHistory = kept.WithEvents(a.pending...)
	a.state = r.Fold(a.Events)
}

// getOrAdd returns the account of a name. The caller holds mu.
func (b *TrustAccounts) getOrAdd(name string) *trustAccount {
	a := b.accounts[name]
	if a == nil {
		a = &trustAccount{}
		b.accounts[name] = a
	}
	return a
}

// AddEvents records events of a server: name is that of its account, server its id. Events without a time happened now.
// A successful call is not recorded if the account has no events against the server.
func (b *TrustAccounts) AddEvents(name, server string, events ...trust.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.getOrAdd(name)
	a.Server = server
	if len(events) == 1 && events[0].Kind == trust.CallSucceeded && a.spotless() {
		return
	}
	now := time.Now()
	a.clampToNow(b.rules, now)
	for _, e := range events {
		if e.Kind == trust.CallSucceeded && b.rules.Score(a.state, now) == 1 {
			continue
		}
		if e.At.IsZero() {
			e.At = now
		}
		e.At = e.At.UTC().Truncate(time.Millisecond)
		if a.addEvent(b.rules, e) {
			a.queueEvent(e, now)
			b.wakeRun()
		}
	}
}

// spotless reports whether no event was ever recorded against the server: its score is always 1.
func (a *trustAccount) spotless() bool { return len(a.Events) == 0 }

// clampToNow moves events of the future to now, see trust.EventHistory.AsOf. Without such events it only looks at the
// last one.
func (a *trustAccount) clampToNow(r trust.ScoreRules, now time.Time) {
	if n := len(a.Events); n == 0 || !a.Events[n-1].At.After(now) {
		return
	}
	a.EventHistory = a.EventHistory.AsOf(now)
	a.pending = trust.EventHistory{Events: a.pending}.AsOf(now).Events
	a.state = r.Fold(a.Events)
}

// addEvent adds an event to the account, and reports whether it was new.
func (a *trustAccount) addEvent(r trust.ScoreRules, e trust.Event) bool {
	before := len(a.Events)
	if len(e.Marks) == 0 && (before == 0 || !e.At.Before(a.Events[before-1].At)) {
		// the event is new and the last one: the score need not be computed from the start
		a.Events = append(a.Events, e)
		a.state = r.Apply(a.state, e)
	} else if a.EventHistory = a.WithEvents(e); len(a.Events) > before {
		a.state = r.Fold(a.Events)
	}
	added := len(a.Events) > before
	a.EventHistory = a.Compacted(r)
	return added
}

// queueEvent queues an event for the store.
func (a *trustAccount) queueEvent(e trust.Event, now time.Time) {
	if len(a.pending) == 0 {
		a.pendingSince = now
	}
	if len(a.pending) < maxPendingEvents {
		a.pending = append(a.pending, e)
	}
	a.urgent = a.urgent || e.Kind != trust.CallSucceeded
}

// wakeRun makes Run check for work.
func (b *TrustAccounts) wakeRun() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// A TrustStatus is the present trust of a server.
type TrustStatus struct {
	// Score is between 0 and 1.
	Score float64
	// Quarantined reports that the server's cards must not be on a deck. It ends at Until unless further events extend
	// it.
	Quarantined bool
	Until       time.Time
	// Reasons are the last events that explain the score, the newest first.
	Reasons []trust.Event
}

// maxTrustReasons is how many reasons are shown.
const maxTrustReasons = 20

// Status returns the present trust of the server of an account.
func (b *TrustAccounts) Status(name string) TrustStatus {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if a == nil {
		return TrustStatus{Score: 1}
	}
	a.clampToNow(b.rules, now)
	return TrustStatus{
		Score: b.rules.Score(a.state, now), Quarantined: b.rules.IsQuarantined(a.state, now),
		Until:   b.rules.QuarantineEnd(a.state, now),
		Reasons: a.RecentReasons(maxTrustReasons),
	}
}

// Quarantined reports whether the server of an account is quarantined now.
func (b *TrustAccounts) Quarantined(name string) bool {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if a == nil {
		return false
	}
	a.clampToNow(b.rules, now)
	return b.rules.IsQuarantined(a.state, now)
}

// NamesFor returns the names of the accounts that were last written for a server of this name, sorted. A server that was
// changed has several.
func (b *TrustAccounts) NamesFor(server string) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, a := range b.accounts {
		if a.Server == server {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Reset clears the account of a server, and writes that to the store. The error is the store's.
func (b *TrustAccounts) Reset(ctx context.Context, name, server string) error {
	b.AddEvents(name, server, trust.Event{Kind: trust.TrustReset})
	return b.flushAccount(ctx, name)
}

// OnQuarantineChange registers f, which Run calls with its context and the name of each account whose quarantine begins
// or ends. f may block. stop removes it.
func (b *TrustAccounts) OnQuarantineChange(f func(ctx context.Context, name string)) (stop func()) {
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

// Run writes pending events, and calls watchers when quarantines begin and end, until ctx ends. Flush writes the rest.
func (b *TrustAccounts) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.wake:
		case <-timer.C:
		}
		b.flushDue(ctx, time.Now())
		b.notifyWatchers(ctx)
		timer.Stop()
		if at := b.nextWake(); !at.IsZero() {
			timer.Reset(time.Until(at))
		}
	}
}

// Flush writes all pending events. The error is the store's.
func (b *TrustAccounts) Flush(ctx context.Context) error {
	for _, name := range b.accountNames(func(a *trustAccount) bool { return len(a.pending) > 0 }) {
		if err := b.flushAccount(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// accountNames returns the sorted names of the accounts for which is returns true.
func (b *TrustAccounts) accountNames(is func(*trustAccount) bool) (names []string) {
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

// flushDue writes the accounts with urgent events, and those whose events waited long enough.
func (b *TrustAccounts) flushDue(ctx context.Context, now time.Time) {
	for _, name := range b.accountNames(func(a *trustAccount) bool {
		return len(a.pending) > 0 &&
			!a.flushAt().After(now)
	}) {
		err := b.flushAccount(ctx, name)
		if err == nil || ctx.Err() != nil {
			continue
		}
		b.log.Warn("write trust events", "error", err)
		b.mu.Lock()
		a := b.getOrAdd(name)
		a.urgent, a.pendingSince = false, now.Add(flushRetryDelay-flushDelay)
		b.mu.Unlock()
	}
}

// flushAt returns when the pending events are due.
func (a *trustAccount) flushAt() time.Time {
	if a.urgent {
		return a.pendingSince
	}
	return a.pendingSince.Add(flushDelay)
}

// flushAccount writes the pending events of an account, and reads the events of other processes.
func (b *TrustAccounts) flushAccount(ctx context.Context, name string) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	a := b.getOrAdd(name)
	a.clampToNow(b.rules, time.Now())
	pending, server := slices.Clone(a.pending), a.Server
	b.mu.Unlock()
	settled := time.Now() // stored events from a clock that has been set back since come before the pending ones
	for _, e := range pending {
		if e.At.Before(settled) {
			settled = e.At
		}
	}
	var kept trust.EventHistory
	err := b.store.UpdateAccount(ctx, trustAccountKind, name, func(body []byte, _ time.Time) ([]byte, error) {
		kept = parseTrustAccount(body).AsOf(settled).WithEvents(pending...).Compacted(b.rules)
		kept.Server = server
		return kept.Encode()
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a.pending = slices.Clone(a.pending[len(pending):])
	a.urgent = slices.ContainsFunc(a.pending, func(e trust.Event) bool { return e.Kind != trust.CallSucceeded })
	a.merge(b.rules, kept)
	return nil
}

// notifyWatchers calls the watchers of quarantines that began or ended.
func (b *TrustAccounts) notifyWatchers(ctx context.Context) {
	now := time.Now()
	changed := b.accountNames(func(a *trustAccount) bool {
		a.clampToNow(b.rules, now)
		return a.announced != b.rules.IsQuarantined(a.state, now)
	})
	for _, name := range changed {
		b.mu.Lock()
		a := b.accounts[name]
		a.announced = b.rules.IsQuarantined(a.state, now)
		var watchers []func(context.Context, string)
		for id := range b.next {
			if f := b.watchers[id]; f != nil {
				watchers = append(watchers, f)
			}
		}
		b.mu.Unlock()
		for _, f := range watchers {
			f(ctx, name)
		}
	}
}

// logQuarantine logs that the quarantine of a configured server began or ended, once.
func (b *TrustAccounts) logQuarantine(name string, server string) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if a == nil || a.logged == b.rules.IsQuarantined(a.state, now) {
		return
	}
	a.logged = !a.logged
	word := "a server is quarantined"
	if !a.logged {
		word = "a server is not quarantined any more"
	}
	b.log.Warn(word, "server", server, "trust", b.rules.Score(a.state, now), "until",
		b.rules.QuarantineEnd(a.state, now))
}

// nextWake returns when there is work next; zero for never.
func (b *TrustAccounts) nextWake() (at time.Time) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.accounts {
		moments := []time.Time{b.rules.QuarantineEnd(a.state, now)}
		if len(a.pending) > 0 {
			moments = append(moments, a.flushAt())
		}
		for _, m := range moments {
			if !m.IsZero() && (at.IsZero() || m.Before(at)) {
				at = m
			}
		}
	}
	return at
}
