//go:build unix

package config

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestNamesAndFilesOfStrangers has the rows of the path matrix that a project's files can try: what would be a path,
// an option or another's name is no name of a server, and what is no plain file is not read.
func TestNamesAndFilesOfStrangers(t *testing.T) {
	for _, tt := range []struct {
		row   string
		names []string
	}{
		{"PT-1 names that lead elsewhere", []string{"../x", "a/b", "/etc/passwd", "~/x", "$HOME", "a\x00b", "a%2fb",
			"a ", strings.Repeat("a", 4097)}},
		{"PT-5 names that a command line would take for something else", []string{"a\nb", "*", "a;b", "a b",
			"$(x)", "a|b", "`x`"}},
		{"PT-6 names in other letters", []string{"cafe\u0301", "ａ", "a\u202eb", "a．．b", "a／b", "a\u200bb"}},
		{"PT-7 names that Windows reads otherwise", []string{`c:\x`, `\\h\s`, `\\?\x`, "file:stream", `a\b`, "C:"}},
	} {
		for _, name := range tt.names {
			w := newWorld(t, map[string]string{".mcp.json": ""})
			w.write(t, "project/.mcp.json", `{"mcpServers": {`+quoteJSON(name)+`: {"command": "x"}}}`)
			for _, row := range w.mustLoad(t).Servers {
				if row.Phase != drawbridge.Refused {
					t.Errorf("%s: %q is a server's name", tt.row, name)
				}
			}
		}
	}
	for row, file := range map[string]string{"PT-4 a pipe": "project/.mcp.json", "PT-4 a pipe of one's own": userJSON} {
		w := newWorld(t, map[string]string{legacyJSON: `{"servers": {"a": {"command": "x"}}}`,
			"home/.config/drawbridge/x": "", "project/x": ""})
		if err := syscall.Mkfifo(w.path(file), 0o600); err != nil {
			t.Skip(err)
		}
		set := w.mustLoad(t) // which would wait for ever, if it were read
		wantDiff(t, row, []string{"a user idle"}, short(set.Servers))
		if len(set.Warnings) != 1 || filepath.ToSlash(set.Warnings[0].Origin.Path) != w.path(file) {
			t.Errorf("%s: %v", row, set.Warnings)
		}
	}
}
