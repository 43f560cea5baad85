package vetting_test

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
	"github.com/google/go-cmp/cmp"
)

func TestTrustAccountName(t *testing.T) {
	written := func(text string) config.Server { return config.Server{Raw: json.RawMessage(text)} }
	same := [][2]config.Server{
		{written(`{"command":"x","args":["a"],"env":{"A":"1"}}`),
			written(`{"env": {"A":"1"}, "args":["a"], "command":"x", "trust":"trusted"}`)},
		{{ID: "a", Command: "x", Hash: "1"}, {ID: "b", Command: "x", Hash: "2"}},
	}
	other := [][2]config.Server{
		{written(`{"command":"x","args":["a"]}`), written(`{"command":"x","args":["b"]}`)},
		{written(`{"command":"x"}`), written(`{"url":"x"}`)},
		{written(`{"command":"x","env":{"A":"1"}}`), written(`{"command":"x","env":{"A":"2"}}`)},
		{{Command: "x", Cwd: "/a"}, {Command: "x", Cwd: "/b"}},
		{{Command: "x", Args: []string{"a", "b"}}, {Command: "x", Args: []string{"a b"}}},
	}
	for _, pair := range same {
		if diff := cmp.Diff(vetting.TrustAccountName(pair[0]), vetting.TrustAccountName(pair[1])); diff != "" {
			t.Errorf("%s and %s: %s", pair[0].Raw, pair[1].Raw, diff)
		}
	}
	for _, pair := range other {
		if vetting.TrustAccountName(pair[0]) == vetting.TrustAccountName(pair[1]) {
			t.Errorf("%s and %s have one account", pair[0].Raw, pair[1].Raw)
		}
	}
}
