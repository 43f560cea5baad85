// Package vetting decides which part of a server's listing may be shown. A [Pipeline] runs the stages: attest, pin and
// sanitise. It then checks the server's trust, and hides the listings of servers in quarantine.
//
// Only items that the stages allow are shown, and an item that no stage changed is shown byte for byte. Notes report
// every change to people. The result for a listing is stored. If the same listing is sent again, also to a later
// process, only its hash is computed. If a stage cannot decide, because the store or the lockfile is missing, no part
// of the listing is shown.
//
// A trust account contains the events that raise or lower the trust in a server. Processes share trust accounts through
// the store. An event takes effect at once in its own process. It takes effect in another process when that process
// next reads or writes the account. If an account cannot be parsed, its server is in quarantine. The package adds no
// servers and asks no person. Package shield finds changes and injected text, and other packages ask people to decide
// about them.
package vetting

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/trust"
)

// trustAccountKind is the kind of account under which the store contains the trust accounts of servers, see
// gateway.trustAccountID.
const trustAccountKind = "trust"

const (
	// flushDelay is the delay before events of successful calls are written to the store, so that several events are
	// written at once. flushRetryDelay is the delay before a failed write is retried.
	flushDelay      = time.Second
	flushRetryDelay = 5 * time.Second
	// maxPendingEvents is the maximum number of events of one server that wait to be written to the store. If the store
	// fails for long, later events take effect only in this process.
	maxPendingEvents = 4 * trust.MaxEvents
)

// An AccountStore stores accounts. Only one process at a time can change an account.
type AccountStore interface {
	// UpdateAccount calls work with the body of an account and the current time, and stores the body that work returns.
	// If work returns an error, nothing is stored, and UpdateAccount returns the same error.
	UpdateAccount(ctx context.Context, kind, name string, work func(body []byte, now time.Time) ([]byte, error)) error

	// Accounts returns the bodies of all accounts of a kind, by name.
	Accounts(ctx context.Context, kind string) (map[string][]byte, error)
}

// TrustOptions are the options of TrustAccounts.
type TrustOptions struct {
	Rules trust.ScoreRules
	// Logger logs the begin and end of quarantines, and failed writes; nil discards the messages.
	Logger *slog.Logger
}

// TrustAccounts manages the trust accounts of servers. Its methods may be called from several goroutines.
type TrustAccounts struct {
	store AccountStore
	rules trust.ScoreRules
	log   *slog.Logger
	// wake makes Run check for work at once.
	wake chan struct{}
	// writing is locked during each access to the store, so that each pending event is written exactly once.
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
	// pending are the events that are not in the store yet. pendingSince is the time at which the first of these events
	// was added. urgent reports whether the pending events should be written at once.
	pending      []trust.Event
	pendingSince time.Time
	urgent       bool
	// announced reports whether the server was quarantined when the watchers were last called. logged reports whether
	// it was quarantined when its quarantine was last logged.
	announced, logged bool
}

// NewTrustAccounts returns TrustAccounts that contains no accounts. Load reads the accounts from the store.
func NewTrustAccounts(store AccountStore, o TrustOptions) *TrustAccounts {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &TrustAccounts{
		store: store, rules: o.Rules, log: o.Logger, wake: make(chan struct{}, 1),
		accounts: map[string]*trustAccount{}, watchers: map[int]func(context.Context, string){},
	}
}

// Load reads the accounts from the store, and adds the pending events to them. Call it at the start, and whenever
// another process may have changed an account. The error is the store's.
func (b *TrustAccounts) Load(ctx context.Context) error {
	b.writing.Lock() // without the lock, an event that is being written could get lost
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

// parseTrustAccount parses an account. For an invalid account, it returns a history with a quarantine and the lowest
// score.
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

// merge replaces the account's history by kept, the history in the store, and adds the pending events.
func (a *trustAccount) merge(r trust.ScoreRules, kept trust.EventHistory) {
	a.EventHistory = kept.WithEvents(a.pending...)
	a.state = r.Fold(a.Events)
}

// getOrAdd returns the account with a name, and creates it if necessary. The caller must have locked mu.
func (b *TrustAccounts) getOrAdd(name string) *trustAccount {
	a := b.accounts[name]
	if a == nil {
		a = &trustAccount{}
		b.accounts[name] = a
	}
	return a
}

// AddEvents adds events to a server's account. name is the name of the account, and server the id of the server. An
// event without a time gets the current time. A successful call is ignored while the score is 1, the highest score.
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

// spotless reports whether the account has no events. Its score is then always 1.
func (a *trustAccount) spotless() bool { return len(a.Events) == 0 }

// clampToNow sets the time of events that are in the future to now, see trust.EventHistory.AsOf. Such events exist if
// the clock was set back. It changes nothing if the last event is not in the future.
func (a *trustAccount) clampToNow(r trust.ScoreRules, now time.Time) {
	if n := len(a.Events); n == 0 || !a.Events[n-1].At.After(now) {
		return
	}
	a.EventHistory = a.EventHistory.AsOf(now)
	a.pending = trust.EventHistory{Events: a.pending}.AsOf(now).Events
	a.state = r.Fold(a.Events)
}

// addEvent adds an event to the account, and reports whether the event was new.
func (a *trustAccount) addEvent(r trust.ScoreRules, e trust.Event) bool {
	before := len(a.Events)
	if len(e.Marks) == 0 && (before == 0 || !e.At.Before(a.Events[before-1].At)) {
		// The event is new and the latest, so the score need not be computed again from the start.
		a.Events = append(a.Events, e)
		a.state = r.Apply(a.state, e)
	} else if a.EventHistory = a.WithEvents(e); len(a.Events) > before {
		a.state = r.Fold(a.Events)
	}
	added := len(a.Events) > before
	a.EventHistory = a.Compacted(r)
	return added
}

// queueEvent adds an event to the pending events, unless there are maxPendingEvents already.
func (a *trustAccount) queueEvent(e trust.Event, now time.Time) {
	if len(a.pending) == 0 {
		a.pendingSince = now
	}
	if len(a.pending) < maxPendingEvents {
		a.pending = append(a.pending, e)
	}
	a.urgent = a.urgent || e.Kind != trust.CallSucceeded
}

// wakeRun makes Run check for pending events and changed quarantines at once.
func (b *TrustAccounts) wakeRun() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// A TrustStatus is the trust of a server at the time of the call of Status.
type TrustStatus struct {
	// Score is between 0 and 1.
	Score float64
	// Quarantined reports whether the server's cards must be hidden. The quarantine ends at Until, unless further
	// events extend it.
	Quarantined bool
	Until       time.Time
	// Reasons are the latest events that explain the score, newest first.
	Reasons []trust.Event
}

// maxTrustReasons is the maximum number of reasons in a TrustStatus.
const maxTrustReasons = 20

// Status returns the current trust of the server whose account has this name.
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

// Quarantined reports whether the server whose account has this name is quarantined now.
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

// NamesFor returns the sorted names of the accounts that belong to a server with this id. A server has several accounts
// if its configuration was changed.
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

// Reset sets the score of a server's account to 1, the highest score, and writes the change to the store. The error is
// the store's.
func (b *TrustAccounts) Reset(ctx context.Context, name, server string) error {
	b.AddEvents(name, server, trust.Event{Kind: trust.TrustReset})
	return b.flushAccount(ctx, name)
}

// OnQuarantineChange registers f. When the quarantine of an account begins or ends, Run calls f with its context and
// the account's name. f may block. stop removes f.
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

// Run writes pending events, and calls the functions of OnQuarantineChange when quarantines begin and end, until ctx
// ends. Call Flush after Run to write the remaining events.
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

// accountNames returns the sorted names of the accounts for which the function is returns true. It calls that function
// with mu locked.
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

// flushDue writes the accounts whose pending events must be written now, see flushAt. A failed write is logged and
// retried after flushRetryDelay.
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

// flushAt returns the time at which the pending events must be written.
func (a *trustAccount) flushAt() time.Time {
	if a.urgent {
		return a.pendingSince
	}
	return a.pendingSince.Add(flushDelay)
}

// flushAccount writes the pending events of an account to the store. It also adds the events that other processes
// stored to the account in memory.
func (b *TrustAccounts) flushAccount(ctx context.Context, name string) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	b.mu.Lock()
	a := b.getOrAdd(name)
	a.clampToNow(b.rules, time.Now())
	pending, server := slices.Clone(a.pending), a.Server
	b.mu.Unlock()
	settled := time.Now() // stored events get no later time than pending events, even if a clock was set back
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

// notifyWatchers calls the watchers for each account whose quarantine began or ended since the previous call of
// notifyWatchers.
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

// logQuarantine logs that the quarantine of a configured server began or ended. Each change is logged once.
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

// nextWake returns the time at which Run must next write events or check a quarantine; zero if there is no such time.
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
