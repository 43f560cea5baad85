package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/cli"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/google/go-cmp/cmp"
)

func TestPrint(t *testing.T) {
	s, err := shield.New(shield.Options{NoCaps: true})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("many words ", 30)
	many := func(value string) string {
		var members []string
		for i := range 23 {
			members = append(members, fmt.Sprintf(`"m%02d":%q`, i, value))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	for _, tt := range []struct {
		name, before, after, want string
		colour                    bool
	}{
		{"words", `{"description":"Puts a file."}`, `{"description":"Puts the file."}`,
			"wording (review)\n  /description, wording: Puts [-a-]{+the+} file.\n", false},
		{"colour", `{"description":"Puts a file."}`, `{"description":"Puts the file."}`,
			"wording (review)\n  /description, wording: Puts \x1b[31m[-a-]\x1b[0m\x1b[32m{+the+}\x1b[0m file.\n", true},
		{"a long text", `{"description":"` + long + `one ` + long + `"}`, `{"description":"` + long +
			`two ` + long + `"}`,
			"wording (review)\n  /description, wording: …" + long[len(long)-60:] + "[-one-]{+two+} " + long[:59] + "…" +
				long[len(long)-60:] + "\n", false},
		{"what acts on a terminal", `{"a":1}`, `{"a":1,"\u001b[2J":"\u001b[31m"}`,
			"new instruction (high)\n  /\\u001b[2J, new instruction: {+\\u001b[31m+}\n", false},
		{"twice", `{"description":"Puts."}`, `{"description":"Sends.","description":"Puts."}`,
			"unreadable (high)\n  duplicate keys or invalid JSON: parsers may disagree\n", false},
		{"no JSON", `{}`, `{`,
			"unreadable (high)\n  duplicate keys or invalid JSON: parsers may disagree\n", false},
	} {
		var b strings.Builder
		d := admin.DiffDefinitions(s, json.RawMessage(tt.before), json.RawMessage(tt.after))
		fmt.Fprintln(&b, d)
		cli.PrintDefinitionDiff(&b, d, tt.colour)
		if diff := cmp.Diff(tt.want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	var b strings.Builder
	cli.PrintDefinitionDiff(&b, admin.DiffDefinitions(s, json.RawMessage(many("a")), json.RawMessage(many("b"))), false)
	if lines := strings.Split(strings.TrimSpace(b.String()), "\n"); len(lines) != 21 ||
		lines[20] != "  and 3 more changes (--json has them all)" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}
