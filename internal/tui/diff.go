package tui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/textfile"
)

// maxDiffLines is how many lines of a diff are shown; Ctrl-O shows all.
const maxDiffLines = 40

// maxDiffed is the size of arguments from which no diff is made: it would take too long for a frame.
const maxDiffed = 64 << 10

// diffStyle returns the style of a line of a unified diff.
func diffStyle(line string) style {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		return boldStyle
	case strings.HasPrefix(line, "+"):
		return okStyle
	case strings.HasPrefix(line, "-"):
		return badStyle
	case strings.HasPrefix(line, "@@"):
		return codeStyle
	}
	return dimStyle
}

// diffLines renders a unified diff; 0 means no limit.
func (p painter) diffLines(diff string, width, limit int) (lines []string) {
	all := strings.Split(strings.TrimRight(clean(diff), "\n"), "\n")
	for i, line := range all {
		if limit > 0 && i == limit {
			return append(lines, p.paint(dimStyle, fmt.Sprintf("  … %d more lines", len(all)-limit)))
		}
		for _, part := range hardWrap(line, width-2) {
			lines = append(lines, "  "+p.paint(diffStyle(line), part))
		}
	}
	return lines
}

// resultDiff returns the unified diff in the structured content of a result; empty without one.
func resultDiff(structured json.RawMessage) string {
	var v struct {
		Diff string `json:"diff"`
	}
	if json.Unmarshal(structured, &v) != nil || !strings.Contains(v.Diff, "@@") {
		return ""
	}
	return v.Diff
}

// argumentsDiff returns what the arguments of an edit would change as a unified diff; empty for other calls.
func argumentsDiff(arguments json.RawMessage) string {
	type change struct {
		OldText string `json:"oldText"`
		NewText string `json:"newText"`
	}
	var v struct {
		change
		Path  string   `json:"path"`
		Edits []change `json:"edits"`
	}
	if len(arguments) > maxDiffed || json.Unmarshal(arguments, &v) != nil || v.Path == "" {
		return ""
	}
	if v.change != (change{}) {
		v.Edits = append([]change{v.change}, v.Edits...)
	}
	var b strings.Builder
	line := func(text string) string { // a part of a file has no end of the file
		if text == "" || strings.HasSuffix(text, "\n") {
			return text
		}
		return text + "\n"
	}
	for _, e := range v.Edits {
		b.WriteString(textfile.Diff(v.Path, line(e.OldText), line(e.NewText)))
	}
	return b.String()
}
