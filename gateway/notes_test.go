package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/google/go-cmp/cmp"
)

// TestNotes shows what people are told of names that are taken and of what is not on the deck.
func TestNotes(t *testing.T) {
	m := deck.ServerSummary{Server: "b", Clashes: []deck.NameClash{
		{Kind: "tool", Name: "echo", Winner: "a", Tool: "echo", Listed: "b__echo"},
		{Kind: "tool", Name: "drawbridge_search", Tool: "drawbridge_search", Listed: "b__drawbridge_search"},
		{Kind: "resource", Name: "ui://app", Winner: "a", Tool: "ui://app"},
	}, Omitted: []deck.OmittedItem{
		{Kind: "resource", Name: "ui://app", Reason: "another server has its name"},
		{Kind: "tool", Name: "odd\x1b[31m\nname" + strings.Repeat("x", 200), Reason: "the server lists its name twice"},
		{Kind: "prompt", Reason: "it has no name"},
	}}
	for i := range 13 {
		name := fmt.Sprintf("t%d", i)
		m.Clashes = append(m.Clashes, deck.NameClash{Kind: "tool", Name: name, Winner: "c", Tool: name,
			Listed: "b__" + name})
		m.Omitted = append(m.Omitted, deck.OmittedItem{Kind: "tool", Name: name,
			Reason: "it is over the limit of 2 for this server"})
	}
	for i := range 6 {
		uri := fmt.Sprintf("skill://%d", i)
		m.Clashes = append(m.Clashes, deck.NameClash{Kind: "resource", Name: uri, Winner: "d", Tool: uri})
		m.Omitted = append(m.Omitted, deck.OmittedItem{Kind: "resource", Name: uri,
			Reason: "another server has its name"})
	}
	want := []string{
		"tool echo: the name is taken by server a; listed as b__echo",
		"tool drawbridge_search: the name is taken by Drawbridge itself; listed as b__drawbridge_search",
		"resource ui://app: the name is taken by server a; not listed",
		"13 tools: their names are taken by server c",
		"6 resources: their names are taken by server d; not listed",
		`tool odd\u001b[31m\nname` + strings.Repeat("x", 86) + "…: left out, because the server lists its name twice",
		"a prompt: left out, because it has no name",
		"13 tools: left out, each because it is over the limit of 2 for this server",
	}
	if diff := cmp.Diff(want, memberNotes(m)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if got := memberNotes(deck.ServerSummary{}); got != nil {
		t.Errorf("of a server with nothing to say: %q", got)
	}
}
