//go:build unix

package guards_test

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/google/go-cmp/cmp"
)

// TestDirs has what rows say of where relative paths start.
func TestDirs(t *testing.T) {
	roots := []string{"file:///roots"}
	for name, tt := range map[string]struct {
		row  config.Server
		want []string
	}{
		"its own directory": {config.Server{Cwd: "/home/ada"}, []string{"/home/ada", "/roots"}},
		"an argument": {config.Server{Cwd: "/w", Args: []string{"-y", "/srv/a b", "/srv/root"}},
			[]string{"/w", "/srv/a", "/srv/a b", "/srv/root", "/roots"}},
		"a flag": {config.Server{Cwd: "/w", Args: []string{"--root=/srv/root", "-I/usr", "--dir=data"}},
			[]string{"/w", "/srv/root", "/usr", "/w/data", "/roots"}},
		"several in one": {config.Server{Cwd: "/w", Args: []string{"--mount=type=bind,src=/x,dst=/y"}},
			[]string{"/w", "/x", "/y", "/w/type=bind,src=/x,dst=/y", "/roots"}},
		"relative ones": {config.Server{Cwd: "/w", Args: []string{".", "data", "../up", ""}},
			[]string{"/w", "/w/data", "/up", "/roots"}},
		"of home, and a URI": {config.Server{Cwd: "/w", Args: []string{"~/src", "file:///x"}},
			[]string{"/w", "~/src", "/x", "/roots"}},
		"one twice": {config.Server{Cwd: "/w", Args: []string{"/w", "/w"}}, []string{"/w", "/roots"}},
		"one behind a URL": {config.Server{URL: "https://a", Cwd: "/w", Args: []string{"/x"}},
			[]string{"/roots"}},
		"unknown directories":    {config.Server{Args: []string{"data"}}, []string{"/roots"}},
		"the program of a shell": {config.Server{Cwd: "/w", Args: []string{"-c"}}, []string{"/w", "/roots"}},
	} {
		if diff := cmp.Diff(tt.want, guards.RelativeDirs(tt.row, roots)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestARelativePathIsJudgedWhereItLeads: by who decides, and by who explains.
func TestARelativePathIsJudgedWhereItLeads(t *testing.T) {
	w := guards.NewRuleGuard(slog.New(slog.DiscardHandler))
	p, err := guards.CompileRules(&drawbridge.Rules{Default: drawbridge.Allow,
		Rules: []drawbridge.Rule{{Effect: drawbridge.Deny, Paths: []string{"/srv/root/secret/**"}}}})
	if err != nil {
		t.Fatal(err)
	}
	w.Update(p, []config.Server{{ID: "fs", Cwd: "/home/ada", Args: []string{"/srv/root"}},
		{ID: "web", URL: "https://a"}}, []string{"file:///srv"})
	for _, tt := range []struct {
		server    drawbridge.ServerID
		path, say string
	}{
		{"fs", "secret/s.txt", "deny"},
		{"fs", "root/secret/s.txt", "deny"},
		{"fs", "public/s.txt", "allow"},
		{"web", "secret/s.txt", "allow"},
		{"web", "root/secret/s.txt", "deny"},
		{"", "secret/s.txt", "allow"},
	} {
		params, err := json.Marshal(map[string]any{"name": "read", "arguments": map[string]any{"path": tt.path}})
		if err != nil {
			t.Fatal(err)
		}
		q := deck.Question{Kind: "tool", Method: "tools/call", Spec: drawbridge.Spec{Server: tt.server, Tool: "read",
			Name: "read"}, Params: params}
		explained, _ := w.Explain(q)
		if decided := w.Decide(t.Context(), q).Effect.String(); decided != tt.say ||
			explained.Effect.String() != tt.say {
			t.Errorf("%s of %q: decided %s, explained %s, want %s", tt.path, tt.server, decided,
				explained.Effect, tt.say)
		}
	}
}

// TestAProjectsRowSaysNothingOfAPersonsServer: one of the same name that no one approved changes neither trust nor
// directories.
func TestAProjectsRowSaysNothingOfAPersonsServer(t *testing.T) {
	own := config.Server{ID: "fs", Cwd: "/home/ada", Trust: "sandboxed", Phase: drawbridge.Idle}
	weak := config.Server{ID: "fs", Cwd: "/project", Trust: "trusted", Phase: drawbridge.NeedsApproval}
	for _, rows := range [][]config.Server{{own, weak}, {weak, own}} {
		w := guards.NewRuleGuard(slog.New(slog.DiscardHandler))
		p, err := guards.CompileRules(&drawbridge.Rules{Default: drawbridge.Deny,
			Rules: []drawbridge.Rule{{Effect: drawbridge.Allow, Trust: []string{"trusted"}}}})
		if err != nil {
			t.Fatal(err)
		}
		w.Update(p, rows, nil)
		if !w.Hides(drawbridge.Caller{}, "tool", drawbridge.Spec{Server: "fs", Tool: "x", Name: "fs__x"}) {
			t.Error("the server is taken for a trusted one")
		}
		if dir := guards.ActiveRows(rows)["fs"].Cwd; dir != "/home/ada" {
			t.Errorf("the server's directory is %s", dir)
		}
	}
}
