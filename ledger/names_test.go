package ledger

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

func TestNamesAreTakenApart(t *testing.T) {
	for name, want := range map[drawbridge.CardName][2]string{
		"github__create_issue": {"github", "create_issue"},
		"a__b__c":              {"a", "b__c"},
		"__leading":            {"", "__leading"},
		"trailing__":           {"trailing", ""},
		"plain":                {"", "plain"},
		"one_two":              {"", "one_two"},
		"a___b":                {"a", "_b"},
		"":                     {"", ""},
	} {
		if server, tool := ServerOf(name), ToolOf(name); string(server) != want[0] || tool != want[1] {
			t.Errorf("%q: %q, %q; want %q", name, server, tool, want)
		}
	}
}
