package vetting_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
	"github.com/google/go-cmp/cmp"
)

// counted counts how often the store is asked, and fails where it is told to.
type counted struct {
	*store.DB
	mu                           sync.Mutex
	lists, places, reads, writes int
	fail                         error
}

func (c *counted) PinStates(ctx context.Context) (map[store.PinKey]store.PinState, error) {
	if err := c.count(&c.lists); err != nil {
		return nil, err
	}
	return c.DB.PinStates(ctx)
}

func (c *counted) PinState(ctx context.Context, place store.PinKey) (store.PinState, error) {
	if err := c.count(&c.places); err != nil {
		return store.PinState{}, err
	}
	return c.DB.PinState(ctx, place)
}

func (c *counted) Pins(ctx context.Context, place store.PinKey) (map[string]shield.Pin, error) {
	if err := c.count(&c.reads); err != nil {
		return nil, err
	}
	return c.DB.Pins(ctx, place)
}

func (c *counted) RecordPins(ctx context.Context, place store.PinKey, work store.PinUpdate) error {
	if err := c.count(&c.writes); err != nil {
		return err
	}
	return c.DB.RecordPins(ctx, place, work)
}

func (c *counted) count(n *int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
	return c.fail
}

// taken returns the counts since the last time.
func (c *counted) taken() string {
	text := fmt.Sprintf("%d lists, %d places, %d reads, %d writes", c.lists, c.places, c.reads, c.writes)
	c.lists, c.places, c.reads, c.writes = 0, 0, 0, 0
	return text
}

func newBook(t testing.TB) *counted {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &counted{DB: db}
}

func newKeeper(t testing.TB, book vetting.PinStore, o vetting.PinOptions) *vetting.PinChecker {
	t.Helper()
	s, err := shield.New(shield.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return vetting.NewPinChecker(book, s.IsCosmetic, o)
}

func subject(id drawbridge.ServerID) vetting.PinSubject {
	return vetting.PinSubject{PinKey: store.PinKey{Origin: "/home/ada/mcp.json", Server: id}, InLockfile: true}
}

// says are tools, given as names and descriptions.
func says(words ...string) (all []shield.ListedTool) {
	for i := 0; i < len(words); i += 2 {
		all = append(all, shield.ListedTool{Tool: words[i],
			Definition: json.RawMessage(fmt.Sprintf(`{"name":%q,"description":%q}`, words[i], words[i+1]))})
	}
	return all
}

func settle(t testing.TB, k *vetting.PinChecker, s vetting.PinSubject, list []shield.ListedTool) shield.PinOutcome {
	t.Helper()
	out, err := k.Reconcile(t.Context(), s, list)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAListThatWasSettledCostsAHash(t *testing.T) {
	book := newBook(t)
	k := newKeeper(t, book, vetting.PinOptions{})
	list := says("put", "Puts a file.", "get", "Gets a file.")
	settle(t, k, subject("fs"), list)
	settle(t, k, subject("db"), list)
	book.taken()
	// Another process starts.
	again := newKeeper(t, book, vetting.PinOptions{})
	for _, id := range []drawbridge.ServerID{"fs", "db"} {
		out := settle(t, again, subject(id), list)
		if diff := cmp.Diff([]json.RawMessage{list[0].Definition, list[1].Definition}, out.Shown); diff != "" ||
			len(out.Held) > 0 {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	if got := book.taken(); got != "1 lists, 0 places, 0 reads, 0 writes" {
		t.Errorf("a start asked the store for %s", got)
	}
	for _, id := range []drawbridge.ServerID{"fs", "never-seen", "db"} {
		if offered, err := again.PinsWithOffers(t.Context(), subject(id).PinKey); len(offered) > 0 || err != nil {
			t.Errorf("%s offers %v, %v", id, offered, err)
		}
	}
	if got := book.taken(); got != "1 lists, 0 places, 0 reads, 0 writes" {
		t.Errorf("what a start remembers of lists asked the store for %s", got)
	}
	settle(t, again, subject("fs"), list)
	if got := book.taken(); got != "0 lists, 1 places, 0 reads, 0 writes" {
		t.Errorf("a list that says the same asked the store for %s", got)
	}
	if out := settle(t, again, subject("fs"), says("put", "Puts a file on the disk.", "get", "Gets a file.")); len(
		out.Held) != 1 {
		t.Error("a changed tool was not held")
	}
	if got := book.taken(); got != "0 lists, 1 places, 0 reads, 1 writes" {
		t.Errorf("a changed list asked the store for %s", got)
	}
	if out := settle(t, again, subject("fs"), says("put", "Puts a file on the disk.", "get", "Gets a file.")); len(
		out.Held) != 1 {
		t.Error("a tool that was held is not held any more")
	}
	if got := book.taken(); got != "0 lists, 1 places, 1 reads, 0 writes" {
		t.Errorf("a list of which something waits asked the store for %s", got)
	}
}

// TestWhatOneProcessAcceptsAnotherShows has one process wait for what is decided in another.
func TestWhatOneProcessAcceptsAnotherShows(t *testing.T) {
	book := newBook(t)
	k := newKeeper(t, book, vetting.PinOptions{})
	settle(t, k, subject("fs"), says("put", "Puts a file."))
	changed := says("put", "Puts a file on the disk.")
	settle(t, k, subject("fs"), changed)
	err := book.DB.UpdatePins(t.Context(), subject("fs").PinKey, func(all map[string]shield.Pin) ([]shield.Pin,
		[]byte, error) {
		p, err := all["put"].Accept(all["put"].Pending.Hash, time.Now())
		return []shield.Pin{p}, nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if out := settle(t, k, subject("fs"), changed); len(out.Held) > 0 ||
		string(out.Shown[0]) != string(changed[0].Definition) {
		t.Errorf("after it was accepted: held %v, shown %s", out.Held, out.Shown)
	}
}

func TestServersOfOneNameInTwoFilesAreTwo(t *testing.T) {
	k := newKeeper(t, newBook(t), vetting.PinOptions{})
	settle(t, k, subject("fs"), says("put", "Puts a file."))
	other := vetting.PinSubject{PinKey: store.PinKey{Origin: "/work/.mcp.json", Server: "fs"}}
	if out := settle(t, k, other, says("put", "Puts a file on the disk.")); len(out.Held) > 0 {
		t.Error("what another file's server says was held")
	}
}

func TestWithoutTheStoreNothingIsSettled(t *testing.T) {
	book := newBook(t)
	k := newKeeper(t, book, vetting.PinOptions{})
	settle(t, k, subject("fs"), says("put", "Puts a file."))
	book.fail = errors.New("the disk is gone")
	for _, list := range [][]shield.ListedTool{says("put", "Puts a file."), says("put", "Puts it elsewhere.")} {
		if out, err := k.Reconcile(t.Context(), subject("fs"), list); !errors.Is(err, book.fail) || len(out.Shown) > 0 {
			t.Errorf("%v, shown %s", err, out.Shown)
		}
	}
}

func TestTheLockfileCountsMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drawbridge.lock")
	k := newKeeper(t, newBook(t), vetting.PinOptions{LockfilePath: path})
	old, other, third := says("put", "Puts a file."), says("put", "Puts a file on the disk."),
		says("put", "Puts a file in the cloud.")
	write := func(l shield.ListedTool) {
		t.Helper()
		_, err := vetting.EditLockfile(path, func([]shield.LockedTool) []shield.LockedTool {
			return []shield.LockedTool{{Server: "fs", Tool: l.Tool, Definition: l.Definition}}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	held := func(s vetting.PinSubject, list []shield.ListedTool, want int) {
		t.Helper()
		if out := settle(t, k, s, list); len(out.Held) != want {
			t.Errorf("%s: %d held, want %d", list[0].Definition, len(out.Held), want)
		}
	}
	held(subject("fs"), old, 0) // there is no lockfile
	write(other[0])
	held(subject("fs"), old, 1)
	held(subject("fs"), other, 0)
	held(subject("fs"), third, 1)
	write(third[0])
	held(subject("fs"), third, 0)
	held(subject("db"), old, 0) // of which it says nothing
	project := vetting.PinSubject{PinKey: store.PinKey{Origin: "/work/.mcp.json", Server: "fs"}}
	held(project, old, 0)
}

func TestALockfileThatCannotBeReadShowsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drawbridge.lock")
	for _, tt := range []struct {
		name  string
		text  *string
		named bool
		want  string
	}{
		{"not there", nil, false, ""},
		{"named, and not there", nil, true,
			"read the lockfile: stat PATH: no such file or directory (drawbridge lock write creates it)"},
		{"broken", text("{\"drawbridge.lock\":1}\nx\n"), false,
			"read the lockfile: PATH:2: not a line of a lockfile: invalid character 'x' looking for beginning of value (correct the file; until then no server is shown)"},
		{"empty", text(""), false,
			`read the lockfile: PATH:1: a lockfile begins with {"drawbridge.lock":1} (correct the file; until then no server is shown)`},
	} {
		_ = os.Remove(path)
		if tt.text != nil {
			if err := os.WriteFile(path, []byte(*tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		k := newKeeper(t, newBook(t), vetting.PinOptions{LockfilePath: path, LockfileRequired: tt.named})
		out, err := k.Reconcile(t.Context(), subject("fs"), says("put", "Puts a file."))
		switch {
		case tt.want == "":
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		case err == nil || len(out.Shown) > 0:
			t.Errorf("%s: shown %s", tt.name, out.Shown)
		case strings.ReplaceAll(err.Error(), path, "PATH") != tt.want:
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

func text(s string) *string { return &s }

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "drawbridge.lock")
	lock := func(tools ...shield.LockedTool) (before int) {
		t.Helper()
		_, err := vetting.EditLockfile(path, func(said []shield.LockedTool) []shield.LockedTool {
			before = len(said)
			return append(said, tools...)
		})
		if err != nil {
			t.Fatal(err)
		}
		return before
	}
	for want, l := range says("put", "Puts.", "get", "Gets.", "list", "Lists.") {
		if got := lock(shield.LockedTool{Server: "fs", Tool: l.Tool, Definition: l.Definition}); got != want {
			t.Errorf("before %s it said %d tools, want %d", l.Tool, got, want)
		}
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := vetting.EditLockfile(path, func([]shield.LockedTool) []shield.LockedTool { return nil }); err == nil {
		t.Error("a file that is not a lockfile was written over")
	}
}
