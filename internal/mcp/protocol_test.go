package mcp_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

func TestEraOf(t *testing.T) {
	for version, want := range map[string]drawbridge.ProtocolEra{
		"":           0,
		"2024-11-05": drawbridge.Legacy,
		"2025-11-25": drawbridge.Legacy,
		"2026-07-28": drawbridge.Modern,
		"2027-01-01": drawbridge.Modern,
	} {
		if got := mcp.EraOf(version); got != want {
			t.Errorf("EraOf(%q) = %s, want %s", version, got, want)
		}
	}
}

func TestVersionsAreNewestFirst(t *testing.T) {
	all := slices.Concat(mcp.ModernVersions(), mcp.LegacyVersions())
	newest := slices.Clone(all)
	slices.Sort(newest)
	slices.Reverse(newest)
	if !slices.Equal(all, newest) {
		t.Errorf("got %v", all)
	}
	for _, v := range mcp.LegacyVersions() {
		if mcp.EraOf(v) != drawbridge.Legacy {
			t.Errorf("%s is not legacy", v)
		}
	}
}

func TestVersionOf(t *testing.T) {
	for params, want := range map[string]string{
		`{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`: "2026-07-28",
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}`:                       "",
		`{"protocolVersion":"2025-11-25"}`:                                              "",
		``:                                                                              "",
	} {
		if got := mcp.ProtocolVersion(json.RawMessage(params)); got != want {
			t.Errorf("VersionOf(%s) = %q, want %q", params, got, want)
		}
	}
	if got := string(mcp.MetaOf(json.RawMessage(`{"_meta": { "a": 1 } }`))); got != `{ "a": 1 }` {
		t.Errorf("MetaOf = %s", got)
	}
}
