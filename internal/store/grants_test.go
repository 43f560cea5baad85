package store_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// granterName is the name of a test binary that is to ask, allow and call for as long as it lives.
const granterName = "store-granter"

// The steps of one ask, in their order: how far it has come when the store has acknowledged the step.
const (
	storeKept = 1 + iota
	allowed
	used
	taken
	approved
)

// granter asks a person about one call after the other, answers with a grant, uses the grant and the answer, and
// approves a row. It prints each step as soon as the store has acknowledged it.
func granter(location, name string) int {
	ctx := context.Background()
	err := func() error {
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		db, err := store.Open(ctx, location, store.Options{})
		if err != nil {
			return err
		}
		for i := 0; ; i++ {
			if err := grantOnce(ctx, db, fmt.Sprint(name, "-", i)); err != nil {
				return err
			}
		}
	}()
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func askOf(id string) store.PendingApproval {
	return store.PendingApproval{ID: id, Principal: "ada", Call: "call " + id, Card: "card " + id, Shown: []byte("{}")}
}

func grantOnce(ctx context.Context, db *store.DB, id string) error {
	said := func(step int) { fmt.Println(step, id) }
	if err := db.AddPendingApproval(ctx, askOf(id), time.Hour, time.Hour, 1_000_000); err != nil {
		return err
	}
	said(storeKept)
	if err := db.AnswerPendingApproval(ctx, id, store.AnswerAllowed, "bob, here", []store.Grant{{Subject: "call " + id,
		Shown: []byte("{}")}}, 0); err != nil {
		return err
	}
	said(allowed)
	if _, ok, err := db.UseGrant(ctx, askOf(id)); !ok || err != nil {
		return fmt.Errorf("the grant of %s: %v, %v", id, ok, err)
	}
	said(used)
	if ok, err := db.UseApproval(ctx, id); !ok || err != nil {
		return fmt.Errorf("the answer to %s: %v, %v", id, ok, err)
	}
	said(taken)
	row := store.RowApproval{By: approver, Path: "/home/ada/.mcp.json", Server: "up", Hash: "hash " + id,
		Shown: []config.NameValue{{Name: "command", Value: "hash " + id}}, Approved: true}
	if err := db.SaveRowApproval(ctx, row); err != nil {
		return err
	}
	said(approved)
	return nil
}

// TestKilledWhileAPersonAnswers kills processes at random points of an ask: what was answered is there with its grant
// or not at all, a grant has counted each call that it let through, and a yes that was used up is used up. An approval
// is of one row, whole.
func TestKilledWhileAPersonAnswers(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		steps, lasts := map[string]int{}, map[string]bool{}
		for round := range 6 {
			p := newChild(t, granterName, location, fmt.Sprint("p", round))
			p.start.Close()
			last := ""
			hear := func(most int) {
				for ; most > 0 && p.said.Scan(); most-- {
					var step int
					if _, err := fmt.Sscan(p.said.Text(), &step, &last); err != nil {
						t.Fatal(err)
					}
					steps[last] = step
				}
			}
			if round > 0 { // the first dies while it opens
				hear(rand.IntN(40) + 1)
			}
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			hear(1_000_000) // what it said before it died
			_ = p.Wait()    // it was killed
			lasts[last] = true
			checkGrants(t, open(t, location), steps, lasts)
			checkApproval(t, open(t, location), steps, last)
		}
		if len(steps) < 5 {
			t.Errorf("only %d asks were made", len(steps))
		}
	})
}

// checkGrants holds a store to what it acknowledged. Of its last ask a process may have done one step more than it
// said.
func checkGrants(t *testing.T, db *store.DB, steps map[string]int, lasts map[string]bool) {
	t.Helper()
	grants := grantsOf(t, db)
	for id, step := range steps {
		g, granted := grants[id]
		answer, _, err := db.PendingAnswer(t.Context(), id)
		there := err == nil
		if f, ok := err.(*drawbridge.Fault); err != nil && (!ok || f.Code != drawbridge.NotFound) {
			t.Fatal(err)
		}
		// a server may still be at what its client asked before it died
		if there && answer == store.AnswerAllowed && !granted {
			g, granted = grantsOf(t, db)[id]
		}
		uses := 0
		if step >= used {
			uses = 1
		}
		switch {
		case step >= allowed && !granted:
			t.Errorf("%s was allowed, and there is no grant", id)
		case there && (answer == store.AnswerAllowed) != granted:
			t.Errorf("%s is answered %q, and its grant is there: %v", id, answer, granted)
		case g.Uses < uses, g.Uses > uses && (!lasts[id] || step != allowed):
			t.Errorf("%s let %d calls through, and has counted %d", id, uses, g.Uses)
		case step >= taken && there, step < taken && !lasts[id] && !there:
			t.Errorf("%s came to step %d, and its answer is there: %v", id, step, there)
		}
		if step >= taken {
			if again, err := db.UseApproval(t.Context(), id); again || err != nil {
				t.Errorf("the answer to %s is used twice: %v", id, err)
			}
		}
	}
}

func grantsOf(t *testing.T, db *store.DB) map[string]store.Grant {
	t.Helper()
	all, err := db.Grants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	grants := map[string]store.Grant{}
	for _, g := range all {
		grants[g.ID] = g
	}
	return grants
}

// approver is who decides about rows.
var approver = store.Approver{Principal: "ada", Machine: "desk"}

// checkApproval looks at the one row that is approved: it is that of the last ask that came so far.
func checkApproval(t *testing.T, db *store.DB, steps map[string]int, last string) {
	t.Helper()
	rows, err := db.RowApprovals(t.Context(), approver)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		if steps[last] >= approved {
			t.Errorf("the row of %s was approved, and is not", last)
		}
		return
	}
	if len(rows) != 1 || rows[0].Hash != rows[0].Shown[0].Value {
		t.Fatalf("approved are %+v", rows)
	}
	id := strings.TrimPrefix(rows[0].Hash, "hash ")
	if steps[last] >= approved && id != last || steps[id] < taken {
		t.Errorf("the row of %s is approved; the last was %s, which came to step %d", id, last, steps[last])
	}
}

// TestAClockThatWasPutBack has grants and noes of a clock that was ten years ahead: a grant for a time does not last
// ten years, one without an end counts, a no is asked about again, and what waits is not lost.
func TestAClockThatWasPutBack(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		for id, answer := range map[string]store.ApprovalAnswer{"timed": store.AnswerAllowed,
			"always": store.AnswerAllowed, "denied": store.AnswerDenied, "waits": store.AnswerWaiting} {
			if err := db.AddPendingApproval(t.Context(), askOf(id), time.Hour, time.Hour, 9); err != nil {
				t.Fatal(err)
			}
			var grants []store.Grant
			lasts := time.Duration(0)
			switch id {
			case "timed":
				lasts = time.Minute
				fallthrough
			case "always":
				grants = []store.Grant{{Subject: "call " + id, Shown: []byte("{}")}}
			}
			if answer == store.AnswerWaiting {
				continue
			}
			if err := db.AnswerPendingApproval(t.Context(), id, answer, "bob, here", grants, lasts); err != nil {
				t.Fatal(err)
			}
		}
		const years = int64(10 * 365 * 24 * time.Hour / time.Millisecond)
		ahead := raw(t, location)
		ahead("UPDATE asks SET created = created + $1, ends = ends + $1, held = held + $1", years)
		ahead("UPDATE grants SET created = created + $1, ends = CASE WHEN ends = 0 THEN 0 ELSE ends + $1 END", years)
		for id, want := range map[string]bool{"timed": false, "always": true} {
			if _, used, err := db.UseGrant(t.Context(), askOf(id)); used != want || err != nil {
				t.Errorf("the grant %s lets a call through: %v, %v", id, used, err)
			}
		}
		again := askOf("again")
		again.Call = "call denied"
		if err := db.AddPendingApproval(t.Context(), again, time.Hour, time.Hour, 9); err != nil {
			t.Errorf("what was denied by that clock: %v", err)
		}
		if err := db.AnswerPendingApproval(t.Context(), "waits", store.AnswerAllowed, "bob, here", nil, 0); err != nil {
			t.Errorf("what waits since then: %v", err)
		}
		if taken, err := db.UseApproval(t.Context(), "waits"); !taken || err != nil {
			t.Errorf("its answer: %v, %v", taken, err)
		}
	})
}

// TestGrantsThatEndedGo: each call that a person is asked about looks through the grants.
func TestGrantsThatEndedGo(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		grant := func(id string, lasts time.Duration) {
			t.Helper()
			if err := db.AddPendingApproval(t.Context(), askOf(id), time.Hour, time.Hour, 10); err != nil {
				t.Fatal(err)
			}
			if err := db.AnswerPendingApproval(t.Context(), id, store.AnswerAllowed, "bob",
				[]store.Grant{{Subject: "call " + id, Shown: []byte("{}")}}, lasts); err != nil {
				t.Fatal(err)
			}
		}
		grant("old", time.Hour)
		grant("ever", 0)
		edit := raw(t, location)
		edit("UPDATE grants SET ends = 1 WHERE id = 'old'")
		grant("new", time.Hour)
		// it is gone
		edit("INSERT INTO grants SELECT 'old', principal, session, subject, for_card, shown, created, ends, uses, said_by, max_uses, pattern FROM grants WHERE id = 'ever'")
		all, err := db.Grants(t.Context())
		if err != nil || len(all) != 3 {
			t.Errorf("%v, %v", all, err)
		}
	})
}
