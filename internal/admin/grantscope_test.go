package admin_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/google/go-cmp/cmp"
)

// pendingScript is a script that waits with two calls of add, and one of log.
func pendingScript(t *testing.T) admin.PendingCall {
	t.Helper()
	var p admin.PendingCall
	if err := json.Unmarshal([]byte(`{"id": "k3f9qzab", "call": {"card": "run_python", "script": "x", "effects": [
		{"card": "add", "constant": {"b": 1}, "calls": [{"number": 1, "arguments": {"a": 1}}, {"number": 3, "arguments": {"a": 2}}],
		 "pattern": {"constant": {"b": "hash"}, "varying": ["a"]}, "subject": "s1"},
		{"card": "log", "calls": [{"number": 2, "arguments": {}}], "pattern": {}, "subject": "s2"}
	]}}`), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhatACountWouldAllow(t *testing.T) {
	for _, tt := range []struct {
		name  string
		scope admin.GrantScope
		wants []string
		until time.Duration
		fault string
	}{
		{"the pattern", admin.GrantScope{Count: 5}, []string{"add 2/5 any value of a; b must be the same", "log 1/5 no arguments"},
			24 * time.Hour, ""},
		{"a wider one", admin.GrantScope{Count: 5, Varying: []string{"b"}, Duration: time.Hour},
			[]string{"add 2/5 any value of a, b", "log 1/5 no arguments"}, time.Hour, ""},
		{"the waiting calls only", admin.GrantScope{Count: 2}, []string{"add 2/2 any value of a; b must be the same",
			"log 1/2 no arguments"}, 24 * time.Hour, ""},
		{"no count", admin.GrantScope{}, nil, 0, ""},
		{"too few", admin.GrantScope{Count: 1}, nil, 0, "--count must be at least 2: so many calls of add wait"},
		{"no number", admin.GrantScope{Count: -1}, nil, 0, "--count wants a number of calls, 1 to 10000"},
		{"too many", admin.GrantScope{Count: 10_001}, nil, 0, "--count wants a number of calls, 1 to 10000"},
		{"too long", admin.GrantScope{Count: 5, Duration: 721 * time.Hour}, nil, 0,
			"a grant with --count ends after 720h (30 days) at the latest"},
		{"for ever", admin.GrantScope{Count: 5, Always: true}, nil, 0,
			"--always-this is for this very call; leave the other flags out"},
		{"any arguments", admin.GrantScope{Count: 5, AnyArguments: true, Duration: 1}, nil, 0,
			"--count is for calls like the waiting ones; combine it with --for, --session and --vary only"},
		{"an unknown argument", admin.GrantScope{Count: 5, Varying: []string{"c\n"}}, nil, 0,
			`--vary: no waiting call has the argument "c\n"`},
		{"no session", admin.GrantScope{Count: 5, Session: true}, nil, 0,
			"the caller has no session (--for TIME grants it for a time)"},
		{"no count to vary", admin.GrantScope{Varying: []string{"b"}}, nil, 0, "--vary needs --count"},
	} {
		grants, err := tt.scope.Preview(pendingScript(t))
		fault := ""
		if err != nil {
			fault = err.Error()
		}
		if diff := cmp.Diff(tt.fault, fault); diff != "" {
			t.Errorf("%s: error (-want +got):\n%s", tt.name, diff)
		}
		var got []string
		for _, g := range grants {
			got = append(got, coverage(g))
			if left := time.Until(g.Until); left > tt.until || left < tt.until-time.Minute {
				t.Errorf("%s: ends in %v", tt.name, left)
			}
		}
		if diff := cmp.Diff(tt.wants, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func coverage(g admin.Grant) string {
	e := g.Call.Effects[0]
	return fmt.Sprintf("%s %d/%d %s", e.Card, g.Uses, g.Max, e.Pattern)
}

func TestACountNeedsComparableCallsOfAScript(t *testing.T) {
	p := pendingScript(t)
	p.Call.Effects[1].Pattern = nil
	if _, err := (admin.GrantScope{Count: 5}).Preview(p); err == nil || err.Error() !=
		"servers may read the arguments of log in different ways, so no count can cover them" {
		t.Errorf("a call that cannot be compared: %v", err)
	}
	single := admin.PendingCall{Call: gateway.ApprovalDetails{Card: "add"}}
	if _, err := (admin.GrantScope{Count: 5}).Preview(single); err == nil || err.Error() !=
		"--count is for calls that a script collected, and this is a single call" {
		t.Errorf("a single call: %v", err)
	}
}
