package vetting

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// A PinStore is where pins are kept: store.DB is one.
type PinStore interface {
	PinStates(ctx context.Context) (map[store.PinKey]store.PinState, error)
	PinState(ctx context.Context, place store.PinKey) (store.PinState, error)
	Pins(ctx context.Context, place store.PinKey) (map[string]shield.Pin, error)
	UpdatePins(ctx context.Context, place store.PinKey, work store.PinUpdate) error
}

var _ PinStore = (*store.DB)(nil)

// PinOptions are what a Keeper can do without.
type PinOptions struct {
	// LockfilePath is the path of the lockfile; empty is none. Named says that a person asked for it: then it has to
	// be there.
	LockfilePath     string
	LockfileRequired bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// A PinChecker settles lists. Its methods may be called from several goroutines.
type PinChecker struct {
	store    PinStore
	cosmetic func(before, after json.RawMessage) bool
	now      func() time.Time
	lockfile *lockfile

	mu sync.Mutex
	// listings is for lists that servers bring, recalled for those that are remembered of them.
	listings, remembered startupStates
}

// A startupStates has what the store said of all servers when it was first asked, at that time: each list of a start
// is looked up there once.
type startupStates struct {
	states map[store.PinKey]store.PinState
	used   map[store.PinKey]bool
	readAt time.Time
}

// startupStatesTTL is how long after it was first asked the store need not be asked again.
const startupStatesTTL = 5 * time.Second

// NewPinChecker makes a keeper. Cosmetic says whether nobody needs to see a change, see shield.Shield.Cosmetic; it is
// called for changes only. Nothing is read yet.
func NewPinChecker(book PinStore, cosmetic func(before, after json.RawMessage) bool, o PinOptions) *PinChecker {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &PinChecker{store: book, cosmetic: cosmetic, now: o.Now, lockfile: &lockfile{path: o.LockfilePath,
		required: o.LockfileRequired}}
}

// A PinSubject is what is settled.
type PinSubject struct {
	store.PinKey
	// InLockfile says that the lockfile speaks of it. It does not speak of what a project brings: two projects may
	// each have a server of one name.
	InLockfile bool
}

// Reconcile holds a list of a server's, of its tools or another part, against what is pinned of it, and keeps what
// comes of it. The error is the store's, or a
// *drawbridge.Fault about the lockfile; then nothing of the list may be shown.
func (k *PinChecker) Reconcile(ctx context.Context, s PinSubject, list []shield.ListedTool) (shield.PinOutcome, error) {
	l, err := k.lockedPins(s)
	if err != nil {
		return shield.PinOutcome{}, err
	}
	return k.reconcileWithLock(ctx, l, s, list)
}

// reconcileWithLock is Settle by what a lockfile says that was read before.
func (k *PinChecker) reconcileWithLock(ctx context.Context, l lockfilePins, s PinSubject, list []shield.ListedTool) (
	shield.PinOutcome, error) {
	locked := l.byPart[partKey{s.Server, s.Part}]
	sum := listHash(list, l.hash)
	known, err := k.lastState(ctx, &k.listings, s.PinKey)
	if err != nil {
		return shield.PinOutcome{}, err
	}
	if len(list) == 0 && known.ListHash == nil { // a part that the server does not have
		return unchangedSettlement(list), nil
	}
	if bytes.Equal(known.ListHash, sum) {
		if known.Offers == 0 {
			return unchangedSettlement(list), nil
		}
		pins, err := k.store.Pins(ctx, s.PinKey)
		if err != nil {
			return shield.PinOutcome{}, err
		}
		if out := k.comparePins(s, pins, locked, list); len(out.Changed) == 0 {
			return out, nil
		}
	}
	var out shield.PinOutcome
	err = k.store.UpdatePins(ctx, s.PinKey, func(pins map[string]shield.Pin) ([]shield.Pin, []byte, error) {
		out = k.comparePins(s, pins, locked, list)
		if out.TooMany {
			return out.Changed, []byte{}, nil
		}
		return out.Changed, sum, nil
	})
	if err != nil {
		return shield.PinOutcome{}, err
	}
	return out, nil
}

// comparePins settles a list. A server that gives no instructions now does not change those that it gave: there is
// nothing to show.
func (k *PinChecker) comparePins(s PinSubject, pins, locked map[string]shield.Pin,
	list []shield.ListedTool) shield.PinOutcome {
	if s.Part == shield.PartInstructions && len(pins)+len(locked) > 0 && len(list) == 1 &&
		rawjson.GetString(list[0].Definition, "instructions") == "" {
		list = nil
	}
	return shield.ApplyPins(pins, locked, list, k.cosmetic, k.now())
}

// PinsWithOffers gives what is pinned of a server where it offers something else, for a list of it that came from
// elsewhere than the server. The error is the store's.
func (k *PinChecker) PinsWithOffers(ctx context.Context, place store.PinKey) (map[string]shield.Pin, error) {
	list, err := k.lastState(ctx, &k.remembered, place)
	if err != nil || list.Offers == 0 {
		return nil, err
	}
	return k.store.Pins(ctx, place)
}

// lockedPins gives what the lockfile says now, as far as it speaks of what is settled.
func (k *PinChecker) lockedPins(s PinSubject) (lockfilePins, error) {
	if !s.InLockfile {
		return lockfilePins{}, nil
	}
	return k.lockfile.read()
}

// lastState says what was settled of a server. At a start all of it is read at once.
func (k *PinChecker) lastState(ctx context.Context, at *startupStates, place store.PinKey) (store.PinState, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at.states != nil && !at.used[place] && k.now().Sub(at.readAt) < startupStatesTTL {
		at.used[place] = true
		return at.states[place], nil
	}
	at.states = nil
	if !at.readAt.IsZero() { // of the others, which may be all that were ever settled, nothing is to be known
		return k.store.PinState(ctx, place)
	}
	lists, err := k.store.PinStates(ctx)
	if err != nil {
		return store.PinState{}, err
	}
	at.readAt, at.states, at.used = k.now(), lists, map[store.PinKey]bool{place: true}
	return lists[place], nil
}

// InvalidateStates has the store be asked again: it may say something else by now.
func (k *PinChecker) InvalidateStates() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listings.states, k.remembered.states = nil, nil
}

// unchangedSettlement shows a list as it is.
func unchangedSettlement(list []shield.ListedTool) shield.PinOutcome {
	out := shield.PinOutcome{Shown: make([]json.RawMessage, len(list)), LeftOut: map[string]string{}}
	for i, l := range list {
		out.Shown[i] = l.Definition
	}
	return out
}

// listHash names a list as it came, with the lockfile that it was held against.
func listHash(list []shield.ListedTool, lock []byte) []byte {
	h := sha256.New()
	var size [8]byte
	write := func(b []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	write(lock)
	for _, l := range list {
		write(l.Definition)
	}
	return h.Sum(nil)
}
