package cli

import (
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// truncateLine returns s on one line, with at most n characters.
func truncateLine(s string, n int) string {
	return safetext.Truncate(safetext.OneLine(s), n, safetext.Runes, "…")
}

// abbreviateHome returns a path for people, with "~" for the home directory.
func (a *app) abbreviateHome(path string) string {
	home, _ := a.Env("HOME")
	if rest, in := strings.CutPrefix(path, home); in && len(home) > 1 && (rest == "" || rest[0] == filepath.Separator) {
		return "~" + rest
	}
	return path
}
