package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
)

// printJSON prints v as one indented JSON document.
func printJSON(w io.Writer, v any) error { return manners.PrintJSON(w, v) }

// printRawList prints JSON values as one array, a line each, their bytes as they are.
func printRawList(w io.Writer, items []json.RawMessage) error {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  ")
		b.Write(item)
	}
	b.WriteString("\n]\n")
	_, err := w.Write(b.Bytes())
	return err
}

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
