//go:build bench && !nomcp

package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// TestFlowCost measures what labels cost: small calls of a server, and runs with 1,000 reads of files, by the agent, with
// the guard of information flow and without, alternately in one run. The bars are 1.05 and 1.10.
func TestFlowCost(t *testing.T) {
	const rounds, small, files = 9, 400, 1000
	project := t.TempDir()
	for i := range files {
		text := strings.Repeat(fmt.Sprintf("line %d of a file with some words\n", i), 40)
		if err := os.WriteFile(filepath.Join(project, fmt.Sprintf("%d.txt", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var calls, runs [2][]time.Duration
	var tools [2]*AgentTools
	for i := range tools {
		g := open(t, Config{Dir: project, Servers: []config.Server{row(t, "every", "everything")}, withoutFlow: i == 1})
		tools[i] = g.AgentTools(fmt.Sprint("s", i), AgentOptions{Dir: project})
		who := agent.Identity{Session: "x", Run: "r", Mode: agent.Bypass}
		if _, err := tools[i].Brief(t.Context(), who, true); err != nil {
			t.Fatal(err)
		}
		if err := tools[i].Prompted(t.Context(), who, []drawbridge.MessagePart{{Text: "echo hello"}}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range rounds {
		for n := range 2 {
			i := (n + round) % 2 // the order changes
			who := agent.Identity{Session: fmt.Sprint("round", round), Run: "r", Mode: agent.Bypass}
			if err := tools[i].Prompted(t.Context(), who, []drawbridge.MessagePart{{Text: "echo hello"}}); err != nil {
				t.Fatal(err)
			}
			call := func(name, arguments string) time.Duration {
				began := time.Now()
				if _, err := tools[i].Call(t.Context(), who, toolCall(name, arguments), func(agent.CallUpdate) {}); err != nil {
					t.Fatal(err)
				}
				return time.Since(began)
			}
			for range small {
				calls[i] = append(calls[i], call("every__echo", `{"text":"hello"}`))
			}
			var run time.Duration
			for f := range files {
				run += call("read", fmt.Sprintf(`{"path":"%d.txt"}`, f))
			}
			runs[i] = append(runs[i], run)
		}
	}
	median := func(all []time.Duration) time.Duration {
		slices.Sort(all)
		return all[len(all)/2]
	}
	for _, m := range []struct {
		what    string
		on, off time.Duration
		bar     float64
	}{
		{"p50 of a small call", median(calls[0]), median(calls[1]), 1.05},
		{"a run with 1,000 reads", median(runs[0]), median(runs[1]), 1.10},
	} {
		ratio := float64(m.on) / float64(m.off)
		t.Logf("%s: with labels %s, without %s: %.3f (bar %.2f)", m.what, m.on, m.off, ratio, m.bar)
	}
}
