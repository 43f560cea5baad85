//go:build !nomcp

package gateway_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestEveryDoorShowsWhatTheShieldLeaves lists a hostile server by every door to clients of both generations: nothing
// is left that the shield would change, the honest tool is the server's own bytes, and all see the same.
func TestEveryDoorShowsWhatTheShieldLeaves(t *testing.T) {
	s, err := shield.New(shield.Options{NoCaps: true})
	if err != nil {
		t.Fatal(err)
	}
	g := runGateway(t, `{"servers":{"p":`+string(mcptest.ServerRow(t, "poisoned"))+`}}`,
		"[mcp.shield]\nquarantine_threshold = 0 # what is said is looked at here, not who says it\n")
	seen := map[string][]string{}
	for _, door := range []string{"HTTP", "stdio"} {
		for _, era := range []drawbridge.ProtocolEra{drawbridge.Legacy, drawbridge.Modern} {
			c := newClient(t, era, mcp.Version20251125, "", func(hear func(mcp.Message)) line {
				if door == "HTTP" {
					return dialHTTP(g.url, era, hear)
				}
				return dialStdio(t, g.Server(), hear)
			})
			for method, member := range map[string]string{
				mcp.MethodToolsList: "tools", mcp.MethodPromptsList: "prompts", mcp.MethodResourcesList: "resources",
				mcp.MethodTemplatesList: "resourceTemplates",
			} {
				m := c.do(method, `{}`)
				if m.Error != nil {
					t.Fatalf("%s by %s: %s", method, door, m.Error)
				}
				var list []string
				for raw := range rawjson.Elements(rawjson.Get(m.Result, member)) {
					list = append(list, string(raw))
					if r, err := s.CheckDefinition(json.RawMessage(raw)); err != nil ||
						string(r.Canonical) != string(raw) || r.Verdict == shield.VerdictBlanked {
						t.Errorf("%s by %s lists %s: %v, %v", method, door, raw, r.Reasons, err)
					}
				}
				if before, ok := seen[method]; ok && !slices.Equal(list, before) {
					t.Errorf("%s by %s to a %s client: %q, want %q", method, door, era, list, before)
				}
				seen[method] = list
			}
			if era == drawbridge.Legacy && strings.Contains(string(c.told), "previous") {
				t.Errorf("initialize answers %s", c.told)
			}
		}
	}
	if honest := strings.Replace(mcptest.HonestTool, `"honest"`, `"p__honest"`,
		1); !slices.Contains(seen[mcp.MethodToolsList], honest) {
		t.Errorf("no %s in %q", honest, seen[mcp.MethodToolsList])
	}
	if text := g.Deck().Instructions(g.Owner()); text != "## p\n[sanitized]\n" {
		t.Errorf("instructions %q", text)
	}
}
