//go:build !nomcp

package gateway

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

// TestAgentItems lists and gets prompts of a server for the person of a session, in every permission mode. Other methods
// are refused: they would pass by the approvals of the session.
func TestAgentItems(t *testing.T) {
	dir := t.TempDir()
	g := agentGateway(t, dir, row(t, "every", "everything"))
	tools := g.AgentTools("s1", AgentOptions{Dir: dir, Elicitation: true, Sampling: true})
	defer tools.Close()
	for _, mode := range []agent.PermissionMode{agent.AskFirst, agent.PlanOnly, agent.Bypass} {
		who := agent.Identity{Session: "s1", Mode: mode}
		prompts, err := tools.Items(t.Context(), who, mcp.MethodPromptsList)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range prompts {
			names = append(names, string(p.Server)+" "+p.Own)
		}
		if diff := cmp.Diff([]string{"every greet", "every hello"}, names); diff != "" {
			t.Errorf("prompts (-want +got):\n%s", diff)
		}
		skills, err := tools.Items(t.Context(), who, mcp.MethodSkillsList)
		if err != nil || len(skills) > 0 {
			t.Errorf("skills of a server without skills: %v, %v", skills, err)
		}
		raw, err := tools.Fetch(t.Context(), who, mcp.MethodPromptsGet,
			json.RawMessage(`{"name":"`+prompts[0].Name+`","arguments":{"name":"Ada"}}`))
		if err != nil || !strings.Contains(string(raw), "Ada") {
			t.Errorf("%s: the prompt is %s, %v", mode, raw, err)
		}
		_, err = tools.Fetch(t.Context(), who, mcp.MethodToolsCall, json.RawMessage(`{"name":"every__echo"}`))
		if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput {
			t.Errorf("a call of a tool as an item: %v", err)
		}
		if _, err = tools.Items(t.Context(), who, mcp.MethodToolsList); err == nil {
			t.Error("tools are listed as items")
		}
	}
}
