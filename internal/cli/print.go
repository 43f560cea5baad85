package cli

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// printJSON prints v as one indented JSON document.
func printJSON(w io.Writer, v any) error { return manners.PrintJSON(w, v) }

// clip cuts s to n characters on one line.
func clip(s string, n int) string {
	return safetext.Truncate(safetext.OneLine(s), n, safetext.Runes, "…")
}

// short shows a path to a person: "~" is the home.
func (a *app) short(path string) string {
	home, _ := a.Env("HOME")
	if rest, in := strings.CutPrefix(path, home); in && len(home) > 1 && (rest == "" || rest[0] == filepath.Separator) {
		return "~" + rest
	}
	return path
}
