//go:build !nomcp

package gateway_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// embedded waits until all cards of a gateway have vectors, and returns how many there are.
func embedded(t *testing.T, r *running) int {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for {
		s := r.ModelStatus().Embedding
		if n := len(r.Deck().Cards(r.Owner())); s.Texts >= n && s.Vectors == s.Texts {
			return s.Vectors
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("the cards were not embedded: %+v", s)
		}
	}
}

// TestAModelOfYourOwn has cards embedded as they come, before anybody asks, and no text of them twice: not by the next
// process either. Who looks for a tool while the model is down finds it all the same.
func TestAModelOfYourOwn(t *testing.T) {
	m := mcptest.StartLetterModel(t, "sk-of-the-test")
	dir := t.TempDir()
	settings := fmt.Sprintf(
		"[mcp.tool_discovery]\nmode = \"search\"\n[mcp.tool_discovery.embedding]\nmodel = \"letters\"\nbase_url = %q\napi_key = \"sk-of-the-test\"\n", m.URL)
	rows := `{"servers":{"up":` + string(mcptest.ServerRow(t, "talker", drawbridge.Legacy.String(), dir+"/record")) +
		`}}`
	r := runIn(t, dir, rows, settings)
	cards := embedded(t, r)
	texts := m.EmbeddedTexts()
	if slices.Sort(texts); len(slices.Compact(slices.Clone(texts))) != len(texts) || len(texts) != cards+
		1 || cards < 5 {
		t.Errorf("%d cards, asked for %q", cards, texts)
	}
	if s := r.ModelStatus().Embedding; s.Model != "openai:letters" || s.Dimension != 26 || s.Err != "" {
		t.Errorf("%+v", s)
	}
	r.stop()

	r = runIn(t, dir, rows, settings)
	if again := embedded(t, r); again != cards {
		t.Errorf("%d cards, and before %d", again, cards)
	}
	if texts := m.EmbeddedTexts(); len(texts) != 1 {
		t.Errorf("asked again for %q", texts)
	}
	find := func(query string) []string {
		caller := r.Owner()
		caller.Kind = drawbridge.External
		result, err := r.Deck().Do(t.Context(), drawbridge.Call{
			Caller: caller, Method: mcp.MethodToolsCall,
			Params: json.RawMessage(fmt.Sprintf(`{"name":"find_tools","arguments":{"query":%q}}`, query)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return toolsIn(result.Raw, "structuredContent", "tools")
	}
	if names := find("ask the person for their name"); !slices.Contains(names, "up__ask") {
		t.Errorf("found %v", names)
	}
	m.SetDown(true)
	for i := range 5 {
		if names := find(fmt.Sprintf("ask the person for their name, %d times", i)); !slices.Contains(
			names, "up__ask") {
			t.Errorf("found %v", names)
		}
	}
}
