package storetest

import (
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func testApprovals(t *testing.T, p OpenStore) {
	s := p()
	facts := []config.NameValue{{Name: "command", Value: "npx"}, {Name: "env TOKEN", Value: "sha256:12"}}
	ada := store.Approver{Principal: "ada", Machine: "desk"}
	first := store.RowApproval{By: ada, Path: "/p/.mcp.json", Server: "db", Hash: "1", Shown: facts, Approved: true}
	other := store.RowApproval{By: ada, Path: "/q/.mcp.json", Server: "db", Hash: "1", Shown: facts}
	requireNoError(t, s.SaveRowApproval(t.Context(), other))
	requireNoError(t, s.SaveRowApproval(t.Context(), store.RowApproval{By: ada, Path: "/p/.mcp.json", Server: "db",
		Hash: "0"}))
	requireNoError(t, s.SaveRowApproval(t.Context(), first))
	got, err := p().RowApprovals(t.Context(), ada)
	requireNoError(t, err)
	if diff := cmp.Diff(store.RowApprovals{first, other}, got, cmpopts.IgnoreFields(store.RowApproval{},
		"At")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, one := range got {
		if one.At.IsZero() {
			t.Errorf("%s has no time", one.Path)
		}
	}
	row := func(path, hash string) config.Server {
		return config.Server{ID: drawbridge.ServerID("db"), Hash: hash, Origin: config.Origin{Path: path}}
	}
	for _, tt := range []struct {
		row   config.Server
		allow bool
	}{
		{row("/p/.mcp.json", "1"), true},
		{row("/p/.mcp.json", "0"), false},
		{row("/q/.mcp.json", "1"), false},
		{row("/r/.mcp.json", "1"), false},
	} {
		if got.Allows(tt.row) != tt.allow {
			t.Errorf("%s %s: allowed is %v", tt.row.Origin.Path, tt.row.Hash, !tt.allow)
		}
	}
}

// testApprovalsAreOnesOwn tests that a decision about a configuration row applies only to the person and the machine
// that made it. Decisions of another person, or of the same person on another machine, do not change it.
func testApprovalsAreOnesOwn(t *testing.T, p OpenStore) {
	s := p()
	ada, bob := store.Approver{Principal: "ada", Machine: "desk"}, store.Approver{Principal: "bob", Machine: "desk"}
	away := store.Approver{Principal: "ada", Machine: "laptop"}
	row := config.Server{ID: "db", Hash: "1", Origin: config.Origin{Path: "/srv/p/.mcp.json"}}
	decide := func(by store.Approver, approved bool) {
		requireNoError(t, s.SaveRowApproval(t.Context(), store.RowApproval{By: by, Path: row.Origin.Path, Server: row.ID,
			Hash: row.Hash, Approved: approved}))
	}
	want := func(when string, allowed ...store.Approver) {
		t.Helper()
		for _, by := range []store.Approver{ada, bob, away, {}} {
			all, err := p().RowApprovals(t.Context(), by)
			requireNoError(t, err)
			if got := all.Allows(row); got != slices.Contains(allowed, by) {
				t.Errorf("%s: allowed for %v is %v", when, by, got)
			}
		}
	}
	decide(ada, true)
	want("ada approved", ada)
	decide(bob, false)
	want("bob rejected", ada)
	decide(away, true)
	decide(ada, false)
	want("ada approved on the laptop, and rejected at the desk", away)
	wantFaultCode(t, s.SaveRowApproval(t.Context(), store.RowApproval{Path: row.Origin.Path, Server: row.ID,
		Approved: true}), drawbridge.InvalidInput)
}
