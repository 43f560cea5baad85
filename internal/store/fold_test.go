package store_test

import (
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/google/go-cmp/cmp"
)

// churn has a server of few tools change them until the stream has so many records.
func churn(t *testing.T, db *store.DB, stream string, records int) {
	t.Helper()
	var batch []ledger.Entry
	for i := range records / 2 {
		e := storetest.NewEnrolment("fs", []string{"read", "write", "list"}[i%3])
		batch = append(batch, e, ledger.Entry{Op: ledger.OpRetire, Key: e.Key, Server: e.Server})
	}
	batch = append(batch[:len(batch)-5], batch[len(batch)-6]) // the last tools stay
	if _, err := db.Append(t.Context(), stream, batch); err != nil {
		t.Fatal(err)
	}
}

// foldOf gives what is live of a stream as Fold has it, and holds that against all its entries.
func foldOf(t *testing.T, db *store.DB, stream string) ledger.Snapshot {
	t.Helper()
	s, err := db.FoldStream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := db.Replay(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	want := ledger.FromLog(entries)
	if diff := cmp.Diff(want.Live(), s.Live()); diff != "" || s.HighWater() != want.NextSeq()-1 {
		t.Errorf("up to record %d: %s", s.HighWater(), diff)
	}
	return s
}

func TestAFoldBeginsWhereAnEarlierOneEnded(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		foldOf(t, db, "deck")
		churn(t, db, "deck", 300)
		foldOf(t, db, "deck") // too few to keep anything
		churn(t, db, "deck", 3000)
		before := foldOf(t, db, "deck")
		if err := db.VerifySavedFold(t.Context(), "deck"); err != nil {
			t.Error(err)
		}
		churn(t, db, "other", 20)
		foldOf(t, db, "other")

		// What it came to is known: no record up to there is read again.
		edit := raw(t, location)
		edit("UPDATE ledger SET body = $1 WHERE stream = 'deck' AND seq = 7", []byte("{"))
		again, err := open(t, location).FoldStream(t.Context(), "deck")
		if diff := cmp.Diff(before.Live(), again.Live()); err != nil || diff != "" ||
			again.HighWater() != before.HighWater() {
			t.Errorf("%v, up to %d: %s", err, again.HighWater(), diff)
		}
		stored, err := db.Append(t.Context(), "deck", []ledger.Entry{storetest.NewEnrolment("git", "log")})
		if err != nil {
			t.Fatal(err)
		}
		again, err = db.FoldStream(t.Context(), "deck")
		if e, ok := again.LiveEntry(stored[0].Key); err != nil || !ok || e.Seq != before.HighWater()+1 ||
			again.Len() != before.Len()+1 {
			t.Errorf("%v, %v: %+v", err, ok, e)
		}

		// Where the record is another that it was made up to, it counts for nothing.
		edit("UPDATE ledger SET hash = $1 WHERE stream = 'deck' AND seq = $2", make([]byte, 32),
			int64(before.HighWater()))
		if _, err := db.FoldStream(t.Context(), "deck"); err == nil || !strings.Contains(err.Error(),
			"record 7 of deck: torn") {
			t.Errorf("fold: %v; want the record named", err)
		}
	})
}

func TestAFoldThatIsEditedIsFound(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		churn(t, db, "deck", 3000)
		churn(t, db, "other", 3000)
		foldOf(t, db, "deck")
		edit := raw(t, location)
		edit("INSERT INTO blobs (name, value) SELECT 'fold other', $1 FROM blobs WHERE name = 'fold deck'",
			[]byte("torn"))
		foldOf(t, db, "other") // what cannot be read is as good as none
		churn(t, db, "deck", 10)
		edit("UPDATE blobs SET value = (SELECT l.hash FROM ledger l WHERE l.stream = 'deck' AND l.seq = 3001) || $1 WHERE name = 'fold deck'",
			[]byte(`{"highWater":3001,"live":[]}`))
		s, err := db.FoldStream(t.Context(), "deck")
		if err != nil {
			t.Fatal(err)
		}
		if err := db.VerifySavedFold(t.Context(), "deck"); err == nil || !strings.Contains(err.Error(),
			"up to record 3001 differs from its records") {
			t.Errorf("with %d live: %v", s.Len(), err)
		}
	})
}
