//go:build unix

package cli_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestTheModelsOfTheHub has the model be down by which the hub would find tools: who looks at the hub is told, by ps
// and by index stats, and without its key.
func TestTheModelsOfTheHub(t *testing.T) {
	d, m := newDesk(t), mcptest.StartLetterModel(t, "hunter2")
	m.SetDown(true)
	d.write(".config/drawbridge/drawbridge.toml",
		fmt.Sprintf("[mcp.tool_discovery.embedding]\nmodel = \"letters\"\nbase_url = %q\napi_key = \"hunter2\"\n",
			m.URL))
	d.talk()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for {
		if e := d.state().Models.Embedding; e != nil && !e.Away.IsZero() {
			break
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the hub has not given the model up: %+v", d.state().Models.Embedding)
		}
	}
	for _, command := range [][]string{{"ps"}, {"index", "stats"}} {
		out, _ := d.run(0, command...)
		for _, want := range []string{"model openai:letters: 0 of ", "the embedding model is not asked since ",
			"last error: embed by letters: the provider "} {
			if !strings.Contains(out, want) || strings.Contains(out, "hunter") {
				t.Errorf("%v does not show %q:\n%s", command, want, out)
			}
		}
	}
}
