package admin_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
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
		start   admin.AddRequest
		answers string // one a line
		want    admin.AddRequest
		shown   string
	}{
		"a command": {
			admin.AddRequest{}, "n\n\nnpx -y 'a b'\nA=1\n\n\nyes",
			admin.AddRequest{Name: "n", Scope: config.OriginProject, Command: "npx", Args: []string{"-y", "a b"},
				Env: []config.NameValue{{Name: "A", Value: "1"}}},
			`command: npx -y "a b"`,
		},
		"a URL, begun before": {
			admin.AddRequest{Name: "n", Type: "sse", Scope: config.OriginUser}, "\n${HOST}/mcp\n\n\n",
			admin.AddRequest{Name: "n", Scope: config.OriginUser, URL: "${HOST}/mcp", Type: "sse"}, "url: ${HOST}/mcp",
		},
		"a bad name, begun before": {
			admin.AddRequest{Name: "a b"}, "n\nstdio\nx\n\nproject\ny",
			admin.AddRequest{Name: "n", Scope: config.OriginProject, Command: "x", Args: []string{}},
			"Server name can only contain",
		},
		"a name that is taken there": {
			admin.AddRequest{Name: "taken"}, "stdio\nx\n\nuser\nproject\ny",
			admin.AddRequest{Name: "taken", Scope: config.OriginProject, Command: "x", Args: []string{}},
			`Server "taken" already exists in ` + w.path(userFile),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &typist{lines: strings.Split(tt.answers, "\n")}
			got, err := w.RunAddWizard(t.Context(), tt.start, p)
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
		if _, err := w.RunAddWizard(t.Context(), admin.AddRequest{}, p); !errors.Is(err, admin.ErrAddCancelled) {
			t.Errorf("%q: %v", answers, err)
		}
	}
	if got := w.read(projectFile); got != "" {
		t.Errorf("the wizard wrote %s", got)
	}
}
