package storetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// AskQueue contains the methods of a store for the process in which a call waits for a person's approval.
type AskQueue interface {
	AddPendingApproval(ctx context.Context, a store.PendingApproval, timeout, lease time.Duration, most int) error
	RenewPendingApproval(ctx context.Context, id string, lease time.Duration) error
	UseApproval(ctx context.Context, id string) (bool, error)
	DropPendingApproval(ctx context.Context, id string, keepDenied bool) error
	AskAnswers
}

// AskAnswers contains the methods of a store with which a person answers approval requests.
type AskAnswers interface {
	PendingApprovals(ctx context.Context) ([]store.PendingApproval, error)
	PendingAnswer(ctx context.Context, id string) (answer store.ApprovalAnswer, by string, err error)
	AnswerPendingApproval(ctx context.Context, id string, answer store.ApprovalAnswer, by string, grants []store.Grant,
		lasts time.Duration) error
}

// AskGrants contains the methods of a store for grants. A grant allows further calls without a new approval request.
type AskGrants interface {
	UseGrant(ctx context.Context, a store.PendingApproval) (g store.Grant, used bool, err error)
	Grants(ctx context.Context) ([]store.Grant, error)
	RevokeGrant(ctx context.Context, id string) (bool, error)
	CountedGrants
}

// CountedGrants contains the methods of a store for grants with a maximum number of calls.
type CountedGrants interface {
	CountedGrants(ctx context.Context, principal, session, subject string) ([]store.Grant, error)
	UseCountedGrant(ctx context.Context, g store.Grant) (used bool, err error)
}

// farFuture is a duration that is longer than any test.
const farFuture = time.Hour

// isNearlyFarFuture reports whether d differs from farFuture by less than a minute. The clock may advance between
// the two measured times.
func isNearlyFarFuture(d time.Duration) bool { return (d - farFuture).Abs() < time.Minute }

var ignoreAskTimes = cmp.Options{
	cmpopts.IgnoreFields(store.PendingApproval{}, "Created", "Until"), cmpopts.IgnoreFields(store.Grant{}, "Created",
		"Until"), cmpopts.EquateEmpty(),
}

// newAsk returns an approval request of the principal ada.
func newAsk(id, call string) store.PendingApproval {
	return store.PendingApproval{ID: id, Principal: "ada", Session: "s1", Call: call, Card: "card",
		Shown: []byte(`{"x":"é"}`)}
}

// waitingIDs returns the sorted IDs of the waiting approval requests.
func waitingIDs(t *testing.T, s AskAnswers) (ids []string) {
	t.Helper()
	all, err := s.PendingApprovals(t.Context())
	requireNoError(t, err)
	for _, a := range all {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids) // two requests may have the same time
	return ids
}

func wantFaultCode(t *testing.T, err error, code drawbridge.FaultCode) {
	t.Helper()
	if f := drawbridge.AsFault(err); f == nil || f.Code != code {
		t.Errorf("got %v, want the code %s", err, code)
	}
}

func testAsks(t *testing.T, p OpenStore) {
	s, person := p(), p()
	requireNoError(t, s.AddPendingApproval(t.Context(), newAsk("one", "c1"), farFuture, farFuture, 9))
	requireNoError(t, s.AddPendingApproval(t.Context(), newAsk("two", "c2"), farFuture, farFuture, 9))
	all, err := person.PendingApprovals(t.Context())
	requireNoError(t, err)
	slices.SortFunc(all, func(a, b store.PendingApproval) int { return strings.Compare(a.ID, b.ID) })
	if diff := cmp.Diff([]store.PendingApproval{newAsk("one", "c1"), newAsk("two", "c2")}, all,
		ignoreAskTimes); diff != "" {
		t.Errorf("asks (-want +got):\n%s", diff)
	}
	if a := all[0]; !isNearlyFarFuture(a.Until.Sub(a.Created)) {
		t.Errorf("it waits from %v until %v", a.Created, a.Until)
	}
	if taken, err := s.UseApproval(t.Context(), "one"); taken || err != nil {
		t.Errorf("taken before anybody answered: %v, %v", taken, err)
	}
	requireNoError(t, person.AnswerPendingApproval(t.Context(), "one", store.AnswerAllowed, "bob, here", nil, 0))
	requireNoError(t, person.AnswerPendingApproval(t.Context(), "two", store.AnswerDenied, "bob, here", nil, 0))
	wantFaultCode(t, person.AnswerPendingApproval(t.Context(), "two", store.AnswerAllowed, "bob, here", nil, 0),
		drawbridge.NotFound)
	for id, want := range map[string]store.ApprovalAnswer{"one": store.AnswerAllowed, "two": store.AnswerDenied} {
		if got, by, err := s.PendingAnswer(t.Context(), id); got != want || by != "bob, here" || err != nil {
			t.Errorf("the answer to %s: %q by %q, %v", id, got, by, err)
		}
	}
	if ids := waitingIDs(t, person); len(ids) > 0 {
		t.Errorf("after the answers %v wait", ids)
	}
	// An approval can be used only once, even by two concurrent processes.
	var taken [2]bool
	var group sync.WaitGroup
	for i, side := range []TestedStore{s, person} {
		group.Go(func() {
			var err error
			if taken[i], err = side.UseApproval(t.Context(), "one"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if taken[0] == taken[1] {
		t.Errorf("taken by one: %v, by the other: %v", taken[0], taken[1])
	}
	if taken, err := s.UseApproval(t.Context(), "two"); taken || err != nil {
		t.Errorf("a no was taken for a yes: %v, %v", taken, err)
	}
	_, _, err = s.PendingAnswer(t.Context(), "one")
	wantFaultCode(t, err, drawbridge.NotFound)
}

// testAsksAreOver tests the ways in which an approval request ends: its timeout, an expired lease, and the end of
// the call.
func testAsksAreOver(t *testing.T, p OpenStore) {
	s, person := p(), p()
	requireNoError(t, s.AddPendingApproval(t.Context(), newAsk("late", "c1"), 0, farFuture, 9))
	requireNoError(t, s.AddPendingApproval(t.Context(), newAsk("left", "c2"), farFuture, 0, 9))
	requireNoError(t, s.AddPendingApproval(t.Context(), newAsk("dropped", "c3"), farFuture, farFuture, 9))
	requireNoError(t, s.AddPendingApproval(t.Context(), newAsk("yes", "c4"), farFuture, farFuture, 9))
	requireNoError(t, s.AddPendingApproval(t.Context(), newAsk("held", "c5"), farFuture, 0, 9))
	requireNoError(t, s.RenewPendingApproval(t.Context(), "held", farFuture))
	requireNoError(t, s.DropPendingApproval(t.Context(), "dropped", true))
	if diff := cmp.Diff([]string{"held", "yes"}, waitingIDs(t, person)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	for _, id := range []string{"late", "left", "dropped", "none"} {
		wantFaultCode(t, person.AnswerPendingApproval(t.Context(), id, store.AnswerAllowed, "bob, here", nil, 0),
			drawbridge.NotFound)
	}
	requireNoError(t, person.AnswerPendingApproval(t.Context(), "yes", store.AnswerAllowed, "bob, here", nil, 0))
	requireNoError(t, s.RenewPendingApproval(t.Context(), "yes", 0))
	if taken, err := s.UseApproval(t.Context(), "yes"); taken || err != nil {
		t.Errorf("taken although nobody held it: %v, %v", taken, err)
	}
}

func testAsksAreLimited(t *testing.T, p OpenStore) {
	s := p()
	requireNoError(t, s.AddPendingApproval(t.Context(), newAsk("one", "c1"), farFuture, farFuture, 2))
	requireNoError(t, s.AddPendingApproval(t.Context(), newAsk("two", "c2"), farFuture, farFuture, 2))
	wantFaultCode(t, s.AddPendingApproval(t.Context(), newAsk("three", "c3"), farFuture, farFuture, 2),
		drawbridge.RateLimited)
	bobs := newAsk("four", "c1")
	bobs.Principal = "bob"
	requireNoError(t, s.AddPendingApproval(t.Context(), bobs, farFuture, farFuture, 2))
	requireNoError(t, s.AnswerPendingApproval(t.Context(), "one", store.AnswerDenied, "bob, here", nil, 0))
	requireNoError(t, s.DropPendingApproval(t.Context(), "one", true))
	wantFaultCode(t, s.AddPendingApproval(t.Context(), newAsk("five", "c1"), farFuture, farFuture, 2),
		drawbridge.PolicyBlocked)
	requireNoError(t, s.AddPendingApproval(t.Context(), newAsk("six", "c6"), farFuture, farFuture, 2))
	requireNoError(t, s.AnswerPendingApproval(t.Context(), "four", store.AnswerAllowed, "bob, here", nil, 0))
	if diff := cmp.Diff([]string{"six", "two"}, waitingIDs(t, s)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
}

func testGrants(t *testing.T, p OpenStore) {
	s, person := p(), p()
	grant := func(id, session, subject string, lasts time.Duration) {
		t.Helper()
		requireNoError(t, s.AddPendingApproval(t.Context(), newAsk(id, "c-"+id), farFuture, farFuture, 9))
		requireNoError(t, person.AnswerPendingApproval(t.Context(), id, store.AnswerAllowed, "bob, here",
			[]store.Grant{{Session: session, Subject: subject, ForCard: session != "", Shown: []byte("{}")}}, lasts))
		requireNoError(t, s.DropPendingApproval(t.Context(), id, true))
	}
	grant("always", "", "c1", 0)
	grant("ended", "", "c2", -time.Millisecond)
	grant("session", "s2", "card2", farFuture)
	use := func(principal, session, call, card string) bool {
		t.Helper()
		g, ok, err := s.UseGrant(t.Context(), store.PendingApproval{Principal: principal, Session: session,
			Call: call, Card: card})
		requireNoError(t, err)
		if ok && g.By != "bob, here" {
			t.Errorf("the grant %s is by %q", g.ID, g.By)
		}
		return ok
	}
	for _, tt := range []struct {
		name                           string
		principal, session, call, card string
		want                           bool
	}{
		{"the call", "ada", "s1", "c1", "k", true},
		{"the call once more", "ada", "", "c1", "k", true},
		{"somebody else", "bob", "s1", "c1", "k", false},
		{"another call", "ada", "s1", "c9", "k", false},
		{"one that has ended", "ada", "s1", "c2", "k", false},
		{"the card, in its session", "ada", "s2", "c9", "card2", true},
		{"the card, in another session", "ada", "s1", "c9", "card2", false},
		{"the card, without a session", "ada", "", "c9", "card2", false},
	} {
		if got := use(tt.principal, tt.session, tt.call, tt.card); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	all, err := person.Grants(t.Context())
	requireNoError(t, err)
	slices.SortFunc(all, func(a, b store.Grant) int { return strings.Compare(a.ID, b.ID) })
	want := []store.Grant{
		{ID: "always", Principal: "ada", Subject: "c1", Shown: []byte("{}"), Uses: 2, By: "bob, here"},
		{ID: "session", Principal: "ada", Session: "s2", Subject: "card2", ForCard: true, Shown: []byte("{}"), Uses: 1,
			By: "bob, here"},
	}
	if diff := cmp.Diff(want, all, ignoreAskTimes); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
	if !all[0].Until.IsZero() || !isNearlyFarFuture(all[1].Until.Sub(all[1].Created)) {
		t.Errorf("they end at %v and %v", all[0].Until, all[1].Until)
	}
	for id, want := range map[string]bool{"always": true, "none": false} {
		if got, err := person.RevokeGrant(t.Context(), id); got != want || err != nil {
			t.Errorf("revoke %s: %v, %v", id, got, err)
		}
	}
	if use("ada", "s1", "c1", "k") {
		t.Error("a grant was used after it was taken back")
	}
}
