package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
)

// printJSON prints v as one indented JSON document.
func printJSON(w io.Writer, v any) error { return manners.PrintJSON(w, v) }

// clip cuts s to n characters on one line.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return fmt.Sprintf("%s…", string([]rune(s)[:n-1]))
}

// short shows a path to a person: "~" is the home.
func (a *app) short(path string) string {
	home, _ := a.Env("HOME")
	if rest, in := strings.CutPrefix(path, home); in && len(home) > 1 && (rest == "" || rest[0] == filepath.Separator) {
		return "~" + rest
	}
	return path
}
