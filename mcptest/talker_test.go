package mcptest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
)

const asks = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask","arguments":{"rounds":[["roots"],["roots","nothing"]]}}}`

// TestTalkerAsks has the stateful talker ask two rounds, and looks at its record.
func TestTalkerAsks(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	p := start(t, "talker", "legacy", record)
	p.say(hello)
	p.hear()
	p.say(asks)
	var heard []string
	for _, answer := range []string{`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`, ``,
		`{"jsonrpc":"2.0","id":3,"error":{"code":-1}}`} {
		heard = append(heard, p.hear())
		if answer != "" {
			p.say(answer)
		}
	}
	p.say(`{"jsonrpc":"2.0","id":2,"result":{"roots":[1]}}`)
	heard = append(heard, p.hear())
	want := []string{
		`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`,
		`{"jsonrpc":"2.0","id":2,"method":"roots/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"roots/list"}`,
		`{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":{"answers":[[{"roots":[]}],[{"roots":[1]},{"error":{"code":-1}}]]}}}`,
	}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("conversation (-want +got):\n%s", diff)
	}
	p.say(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"wait"}}`)
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)
	p.say(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"exit"}}`)
	if got := p.hear(); !strings.Contains(got, "good bye") {
		t.Errorf("after a cancelled call it says %s", got)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	all, err := mcptest.ReadTalkerEvents(record)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]string{}
	for _, r := range all {
		if r.Event == "answered" || r.Event == "cancelled" {
			ends[r.Name] = r.Event
		}
	}
	if diff := cmp.Diff(map[string]string{"ask": "answered", "wait": "cancelled", "exit": "answered"},
		ends); diff != "" {
		t.Errorf("ends of the calls (-want +got):\n%s", diff)
	}
}

const (
	asksForm = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"rounds":[["form"],["roots"]]},MORE` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
	asked = `"inputRequests":{"q1.1":{"method":"elicitation/create"`
	gave  = `"structuredContent":{"answers":[[{"action":"decline"}],[{"undeclared":"roots"}]]}`
)

// TestTalkerSendsBack has the stateless talker ask for input, and for nothing that was not declared.
func TestTalkerSendsBack(t *testing.T) {
	out, _ := talk(t, []string{"talker", "modern"}, strings.Replace(asksForm, "MORE", "", 1))
	if len(out) != 1 || !strings.Contains(out[0], asked) || !strings.Contains(out[0], `"requestState":"é \"\\ []"`) {
		t.Fatalf("it answers %q", out)
	}
	retry := strings.Replace(asksForm, "MORE",
		`"requestState":"\u00e9 \"\\ []","inputResponses":{"q1.1":{"action":"decline"}},`, 1)
	if out, _ = talk(t, []string{"talker", "modern"}, retry); len(out) != 1 || !strings.Contains(out[0], gave) {
		t.Errorf("it answers the retry with %q", out)
	}
	foreign := strings.Replace(asksForm, "MORE", `"requestState":"mine",`, 1)
	if out, _ = talk(t, []string{"talker", "modern"}, foreign); len(out) != 1 || !strings.Contains(out[0],
		`"code":-32602`) {
		t.Errorf("it answers a foreign state with %q", out)
	}
}
