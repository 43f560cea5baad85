package storetest

import (
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
	first := store.RowApproval{Path: "/p/.mcp.json", Server: "db", Hash: "1", Shown: facts, Approved: true}
	other := store.RowApproval{Path: "/q/.mcp.json", Server: "db", Hash: "1", Shown: facts}
	requireNoError(t, s.SaveRowApproval(t.Context(), other))
	requireNoError(t, s.SaveRowApproval(t.Context(), store.RowApproval{Path: "/p/.mcp.json", Server: "db", Hash: "0"}))
	requireNoError(t, s.SaveRowApproval(t.Context(), first))
	got, err := p().RowApprovals(t.Context())
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
