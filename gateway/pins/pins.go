// Package pins holds what servers list against what their tools said before, and against the lockfile.
//
// It promises that a list is settled in one step of the store, whoever else settles it, and that a list which was settled
// before costs a hash of it and no more. Where it cannot look, into the store or into the lockfile, it says so, and the list
// is not to be shown. It asks nobody and decides nothing: package shield does, and a person.
package pins

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Book is where pins are kept: store.DB is one.
type Book interface {
	PinLists(ctx context.Context) (map[store.PinPlace]store.PinList, error)
	PinList(ctx context.Context, place store.PinPlace) (store.PinList, error)
	Pins(ctx context.Context, place store.PinPlace) (map[string]shield.Pin, error)
	ChangePins(ctx context.Context, place store.PinPlace, work store.PinWork) error
}

var _ Book = (*store.DB)(nil)

// Options are what a Keeper can do without.
type Options struct {
	// Lock is the path of the lockfile; empty is none. Named says that a person asked for it: then it has to be there.
	Lock  string
	Named bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// A Keeper settles lists. Its methods may be called from several goroutines.
type Keeper struct {
	book     Book
	cosmetic func(before, after json.RawMessage) bool
	now      func() time.Time
	lock     *lockfile

	mu sync.Mutex
	// settled is for lists that servers bring, recalled for those that are remembered of them.
	settled, recalled start
}

// A start has what the store said of all servers when it was first asked, at that time: each list of a start is looked up there
// once.
type start struct {
	first  map[store.PinPlace]store.PinList
	looked map[store.PinPlace]bool
	asked  time.Time
}

// startTime is how long after it was first asked the store need not be asked again.
const startTime = 5 * time.Second

// New makes a keeper. Cosmetic says whether nobody needs to see a change, see shield.Shield.Cosmetic; it is called for changes
// only. Nothing is read yet.
func New(book Book, cosmetic func(before, after json.RawMessage) bool, o Options) *Keeper {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Keeper{book: book, cosmetic: cosmetic, now: o.Now, lock: &lockfile{path: o.Lock, named: o.Named}}
}

// A Subject is what is settled.
type Subject struct {
	store.PinPlace
	// Locked says that the lockfile speaks of it. It does not speak of what a project brings: two projects may each have a
	// server of one name.
	Locked bool
}

// Settle holds a list of a server's, of its tools or another part, against what is pinned of it, and keeps what comes of it. The error is the store's, or a
// *drawbridge.Fault about the lockfile; then nothing of the list may be shown.
func (k *Keeper) Settle(ctx context.Context, s Subject, list []shield.Listed) (shield.Settlement, error) {
	l, err := k.locks(s)
	if err != nil {
		return shield.Settlement{}, err
	}
	return k.settleBy(ctx, l, s, list)
}

// settleBy is Settle by what a lockfile says that was read before.
func (k *Keeper) settleBy(ctx context.Context, l locks, s Subject, list []shield.Listed) (shield.Settlement, error) {
	locked := l.of[lockPlace{s.Server, s.Part}]
	sum := sumOf(list, l.sum)
	known, err := k.known(ctx, &k.settled, s.PinPlace)
	if err != nil {
		return shield.Settlement{}, err
	}
	if len(list) == 0 && known.Settled == nil { // a part that the server does not have
		return shown(list), nil
	}
	if bytes.Equal(known.Settled, sum) {
		if known.Offers == 0 {
			return shown(list), nil
		}
		pins, err := k.book.Pins(ctx, s.PinPlace)
		if err != nil {
			return shield.Settlement{}, err
		}
		if out := k.settle(s, pins, locked, list); len(out.Changed) == 0 {
			return out, nil
		}
	}
	var out shield.Settlement
	err = k.book.ChangePins(ctx, s.PinPlace, func(pins map[string]shield.Pin) ([]shield.Pin, []byte, error) {
		out = k.settle(s, pins, locked, list)
		if out.Crowded {
			return out.Changed, []byte{}, nil
		}
		return out.Changed, sum, nil
	})
	if err != nil {
		return shield.Settlement{}, err
	}
	return out, nil
}

// settle settles a list. A server that gives no instructions now does not change those that it gave: there is nothing to show.
func (k *Keeper) settle(s Subject, pins, locked map[string]shield.Pin, list []shield.Listed) shield.Settlement {
	if s.Part == shield.PartInstructions && len(pins)+len(locked) > 0 && len(list) == 1 && wire.GetText(list[0].Definition, "instructions") == "" {
		list = nil
	}
	return shield.Settle(pins, locked, list, k.cosmetic, k.now())
}

// Offered gives what is pinned of a server where it offers something else, for a list of it that came from elsewhere than the
// server. The error is the store's.
func (k *Keeper) Offered(ctx context.Context, place store.PinPlace) (map[string]shield.Pin, error) {
	list, err := k.known(ctx, &k.recalled, place)
	if err != nil || list.Offers == 0 {
		return nil, err
	}
	return k.book.Pins(ctx, place)
}

// locks gives what the lockfile says now, as far as it speaks of what is settled.
func (k *Keeper) locks(s Subject) (locks, error) {
	if !s.Locked {
		return locks{}, nil
	}
	return k.lock.read()
}

// known says what was settled of a server. At a start all of it is read at once.
func (k *Keeper) known(ctx context.Context, at *start, place store.PinPlace) (store.PinList, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at.first != nil && !at.looked[place] && k.now().Sub(at.asked) < startTime {
		at.looked[place] = true
		return at.first[place], nil
	}
	at.first = nil
	if !at.asked.IsZero() { // of the others, which may be all that were ever settled, nothing is to be known
		return k.book.PinList(ctx, place)
	}
	lists, err := k.book.PinLists(ctx)
	if err != nil {
		return store.PinList{}, err
	}
	at.asked, at.first, at.looked = k.now(), lists, map[store.PinPlace]bool{place: true}
	return lists[place], nil
}

// Refresh has the store be asked again: it may say something else by now.
func (k *Keeper) Refresh() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settled.first, k.recalled.first = nil, nil
}

// shown shows a list as it is.
func shown(list []shield.Listed) shield.Settlement {
	out := shield.Settlement{Shown: make([]json.RawMessage, len(list)), LeftOut: map[string]string{}}
	for i, l := range list {
		out.Shown[i] = l.Definition
	}
	return out
}

// sumOf names a list as it came, with the lockfile that it was held against.
func sumOf(list []shield.Listed, lock []byte) []byte {
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
