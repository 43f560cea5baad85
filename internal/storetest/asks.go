package storetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Asks is where calls wait for a person. Its other half is Answers.
type Asks interface {
	Ask(ctx context.Context, a store.Ask, timeout, lease time.Duration, most int) error
	HoldAsk(ctx context.Context, id string, lease time.Duration) error
	TakeAsk(ctx context.Context, id string) (bool, error)
	DropAsk(ctx context.Context, id string) error
	Answers
}

// Answers is where a person answers.
type Answers interface {
	Asks(ctx context.Context) ([]store.Ask, error)
	AskAnswer(ctx context.Context, id string) (answer store.Answer, by string, err error)
	AnswerAsk(ctx context.Context, id string, answer store.Answer, by string, grant *store.Grant, lasts time.Duration) error
}

// Grants is what a person allowed for more than one call.
type Grants interface {
	UseGrant(ctx context.Context, a store.Ask) (g store.Grant, used bool, err error)
	Grants(ctx context.Context) ([]store.Grant, error)
	Revoke(ctx context.Context, id string) (bool, error)
}

// long is a time that no test waits for.
const long = time.Hour

// lasts says whether a time is long: the clock may go on between what begins it and what ends it.
func lasts(d time.Duration) bool { return (d - long).Abs() < time.Minute }

var noTimes = cmp.Options{
	cmpopts.IgnoreFields(store.Ask{}, "Created", "Until"), cmpopts.IgnoreFields(store.Grant{}, "Created", "Until"), cmpopts.EquateEmpty(),
}

// asked is an ask of ada's.
func asked(id, call string) store.Ask {
	return store.Ask{ID: id, Principal: "ada", Session: "s1", Call: call, Card: "card", Shown: []byte(`{"x":"é"}`)}
}

// waiting gives the names of what waits.
func waiting(t *testing.T, s Answers) (ids []string) {
	t.Helper()
	all, err := s.Asks(t.Context())
	must(t, err)
	for _, a := range all {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids) // two may have come in one millisecond
	return ids
}

func wantFaultCode(t *testing.T, err error, code drawbridge.FaultCode) {
	t.Helper()
	if f := drawbridge.AsFault(err); f == nil || f.Code != code {
		t.Errorf("got %v, want the code %s", err, code)
	}
}

func testAsks(t *testing.T, p Place) {
	s, person := p(), p()
	must(t, s.Ask(t.Context(), asked("one", "c1"), long, long, 9))
	must(t, s.Ask(t.Context(), asked("two", "c2"), long, long, 9))
	all, err := person.Asks(t.Context())
	must(t, err)
	slices.SortFunc(all, func(a, b store.Ask) int { return strings.Compare(a.ID, b.ID) })
	if diff := cmp.Diff([]store.Ask{asked("one", "c1"), asked("two", "c2")}, all, noTimes); diff != "" {
		t.Errorf("asks (-want +got):\n%s", diff)
	}
	if a := all[0]; !lasts(a.Until.Sub(a.Created)) {
		t.Errorf("it waits from %v until %v", a.Created, a.Until)
	}
	if taken, err := s.TakeAsk(t.Context(), "one"); taken || err != nil {
		t.Errorf("taken before anybody answered: %v, %v", taken, err)
	}
	must(t, person.AnswerAsk(t.Context(), "one", store.Allowed, "bob, here", nil, 0))
	must(t, person.AnswerAsk(t.Context(), "two", store.Denied, "bob, here", nil, 0))
	wantFaultCode(t, person.AnswerAsk(t.Context(), "two", store.Allowed, "bob, here", nil, 0), drawbridge.NotFound)
	for id, want := range map[string]store.Answer{"one": store.Allowed, "two": store.Denied} {
		if got, by, err := s.AskAnswer(t.Context(), id); got != want || by != "bob, here" || err != nil {
			t.Errorf("the answer to %s: %q by %q, %v", id, got, by, err)
		}
	}
	if ids := waiting(t, person); len(ids) > 0 {
		t.Errorf("after the answers %v wait", ids)
	}
	// An answer is good once, whoever asks for it at the same time.
	var taken [2]bool
	var group sync.WaitGroup
	for i, side := range []Store{s, person} {
		group.Go(func() {
			var err error
			if taken[i], err = side.TakeAsk(t.Context(), "one"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if taken[0] == taken[1] {
		t.Errorf("taken by one: %v, by the other: %v", taken[0], taken[1])
	}
	if taken, err := s.TakeAsk(t.Context(), "two"); taken || err != nil {
		t.Errorf("a no was taken for a yes: %v, %v", taken, err)
	}
	_, _, err = s.AskAnswer(t.Context(), "one")
	wantFaultCode(t, err, drawbridge.NotFound)
}

// testAsksAreOver has the ends of an ask: its time, its process, its caller.
func testAsksAreOver(t *testing.T, p Place) {
	s, person := p(), p()
	must(t, s.Ask(t.Context(), asked("late", "c1"), 0, long, 9))
	must(t, s.Ask(t.Context(), asked("left", "c2"), long, 0, 9))
	must(t, s.Ask(t.Context(), asked("dropped", "c3"), long, long, 9))
	must(t, s.Ask(t.Context(), asked("yes", "c4"), long, long, 9))
	must(t, s.Ask(t.Context(), asked("held", "c5"), long, 0, 9))
	must(t, s.HoldAsk(t.Context(), "held", long))
	must(t, s.DropAsk(t.Context(), "dropped"))
	if diff := cmp.Diff([]string{"held", "yes"}, waiting(t, person)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	for _, id := range []string{"late", "left", "dropped", "none"} {
		wantFaultCode(t, person.AnswerAsk(t.Context(), id, store.Allowed, "bob, here", nil, 0), drawbridge.NotFound)
	}
	must(t, person.AnswerAsk(t.Context(), "yes", store.Allowed, "bob, here", nil, 0))
	must(t, s.HoldAsk(t.Context(), "yes", 0))
	if taken, err := s.TakeAsk(t.Context(), "yes"); taken || err != nil {
		t.Errorf("taken although nobody held it: %v, %v", taken, err)
	}
}

func testAsksAreLimited(t *testing.T, p Place) {
	s := p()
	must(t, s.Ask(t.Context(), asked("one", "c1"), long, long, 2))
	must(t, s.Ask(t.Context(), asked("two", "c2"), long, long, 2))
	wantFaultCode(t, s.Ask(t.Context(), asked("three", "c3"), long, long, 2), drawbridge.RateLimited)
	bobs := asked("four", "c1")
	bobs.Principal = "bob"
	must(t, s.Ask(t.Context(), bobs, long, long, 2))
	must(t, s.AnswerAsk(t.Context(), "one", store.Denied, "bob, here", nil, 0))
	must(t, s.DropAsk(t.Context(), "one"))
	wantFaultCode(t, s.Ask(t.Context(), asked("five", "c1"), long, long, 2), drawbridge.PolicyBlocked)
	must(t, s.Ask(t.Context(), asked("six", "c6"), long, long, 2))
	must(t, s.AnswerAsk(t.Context(), "four", store.Allowed, "bob, here", nil, 0))
	if diff := cmp.Diff([]string{"six", "two"}, waiting(t, s)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
}

func testGrants(t *testing.T, p Place) {
	s, person := p(), p()
	grant := func(id, session, subject string, lasts time.Duration) {
		t.Helper()
		must(t, s.Ask(t.Context(), asked(id, "c-"+id), long, long, 9))
		must(t, person.AnswerAsk(t.Context(), id, store.Allowed, "bob, here", &store.Grant{Session: session, Subject: subject, ForCard: session != "", Shown: []byte("{}")}, lasts))
		must(t, s.DropAsk(t.Context(), id))
	}
	grant("always", "", "c1", 0)
	grant("ended", "", "c2", -time.Millisecond)
	grant("session", "s2", "card2", long)
	use := func(principal, session, call, card string) bool {
		t.Helper()
		g, ok, err := s.UseGrant(t.Context(), store.Ask{Principal: principal, Session: session, Call: call, Card: card})
		must(t, err)
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
	must(t, err)
	slices.SortFunc(all, func(a, b store.Grant) int { return strings.Compare(a.ID, b.ID) })
	want := []store.Grant{
		{ID: "always", Principal: "ada", Subject: "c1", Shown: []byte("{}"), Uses: 2, By: "bob, here"},
		{ID: "session", Principal: "ada", Session: "s2", Subject: "card2", ForCard: true, Shown: []byte("{}"), Uses: 1, By: "bob, here"},
	}
	if diff := cmp.Diff(want, all, noTimes); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
	if !all[0].Until.IsZero() || !lasts(all[1].Until.Sub(all[1].Created)) {
		t.Errorf("they end at %v and %v", all[0].Until, all[1].Until)
	}
	for id, want := range map[string]bool{"always": true, "none": false} {
		if got, err := person.Revoke(t.Context(), id); got != want || err != nil {
			t.Errorf("revoke %s: %v, %v", id, got, err)
		}
	}
	if use("ada", "s1", "c1", "k") {
		t.Error("a grant was used after it was taken back")
	}
}
