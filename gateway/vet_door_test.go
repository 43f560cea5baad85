//go:build !nomcp

package gateway_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcptest"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// TestEveryDoorShowsWhatTheShieldLeaves lists a hostile server by every door to clients of both generations: nothing is left
// that the shield would change, the honest tool is the server's own bytes, and all see the same.
func TestEveryDoorShowsWhatTheShieldLeaves(t *testing.T) {
	s, err := shield.New(shield.Options{Uncapped: true})
	if err != nil {
		t.Fatal(err)
	}
	g := runGateway(t, `{"servers":{"p":`+string(mcptest.Row(t, "poisoned"))+`}}`, "")
	seen := map[string][]string{}
	for _, door := range []string{"HTTP", "stdio"} {
		for _, era := range []drawbridge.Era{drawbridge.Legacy, drawbridge.Modern} {
			c := newClient(t, era, wire.Version20251125, "", func(hear func(wire.Message)) line {
				if door == "HTTP" {
					return dialHTTP(g.url, era, hear)
				}
				return dialStdio(t, g.Server(), hear)
			})
			for method, member := range map[string]string{
				wire.MethodToolsList: "tools", wire.MethodPromptsList: "prompts", wire.MethodResourcesList: "resources", wire.MethodTemplatesList: "resourceTemplates",
			} {
				m := c.do(method, `{}`)
				if m.Error != nil {
					t.Fatalf("%s by %s: %s", method, door, m.Error)
				}
				var list []string
				for raw := range wire.Elements(wire.Get(m.Result, member)) {
					list = append(list, string(raw))
					if r, err := s.Definition(json.RawMessage(raw)); err != nil || string(r.Canonical) != string(raw) || r.Verdict == shield.Blanked {
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
	if honest := strings.Replace(mcptest.HonestTool, `"honest"`, `"p__honest"`, 1); !slices.Contains(seen[wire.MethodToolsList], honest) {
		t.Errorf("no %s in %q", honest, seen[wire.MethodToolsList])
	}
	if text := g.Deck().Instructions(g.Owner()); text != "## p\n[sanitized]\n" {
		t.Errorf("instructions %q", text)
	}
}
