package roster_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/roster"
)

// A typist answers with its lines, one by one, and keeps what was shown.
type typist struct {
	lines []string
	shown []string
}

func (p *typist) Ask(question string) (string, error) {
	p.shown = append(p.shown, question)
	if len(p.lines) == 0 {
		return "", io.EOF
	}
	line := p.lines[0]
	p.lines = p.lines[1:]
	return line, nil
}

func (p *typist) Say(text string) { p.shown = append(p.shown, text) }

func TestWizard(t *testing.T) {
	w := newWorld(t, map[string]string{userFile: `{"servers": {"taken": {"command": "x"}}}`})
	for name, tt := range map[string]struct {
		start   roster.Request
		answers string // one a line
		want    roster.Request
		shown   string
	}{
		"a command": {
			roster.Request{}, "n\n\nnpx -y 'a b'\nA=1\n\n\nyes",
			roster.Request{Name: "n", Scope: config.Project, Command: "npx", Args: []string{"-y", "a b"}, Env: []config.Pair{{Name: "A", Value: "1"}}},
			`command: npx -y "a b"`,
		},
		"a URL, begun before": {
			roster.Request{Name: "n", Type: "sse", Scope: config.User}, "\n${HOST}/mcp\n\n\n",
			roster.Request{Name: "n", Scope: config.User, URL: "${HOST}/mcp", Type: "sse"}, "url: ${HOST}/mcp",
		},
		"a bad name, begun before": {
			roster.Request{Name: "a b"}, "n\nstdio\nx\n\nproject\ny",
			roster.Request{Name: "n", Scope: config.Project, Command: "x", Args: []string{}}, "Server name can only contain",
		},
		"a name that is taken there": {
			roster.Request{Name: "taken"}, "stdio\nx\n\nuser\nproject\ny",
			roster.Request{Name: "taken", Scope: config.Project, Command: "x", Args: []string{}}, `Server "taken" already exists in ` + w.path(userFile),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &typist{lines: strings.Split(tt.answers, "\n")}
			got, err := w.Wizard(t.Context(), tt.start, p)
			if err != nil {
				t.Fatal(err, p.shown)
			}
			wantDiff(t, "request", tt.want, got)
			if !strings.Contains(strings.Join(p.shown, "\n"), tt.shown) {
				t.Errorf("%q was not shown: %q", tt.shown, p.shown)
			}
		})
	}
	for _, answers := range []string{"", "n\nstdio", "n\nstdio\nx\n\nproject\nno"} {
		p := &typist{lines: strings.Split(answers, "\n")}
		if _, err := w.Wizard(t.Context(), roster.Request{}, p); !errors.Is(err, roster.Cancelled) {
			t.Errorf("%q: %v", answers, err)
		}
	}
	if got := w.read(projectFile); got != "" {
		t.Errorf("the wizard wrote %s", got)
	}
}
