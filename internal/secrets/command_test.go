//go:build unix

package secrets

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestACommandsValue(t *testing.T) {
	for name, tt := range map[string]struct{ command, value, err string }{
		"what it prints":    {"echo '  s3cret '", "s3cret", ""},
		"its environment":   {"echo $WHO", "me", ""},
		"more than a line":  {"printf 'a\\nb\\n'", "a\nb", ""},
		"nothing":           {"true", "", "printed nothing"},
		"a bad end":         {"echo s3cret; echo s3cret >&2; exit 3", "", "exit status 3"},
		"a flood":           {"yes s3cret | head -c 2000000", "", "more than"},
		"no such command":   {"no-such-command-here", "", "exit status 127"},
		"not in its stderr": {"echo oops >&2; echo v", "v", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var c CommandRunner
			value, err := c.Value(t.Context(), tt.command, []string{"WHO=me", "PATH=" + os.Getenv("PATH")})
			if value != tt.value {
				t.Errorf("got %q, want %q", value, tt.value)
			}
			switch {
			case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got %v, want %q", err, tt.err)
			case err != nil && strings.Contains(err.Error(), "s3cret"):
				t.Errorf("the error repeats what was printed: %v", err)
			}
		})
	}
}

func TestACommandRunsOnce(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	command := "echo run >> " + count + "; echo value"
	var c CommandRunner
	var work sync.WaitGroup
	for range 20 {
		work.Go(func() {
			if v, err := c.Value(t.Context(), command, os.Environ()); v != "value" || err != nil {
				t.Errorf("got %q, %v", v, err)
			}
		})
	}
	work.Wait()
	if data, _ := os.ReadFile(count); strings.Count(string(data), "run") != 1 {
		t.Errorf("it ran %d times", strings.Count(string(data), "run"))
	}
}

func TestACommandThatDidNotWorkRunsAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "value")
	var c CommandRunner
	if _, err := c.Value(t.Context(), "cat "+file, os.Environ()); err == nil {
		t.Fatal("no error")
	}
	if err := os.WriteFile(file, []byte("now"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Value(t.Context(), "cat "+file, os.Environ()); v != "now" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
}
