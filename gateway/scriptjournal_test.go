package gateway

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// openJournals returns the runs of a store in a new directory.
func openJournals(t *testing.T) scriptRuns {
	t.Helper()
	home := t.TempDir()
	lookup := func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": home, "DRAWBRIDGE_KEYCHAIN": "off"}[name]
		return v, ok
	}
	shared, err := OpenShared(t.Context(), Config{Store: filepath.Join(home, "store.db"), LookupEnv: lookup, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
	})
	return scriptRuns{shared}
}

func TestAJournalIsEncryptedAndWhole(t *testing.T) {
	runs, ctx := openJournals(t), t.Context()
	const secret = "planted-inner-result"
	run := cards.SavedRun{ID: "abcdefgh", Owner: "ada", Call: "call", Input: []byte(`{"code":"` + secret + `"}`)}
	j := runs.New(run)
	for _, entries := range [][][]byte{{[]byte(secret + " 0"), []byte(secret + " 1")}, {[]byte(secret + " 2")}} {
		if err := j.Append(ctx, entries...); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(ctx, false); err != nil {
		t.Fatal(err)
	}
	db := runs.shared.db
	stored, sealed, err := db.TakeScriptRun(ctx, "ada", "abcdefgh", "", "reader", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(slices.Clone(sealed), stored.Request) {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("the store has %q", text)
		}
	}
	if err := db.ReleaseScriptRun(ctx, "abcdefgh", "reader"); err != nil {
		t.Fatal(err)
	}
	got, j, entries, err := runs.Resume(ctx, cards.SavedRun{Owner: "ada", Call: "call"})
	if err != nil || got.ID != run.ID || string(got.Input) != string(run.Input) {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := secret + " 0," + secret + " 1," + secret + " 2"; string(bytes.Join(entries, []byte(","))) != want {
		t.Errorf("%s", entries)
	}
	if err := j.Append(ctx, []byte("3")); err != nil {
		t.Error(err)
	}
	if err := j.Close(ctx, true); err != nil {
		t.Error(err)
	}
	if _, _, _, err := runs.Resume(ctx, cards.SavedRun{ID: run.ID, Owner: "ada"}); err == nil {
		t.Error("a run that ended is resumed")
	}
}

// TestAForgedJournalIsRefused changes stored entries, as an attacker with access to the database could.
func TestAForgedJournalIsRefused(t *testing.T) {
	for name, forge := range map[string]func(r *store.ScriptRun, entries [][]byte){
		"a changed request":  func(r *store.ScriptRun, _ [][]byte) { r.Request[0]++ },
		"a changed entry":    func(_ *store.ScriptRun, e [][]byte) { e[1][20]++ },
		"swapped entries":    func(_ *store.ScriptRun, e [][]byte) { e[0], e[1] = e[1], e[0] },
		"entries of another": func(r *store.ScriptRun, _ [][]byte) { r.ID = "otherrun" },
		"another owner":      func(r *store.ScriptRun, _ [][]byte) { r.Owner = "eve" },
	} {
		t.Run(name, func(t *testing.T) {
			runs, ctx := openJournals(t), t.Context()
			j := runs.New(cards.SavedRun{ID: "abcdefgh", Owner: "ada", Call: "call", Input: []byte(`{"code":"1"}`)})
			if err := j.Append(ctx, []byte("a long entry, the first"), []byte("a long entry, the second")); err != nil {
				t.Fatal(err)
			}
			if err := j.Close(ctx, false); err != nil {
				t.Fatal(err)
			}
			stored, sealed, err := runs.shared.db.TakeScriptRun(ctx, "ada", "abcdefgh", "", "forger", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			forge(&stored, sealed)
			reader := &scriptJournal{runs: runs, run: cards.SavedRun{ID: stored.ID, Owner: stored.Owner}}
			if _, err := reader.open(context.WithoutCancel(ctx), stored, sealed); err == nil ||
				!strings.Contains(err.Error(), "cannot be decrypted") {
				t.Errorf("%v", err)
			}
		})
	}
}
