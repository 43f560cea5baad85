package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
)

func TestARunIsTakenByOneProcess(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db, ctx := open(t, location), t.Context()
		run := store.ScriptRun{ID: "r1", Owner: "ada", Call: "c1", Holder: "first", Request: []byte("sealed")}
		if err := db.AddScriptRun(ctx, run, [][]byte{[]byte("a"), []byte("b")}, time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := db.AddScriptRun(ctx, run, nil, time.Minute); codeOf(err) != drawbridge.InvalidInput {
			t.Errorf("the same id twice: %v", err)
		}
		if err := db.AppendScriptRun(ctx, "r1", "first", 2, [][]byte{[]byte("c")}, time.Minute); err != nil {
			t.Fatal(err)
		}
		if _, _, err := db.TakeScriptRun(ctx, "ada", "r1", "", "second", time.Minute); codeOf(err) != drawbridge.Transient {
			t.Errorf("a run whose process lives: %v", err)
		}
		if err := db.ReleaseScriptRun(ctx, "r1", "first"); err != nil {
			t.Fatal(err)
		}
		for _, other := range [][3]string{{"eve", "r1", ""}, {"eve", "", "c1"}, {"ada", "r2", ""}, {"ada", "", "c2"}} {
			if _, _, err := db.TakeScriptRun(ctx, other[0], other[1], other[2], "second", time.Minute); codeOf(err) != drawbridge.NotFound {
				t.Errorf("%v: %v", other, err)
			}
		}
		var mu sync.Mutex
		var takers []string
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				name := fmt.Sprint("taker-", i)
				r, entries, err := open(t, location).TakeScriptRun(ctx, "ada", "", "c1", name, time.Minute)
				if err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				takers = append(takers, name)
				want := [][]byte{[]byte("a"), []byte("b"), []byte("c")}
				if diff := cmp.Diff(want, entries); diff != "" || string(r.Request) != "sealed" || r.ID != "r1" {
					t.Errorf("%+v (-want +got):\n%s", r, diff)
				}
			})
		}
		wait.Wait()
		if len(takers) != 1 {
			t.Fatalf("taken by %v", takers)
		}
		if err := db.AppendScriptRun(ctx, "r1", "first", 3, [][]byte{[]byte("d")}, time.Minute); codeOf(err) != drawbridge.NotFound {
			t.Errorf("the first process still records: %v", err)
		}
		if err := db.AppendScriptRun(ctx, "r1", takers[0], 3, [][]byte{[]byte("d")}, time.Minute); err != nil {
			t.Error(err)
		}
		if err := db.DropScriptRun(ctx, "r1", takers[0]); err != nil {
			t.Fatal(err)
		}
		if _, _, err := db.TakeScriptRun(ctx, "ada", "r1", "", "third", time.Minute); codeOf(err) != drawbridge.NotFound {
			t.Errorf("a run that has ended: %v", err)
		}
	})
}

func TestTheLeaseOfARunExpires(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db, ctx := open(t, location), t.Context()
		run := store.ScriptRun{ID: "r1", Owner: "ada", Call: "c1", Holder: "first", Request: []byte("sealed")}
		if err := db.AddScriptRun(ctx, run, nil, -time.Second); err != nil {
			t.Fatal(err)
		}
		runs, err := db.InterruptedRuns(ctx, "ada")
		if err != nil || len(runs) != 1 || runs[0].ID != "r1" {
			t.Errorf("%+v, %v", runs, err)
		}
		if err := db.HoldScriptRun(ctx, "r1", "first", time.Minute); err != nil {
			t.Fatal(err)
		}
		if runs, err := db.InterruptedRuns(ctx, "ada"); err != nil || len(runs) != 0 {
			t.Errorf("a run that is held: %+v, %v", runs, err)
		}
	})
}

func codeOf(err error) drawbridge.FaultCode {
	f, _ := errors.AsType[*drawbridge.Fault](err)
	if f == nil {
		return ""
	}
	return f.Code
}

// TestARequestOfAnInterruptedRunIsContinued adds a request again, as a run does that was repeated: the answer that a person
// gave meanwhile counts, and another call with the same ID takes nothing over.
func TestARequestOfAnInterruptedRunIsContinued(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db, ctx := open(t, location), t.Context()
		a := store.PendingApproval{ID: "abcdefgh", Principal: "ada", Call: "c1", Card: "t1", Shown: []byte("{}")}
		add := func(a store.PendingApproval) error {
			return db.AddPendingApproval(ctx, a, time.Minute, time.Minute, 16)
		}
		if err := add(a); err != nil {
			t.Fatal(err)
		}
		if err := db.AnswerPendingApproval(ctx, a.ID, store.AnswerAllowed, "ada", nil, 0); err != nil {
			t.Fatal(err)
		}
		other := a
		other.Call = "c2"
		if err := add(other); codeOf(err) != drawbridge.InvalidInput {
			t.Errorf("another call with the same ID: %v", err)
		}
		if err := add(a); err != nil {
			t.Fatal(err)
		}
		if used, err := db.UseApproval(ctx, a.ID); err != nil || !used {
			t.Errorf("the answer is lost: %v, %v", used, err)
		}
		if used, err := db.UseApproval(ctx, a.ID); err != nil || used {
			t.Errorf("the answer is used twice: %v, %v", used, err)
		}
	})
}
