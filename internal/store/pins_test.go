package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// pinsChildName is the name of a test binary that is to pin and accept for as long as it lives.
const pinsChildName = "store-pins-child"

// pinnedTools are the tools of the one server of pinsChild.
const pinnedTools = 3

func pinsPlace() store.PinKey { return store.PinKey{Origin: "/home/ada/mcp.json", Server: "fs"} }

// pinsChild changes what all tools of a server say, settles that, and accepts it, over and over; each in one step. It
// prints how many steps it has done as soon as the store has acknowledged one.
func pinsChild(location string) int {
	ctx := context.Background()
	err := func() error {
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		s, err := shield.New(shield.Options{})
		if err != nil {
			return err
		}
		db, err := store.Open(ctx, location, store.Options{})
		if err != nil {
			return err
		}
		pins, err := db.Pins(ctx, pinsPlace())
		if err != nil {
			return err
		}
		for step := stepOf(pins) + 1; ; step++ {
			done := fmt.Append(nil, step)
			work := func(pins map[string]shield.Pin) ([]shield.Pin, []byte, error) {
				changed, err := acceptAll(pins, step)
				return changed, done, err
			}
			if step%2 == 1 {
				work = func(pins map[string]shield.Pin) ([]shield.Pin, []byte, error) {
					return shield.ApplyPins(pins, nil, sayings(step), s.IsCosmetic,
						time.UnixMilli(int64(step))).Changed, done, nil
				}
			}
			if err := db.UpdatePins(ctx, pinsPlace(), work); err != nil {
				return err
			}
			fmt.Println(step)
		}
	}()
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// sayings are the tools as they are after so many steps.
func sayings(step int) (all []shield.ListedTool) {
	for i := range pinnedTools {
		name := fmt.Sprint("tool", i)
		all = append(all, shield.ListedTool{Tool: name,
			Definition: json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"Says %d."}`, name, step))})
	}
	return all
}

func acceptAll(pins map[string]shield.Pin, step int) (changed []shield.Pin, err error) {
	for _, p := range pins {
		if p.Pending == nil { // first sight
			p.At = time.UnixMilli(int64(step))
		} else if p, err = p.Accept(p.Pending.Hash, time.UnixMilli(int64(step))); err != nil {
			return nil, err
		}
		changed = append(changed, p)
	}
	return changed, nil
}

// stepOf says how many steps pins have come through; -1 where they disagree.
func stepOf(pins map[string]shield.Pin) int {
	step := 0
	for _, p := range pins {
		at := int(p.At.UnixMilli())
		if p.Pending != nil {
			at = int(p.Pending.At.UnixMilli())
		}
		if step != 0 && at != step {
			return -1
		}
		step = at
	}
	if len(pins) != 0 && len(pins) != pinnedTools {
		return -1
	}
	return step
}

// TestKilledWhilePinning kills a process at random points: while it pins what a server says, and while it accepts
// that. What was acknowledged is there, and of no list a part only.
func TestKilledWhilePinning(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		done := 0
		for round := range 8 {
			p := newChild(t, pinsChildName, location)
			p.start.Close()
			said := map[uint64]bool{}
			if round > 0 { // the first dies while it opens
				p.acknowledged(t, 1+rand.IntN(20), said)
			}
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.acknowledged(t, 1_000_000, said) // what it said before it died
			_ = p.Wait()                       // it was killed
			for step := range said {
				done = max(done, int(step))
			}
			db := open(t, location)
			var pins map[string]shield.Pin
			// In a transaction of its own: a server may still be at what its client asked before it died.
			err := db.UpdatePins(t.Context(), pinsPlace(), func(all map[string]shield.Pin) ([]shield.Pin,
				[]byte, error) {
				pins = all
				return nil, nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			lists, err := db.PinStates(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			step := stepOf(pins)
			if step < done {
				t.Fatalf("round %d: step %d was acknowledged, and the pins are of step %d (-1: of several)",
					round, done, step)
			}
			if got := string(lists[pinsPlace()].ListHash); step > 0 && got != fmt.Sprint(step) {
				t.Fatalf("round %d: the pins are of step %d, and the list of %q", round, step, got)
			}
			for name, p := range pins {
				if (p.Pending != nil) != (step%2 == 1 && step > 1) {
					t.Fatalf("round %d: after step %d %s is %+v", round, step, name, p)
				}
			}
		}
		if done == 0 {
			t.Error("no process got to pin anything")
		}
	})
}

// TestMovePins moves the pins of a server to another place, and none onto pins that are there.
func TestMovePins(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db, ctx := open(t, location), t.Context()
		pin := func(place store.PinKey, hash string) {
			t.Helper()
			if err := db.UpdatePins(ctx, place, func(map[string]shield.Pin) ([]shield.Pin, []byte, error) {
				return []shield.Pin{{Tool: "put", Hash: hash}}, []byte(hash), nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(when string, place store.PinKey, hash string) {
			t.Helper()
			pins, err := db.Pins(ctx, place)
			state, stateErr := db.PinState(ctx, place)
			if err != nil || stateErr != nil || pins["put"].Hash != hash || string(state.ListHash) != hash {
				t.Errorf("%s: at %s %q of the list %q, %v, %v; want %q", when, place.Origin, pins["put"].Hash,
					state.ListHash, err, stateErr, hash)
			}
		}
		link, file := store.PinKey{Origin: "/link", Server: "fs"}, store.PinKey{Origin: "/file", Server: "fs"}
		if err := db.MovePins(ctx, link, file); err != nil {
			t.Fatal(err)
		}
		want("nothing to move", file, "")
		pin(link, "one")
		if err := db.MovePins(ctx, link, file); err != nil {
			t.Fatal(err)
		}
		want("moved", file, "one")
		want("moved", link, "")
		pin(link, "two")
		if err := db.MovePins(ctx, link, file); err != nil {
			t.Fatal(err)
		}
		want("in the way", file, "one")
	})
}
