package guards_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
)

// TestTheExamplesOfTheGuide reads the rules that docs/policy.md shows, and has them judge what it says of them.
func TestTheExamplesOfTheGuide(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "policy.md"))
	if err != nil {
		t.Fatal(err)
	}
	var wardens []*guards.RuleGuard
	for _, block := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(text, -1) {
		file := filepath.Join(t.TempDir(), "drawbridge.toml")
		if err := os.WriteFile(file, block[1], 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := config.LoadSettings(config.Options{SettingsFile: file, Home: "/home/ada", XDGConfig: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		p, err := guards.CompileRules(s.Rules)
		if err != nil {
			t.Fatal(err)
		}
		if warnings := p.Warnings(); len(warnings) > 0 {
			t.Error(warnings)
		}
		w := guards.NewRuleGuard(slog.New(slog.DiscardHandler))
		w.Update(p, nil, nil)
		wardens = append(wardens, w)
	}
	const allow, ask, deny = drawbridge.Allow, drawbridge.Ask, drawbridge.Deny
	ada := drawbridge.Caller{Kind: drawbridge.Author, Principal: "ada", Scopes: []drawbridge.Scope{"*"}}
	ci := drawbridge.Caller{Kind: drawbridge.External, Principal: "client:ci", Scopes: []drawbridge.Scope{"*"}}
	guest := drawbridge.Caller{Kind: drawbridge.External, Principal: "client:guest", Scopes: []drawbridge.Scope{"*"}}
	for _, tt := range []struct {
		example      int
		caller       drawbridge.Caller
		server, tool string
		arguments    string
		want         drawbridge.Effect
		hidden       bool
	}{
		{0, ada, "github", "delete_branch", `{}`, deny, true},
		{0, ada, "db", "drop_table", `{}`, deny, true},
		{0, ada, "fs", "write_file", `{"path":"/home/ada/src/x"}`, allow, false},
		{0, ada, "fs", "write_file", `{"path":"/home/ada/src/../.ssh/x"}`, deny, false},
		{0, ada, "fs", "read_file", `{"path":"/etc/hosts"}`, allow, false},
		{0, ada, "git", "git_push", `{"branch":"main"}`, ask, false},
		{0, ada, "git", "git_push", `{"branch":"mine"}`, allow, false},
		{1, ada, "github", "write", `{}`, allow, false},
		{1, ci, "github", "read", `{}`, allow, false},
		{1, ci, "github", "write", `{}`, deny, true},
		{1, guest, "github", "read", `{}`, deny, true},
		{2, ada, "fs", "read_file", `{}`, allow, false},
		{2, ada, "os", "shell", `{}`, deny, true},
		{2, ada, "os", "other", `{}`, allow, false},
	} {
		definition := `{"name":"` + tt.tool + `","annotations":{"readOnlyHint":` + map[bool]string{true: "true",
			false: "false"}[tt.tool == "read"] + `}}`
		got := wardens[tt.example].Decide(t.Context(), deck.Question{
			Caller: tt.caller, Kind: "tool", Method: "tools/call", Params: []byte(`{"arguments":` + tt.arguments + `}`),
			Spec: drawbridge.Spec{
				Server: drawbridge.ServerID(tt.server), Tool: tt.tool, Name: drawbridge.CardName(tt.server + "__" +
					tt.tool), Definition: []byte(definition),
			},
		})
		if got.Effect != tt.want || got.Hide != tt.hidden {
			t.Errorf("example %d, %s, %s:%s %s: %+v, want %v, hidden %v", tt.example+1, tt.caller.Principal, tt.server,
				tt.tool, tt.arguments, got, tt.want, tt.hidden)
		}
	}
}
