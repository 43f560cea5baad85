package storetest

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func testApprovals(t *testing.T, p Place) {
	s := p()
	facts := []config.Pair{{Name: "command", Value: "npx"}, {Name: "env TOKEN", Value: "sha256:12"}}
	first := store.Approval{Path: "/p/.mcp.json", Server: "db", Hash: "1", Facts: facts, Approved: true}
	other := store.Approval{Path: "/q/.mcp.json", Server: "db", Hash: "1", Facts: facts}
	must(t, s.Approve(t.Context(), other))
	must(t, s.Approve(t.Context(), store.Approval{Path: "/p/.mcp.json", Server: "db", Hash: "0"}))
	must(t, s.Approve(t.Context(), first))
	got, err := p().Approvals(t.Context())
	must(t, err)
	if diff := cmp.Diff(store.Approvals{first, other}, got, cmpopts.IgnoreFields(store.Approval{}, "At")); diff != "" {
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
