package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
)

// PinStore contains the methods of a store for the pinned definitions of servers.
type PinStore interface {
	PinStates(ctx context.Context) (map[store.PinKey]store.PinState, error)
	PinState(ctx context.Context, place store.PinKey) (store.PinState, error)
	Pins(ctx context.Context, place store.PinKey) (map[string]shield.Pin, error)
	UpdatePins(ctx context.Context, place store.PinKey, work store.PinUpdate) error
	RecordPins(ctx context.Context, place store.PinKey, work store.PinUpdate) error
}

// setPins returns a PinUpdate that stores the given pins and the given list hash. The PinUpdate ignores the current
// pins.
func setPins(settled string, pins ...shield.Pin) store.PinUpdate {
	return func(map[string]shield.Pin) ([]shield.Pin, []byte, error) { return pins, []byte(settled), nil }
}

func testPins(t *testing.T, p OpenStore) {
	s, other := p(), p()
	at := time.Date(2027, 1, 2, 3, 4, 5, 6e6, time.UTC)
	first := shield.Pin{Tool: "put", Definition: json.RawMessage(`{ "name":"put"}`), Hash: "sha256:1",
		Origin: shield.PinnedFirstSeen, At: at}
	second := shield.Pin{Tool: "odd \"name\" 日本", Definition: json.RawMessage(`{"x":1,"x":2}`), Hash: "sha256:2",
		Origin: shield.PinnedCosmetic, At: at,
		Pending: &shield.PendingChange{Definition: json.RawMessage(`{}`), Hash: "sha256:3", At: at.Add(time.Minute),
			Rejected: true}}
	place := store.PinKey{Origin: "/home/ada/mcp.json", Server: "fs"}
	elsewhere := store.PinKey{Origin: "/work/mcp.json", Server: "fs"}
	requireNoError(t, s.UpdatePins(t.Context(), place, setPins("one", first, second)))
	prompts := store.PinKey{Origin: place.Origin, Server: "fs", Part: "prompt"}
	requireNoError(t, s.RecordPins(t.Context(), elsewhere, setPins("two", first)))
	requireNoError(t, s.UpdatePins(t.Context(), prompts, setPins("three", first)))
	changed := second
	changed.Pending = &shield.PendingChange{Definition: json.RawMessage(`{"n":2}`), Hash: "sha256:4", At: at}
	requireNoError(t, other.UpdatePins(t.Context(), place, func(pins map[string]shield.Pin) ([]shield.Pin,
		[]byte, error) {
		if diff := cmp.Diff(map[string]shield.Pin{"put": first, second.Tool: second}, pins); diff != "" {
			t.Errorf("in the transaction (-want +got):\n%s", diff)
		}
		return []shield.Pin{changed}, nil, nil
	}))
	got, err := s.Pins(t.Context(), place)
	requireNoError(t, err)
	if diff := cmp.Diff(map[string]shield.Pin{"put": first, second.Tool: changed}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	lists, err := s.PinStates(t.Context())
	requireNoError(t, err)
	want := map[store.PinKey]store.PinState{place: {ListHash: []byte("one"), Offers: 1},
		elsewhere: {ListHash: []byte("two")}, prompts: {ListHash: []byte("three")}}
	if diff := cmp.Diff(want, lists); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
	one := map[store.PinKey]store.PinState{}
	for at := range want {
		one[at], err = s.PinState(t.Context(), at)
		requireNoError(t, err)
	}
	if diff := cmp.Diff(want, one); diff != "" {
		t.Errorf("one by one (-want +got):\n%s", diff)
	}
	if none, err := s.PinState(t.Context(), store.PinKey{Origin: place.Origin, Server: "db"}); err != nil ||
		none.ListHash != nil || none.Offers != 0 {
		t.Errorf("of a server that is not pinned: %v, %v", none, err)
	}
	if none, err := s.Pins(t.Context(), store.PinKey{Origin: place.Origin, Server: "db"}); err != nil || len(none) > 0 {
		t.Errorf("of a server that was never seen: %v, %v", none, err)
	}
}

func testPinsAreKeptWholeOrNotAtAll(t *testing.T, p OpenStore) {
	s := p()
	place := store.PinKey{Origin: "o", Server: "fs"}
	no := errors.New("the server says something else by now")
	err := s.UpdatePins(t.Context(), place, func(map[string]shield.Pin) ([]shield.Pin, []byte, error) {
		return []shield.Pin{{Tool: "put"}}, []byte("one"), no
	})
	if err != no {
		t.Errorf("%v, want the error of the work itself", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = s.UpdatePins(ctx, place, func(map[string]shield.Pin) ([]shield.Pin, []byte, error) {
		cancel()
		return []shield.Pin{{Tool: "put"}}, []byte("one"), nil
	})
	if err == nil {
		t.Error("it was kept after its caller had gone")
	}
	pins, err := p().Pins(t.Context(), place)
	requireNoError(t, err)
	lists, err := p().PinStates(t.Context())
	requireNoError(t, err)
	if len(pins)+len(lists) > 0 {
		t.Errorf("something of it was kept: %v, %v", pins, lists)
	}
}

// testPinsOneAfterTheOther tests that concurrent updates of the pins of one server run one after the other.
func testPinsOneAfterTheOther(t *testing.T, p OpenStore) {
	const writers, each = 4, 5
	place := store.PinKey{Origin: "o", Server: "fs"}
	var all sync.WaitGroup
	for w := range writers {
		s := p()
		all.Go(func() {
			for i := range each {
				err := s.UpdatePins(t.Context(), place, func(pins map[string]shield.Pin) ([]shield.Pin, []byte, error) {
					return []shield.Pin{{Tool: fmt.Sprint(w, " ", i), Hash: fmt.Sprint(len(pins))}}, nil, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	pins, err := p().Pins(t.Context(), place)
	requireNoError(t, err)
	seen := map[string]bool{}
	for _, pin := range pins {
		seen[pin.Hash] = true
	}
	if len(pins) != writers*each || len(seen) != writers*each {
		t.Errorf("%d pins, made beside %d different numbers of others, want %d", len(pins), len(seen), writers*each)
	}
}
