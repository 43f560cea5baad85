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

// A PinStore stores pins, the accepted definitions of items. store.DB implements it.
type PinStore interface {
	PinStates(ctx context.Context) (map[store.PinKey]store.PinState, error)
	PinState(ctx context.Context, place store.PinKey) (store.PinState, error)
	Pins(ctx context.Context, place store.PinKey) (map[string]shield.Pin, error)
	RecordPins(ctx context.Context, place store.PinKey, work store.PinUpdate) error
}

var _ PinStore = (*store.DB)(nil)

// PinOptions are the options of a PinChecker.
type PinOptions struct {
	// LockfilePath is the path of the lockfile; empty means that there is no lockfile. If LockfileRequired is true and
	// the file is missing, every comparison with it returns an error.
	LockfilePath     string
	LockfileRequired bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A PinChecker compares the listings of servers with their pins. Its methods may be called from several goroutines.
type PinChecker struct {
	store    PinStore
	cosmetic func(before, after json.RawMessage) bool
	now      func() time.Time
	lockfile *lockfile

	mu sync.Mutex
	// listings caches the states for listings that servers send. remembered caches the states for stored tools of an
	// earlier run.
	listings, remembered startupStates
}

// startupStates caches the pin states of all servers, so that the first listings of all servers need only one query.
// Each cached state is used once; afterwards the server's state is read from the store.
type startupStates struct {
	states map[store.PinKey]store.PinState
	used   map[store.PinKey]bool
	readAt time.Time
}

// startupStatesTTL is the period in which the cached states may be used.
const startupStatesTTL = 5 * time.Second

// NewPinChecker returns a checker. cosmetic reports whether a change of a definition needs no approval, see
// shield.Shield.IsCosmetic. The checker calls cosmetic only for changed definitions. NewPinChecker does not read the
// store or the lockfile.
func NewPinChecker(book PinStore, cosmetic func(before, after json.RawMessage) bool, o PinOptions) *PinChecker {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &PinChecker{store: book, cosmetic: cosmetic, now: o.Now, lockfile: &lockfile{path: o.LockfilePath,
		required: o.LockfileRequired}}
}

// A PinSubject identifies the list of items to compare: the server, its origin, and the part of its listing.
type PinSubject struct {
	store.PinKey
	// InLockfile reports whether the lockfile covers the server. The lockfile does not cover servers of projects,
	// because two projects may use the same name for different servers.
	InLockfile bool
}

// Reconcile compares a list of items of one part with its pins, and stores the pins that changed. The error is the
// store's, or a *drawbridge.Fault about the lockfile. If Reconcile returns an error, no item of the list may be shown.
func (k *PinChecker) Reconcile(ctx context.Context, s PinSubject, list []shield.ListedTool) (shield.PinOutcome, error) {
	l, err := k.lockedPins(s)
	if err != nil {
		return shield.PinOutcome{}, err
	}
	return k.reconcileWithLock(ctx, l, s, list)
}

// reconcileWithLock is like Reconcile, for the content l of a lockfile that was already read.
func (k *PinChecker) reconcileWithLock(ctx context.Context, l lockfilePins, s PinSubject, list []shield.ListedTool) (
	shield.PinOutcome, error) {
	locked := l.byPart[partKey{s.Server, s.Part}]
	sum := listHash(list, l.hash)
	known, err := k.lastState(ctx, &k.listings, s.PinKey)
	if err != nil {
		return shield.PinOutcome{}, err
	}
	if len(list) == 0 && known.ListHash == nil { // the server has no items of this part
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
	err = k.store.RecordPins(ctx, s.PinKey, func(pins map[string]shield.Pin) ([]shield.Pin, []byte, error) {
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

// comparePins compares a list with the pins and with the lockfile. If a server no longer sends instructions, its pinned
// instructions are not changed, because there are no new instructions to compare.
func (k *PinChecker) comparePins(s PinSubject, pins, locked map[string]shield.Pin,
	list []shield.ListedTool) shield.PinOutcome {
	if s.Part == shield.PartInstructions && len(pins)+len(locked) > 0 && len(list) == 1 &&
		rawjson.GetString(list[0].Definition, "instructions") == "" {
		list = nil
	}
	return shield.ApplyPins(pins, locked, list, k.cosmetic, k.now())
}

// PinsWithOffers returns the pins of a server if at least one pin has a changed definition that waits for a decision.
// Otherwise it returns nil. It is used for stored tools of an earlier run. The error is the store's.
func (k *PinChecker) PinsWithOffers(ctx context.Context, place store.PinKey) (map[string]shield.Pin, error) {
	list, err := k.lastState(ctx, &k.remembered, place)
	if err != nil || list.Offers == 0 {
		return nil, err
	}
	return k.store.Pins(ctx, place)
}

// lockedPins returns the content of the lockfile if the lockfile covers the subject, and an empty content otherwise.
func (k *PinChecker) lockedPins(s PinSubject) (lockfilePins, error) {
	if !s.InLockfile {
		return lockfilePins{}, nil
	}
	return k.lockfile.read()
}

// lastState returns the stored pin state of one part of a server. For each cache, the first call reads the states of
// all servers into the cache.
func (k *PinChecker) lastState(ctx context.Context, at *startupStates, place store.PinKey) (store.PinState, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at.states != nil && !at.used[place] && k.now().Sub(at.readAt) < startupStatesTTL {
		at.used[place] = true
		return at.states[place], nil
	}
	at.states = nil
	// Only the first read fetches all servers: the store may contain many servers that are not configured now.
	if !at.readAt.IsZero() {
		return k.store.PinState(ctx, place)
	}
	lists, err := k.store.PinStates(ctx)
	if err != nil {
		return store.PinState{}, err
	}
	at.readAt, at.states, at.used = k.now(), lists, map[store.PinKey]bool{place: true}
	return lists[place], nil
}

// InvalidateStates clears both caches, so that later states are read from the store.
func (k *PinChecker) InvalidateStates() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listings.states, k.remembered.states = nil, nil
}

// unchangedSettlement returns the outcome in which every definition of the list is shown as the server listed it.
func unchangedSettlement(list []shield.ListedTool) shield.PinOutcome {
	out := shield.PinOutcome{Shown: make([]json.RawMessage, len(list)), LeftOut: map[string]string{}}
	for i, l := range list {
		out.Shown[i] = l.Definition
	}
	return out
}

// listHash returns a hash of a list's definitions and of lock, the hash of the lockfile with which the list was
// compared.
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
