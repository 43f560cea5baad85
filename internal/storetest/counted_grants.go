package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
)

// addGrants stores grants with the answer to a request of ada's.
func addGrants(t *testing.T, s TestedStore, id string, lasts time.Duration, grants ...store.Grant) {
	t.Helper()
	requireNoError(t, s.AddPendingApproval(t.Context(), newAsk(id, "c-"+id), farFuture, farFuture, 99))
	requireNoError(t, s.AnswerPendingApproval(t.Context(), id, store.AnswerAllowed, "bob, here", grants, lasts))
	requireNoError(t, s.DropPendingApproval(t.Context(), id, true))
}

func countedGrant(subject, pattern string, most, uses int) store.Grant {
	return store.Grant{Subject: subject, Pattern: pattern, Max: most, Uses: uses, Shown: []byte("{}")}
}

// countedIDs returns the grants for a subject, each as its ID with its uses and its maximum.
func countedIDs(t *testing.T, s TestedStore, principal, session, subject string) (all []string) {
	t.Helper()
	grants, err := s.CountedGrants(t.Context(), principal, session, subject)
	requireNoError(t, err)
	for _, g := range grants {
		all = append(all, fmt.Sprintf("%s %d/%d %s", g.ID, g.Uses, g.Max, g.Pattern))
	}
	return all
}

func testCountedGrants(t *testing.T, p OpenStore) {
	s := p()
	inSession := countedGrant("s", "p3", 9, 1)
	inSession.Session = "s2"
	addGrants(t, s, "both", farFuture, countedGrant("s", "p1", 3, 1), countedGrant("other", "p2", 5, 5))
	addGrants(t, s, "session", farFuture, inSession)
	addGrants(t, s, "ended", -time.Millisecond, countedGrant("s", "p4", 3, 1))
	addGrants(t, s, "plain", farFuture, store.Grant{Subject: "c1", Uses: 7, Shown: []byte("{}")})
	for _, tt := range []struct {
		principal, session, subject string
		want                        []string
	}{
		{"ada", "", "s", []string{"both-1 1/3 p1"}},
		{"ada", "s2", "s", []string{"both-1 1/3 p1", "session 1/9 p3"}},
		{"ada", "s1", "other", []string{"both-2 5/5 p2"}},
		{"ada", "", "c1", nil}, // it has no maximum
		{"bob", "s2", "s", nil},
	} {
		if diff := cmp.Diff(tt.want, countedIDs(t, s, tt.principal, tt.session, tt.subject)); diff != "" {
			t.Errorf("%s in %q, %s (-want +got):\n%s", tt.principal, tt.session, tt.subject, diff)
		}
	}
	if _, used, err := s.UseGrant(t.Context(), store.PendingApproval{Principal: "ada", Call: "s", Card: "other"}); used ||
		err != nil {
		t.Errorf("a grant with a maximum was used as one without: %v", err)
	}
	grants, err := p().CountedGrants(t.Context(), "ada", "", "s")
	requireNoError(t, err)
	g := grants[0]
	changed := g
	changed.Pattern = "another"
	for i, tt := range []struct {
		g    store.Grant
		want bool
	}{{changed, false}, {g, true}, {g, true}, {g, false}} {
		if used, err := s.UseCountedGrant(t.Context(), tt.g); used != tt.want || err != nil {
			t.Errorf("use %d: %v, %v", i, used, err)
		}
	}
	if revoked, err := s.RevokeGrant(t.Context(), "both"); !revoked || err != nil {
		t.Errorf("revoke by the ID of the request: %v, %v", revoked, err)
	}
	if revoked, err := s.RevokeGrant(t.Context(), "sess"); revoked || err != nil {
		t.Errorf("revoke by a part of an ID: %v, %v", revoked, err)
	}
	all, err := s.Grants(t.Context())
	requireNoError(t, err)
	left := map[string]int{}
	for _, one := range all {
		left[one.ID] = one.Uses
	}
	if diff := cmp.Diff(map[string]int{"session": 1, "plain": 0}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if used, err := s.UseCountedGrant(t.Context(), g); used || err != nil {
		t.Errorf("a grant was used after it was revoked: %v, %v", used, err)
	}
}

// testTwoProcessesUseOneCount has several processes that use one grant until it allows no more.
func testTwoProcessesUseOneCount(t *testing.T, p OpenStore) {
	const most, processes = 20, 4
	first := p()
	addGrants(t, first, "one", farFuture, countedGrant("s", "p", most, 3))
	grants, err := first.CountedGrants(t.Context(), "ada", "", "s")
	requireNoError(t, err)
	var allowed atomic.Int32
	var group sync.WaitGroup
	for range processes {
		s := p()
		for range 2 {
			group.Go(func() {
				for range most {
					used, err := s.UseCountedGrant(t.Context(), grants[0])
					if err != nil {
						t.Error(err)
					}
					if used {
						allowed.Add(1)
					}
				}
			})
		}
	}
	group.Wait()
	if n := allowed.Load(); n != most-3 {
		t.Errorf("%d calls were allowed, want %d", n, most-3)
	}
	want := []string{fmt.Sprintf("one %d/%d p", most, most)}
	if diff := cmp.Diff(want, countedIDs(t, p(), "ada", "", "s")); diff != "" {
		t.Errorf("after all calls (-want +got):\n%s", diff)
	}
}
