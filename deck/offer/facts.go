package offer

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// PagePaths are where a tool names its page: the place of the specification, and the flat key of before.
func PagePaths() [][]string {
	return [][]string{{"_meta", "ui", "resourceUri"}, {"_meta", "ui/resourceUri"}}
}

// AppOnly says whether the "_meta" of a tool lets nobody but the server's own pages use it.
func AppOnly(meta json.RawMessage) bool {
	only := false
	for who := range wire.Elements(wire.Get(meta, "ui", "visibility")) {
		if text, _ := wire.Text(who); text != "app" {
			return false
		}
		only = true
	}
	return only
}

// Pages gives the URIs of the pages that a tool names, each once. What is no "ui://" is no page to any host.
func Pages(tool json.RawMessage) []string {
	meta := wire.Get(tool, "_meta")
	if meta == nil {
		return nil
	}
	var out []string
	for _, path := range PagePaths() {
		uri := wire.GetText(meta, path[1:]...)
		if strings.HasPrefix(uri, "ui://") && len(uri) <= label.MaxURI && !slices.Contains(out, uri) {
			out = append(out, uri)
		}
	}
	return out
}

// maxSummary is the most characters of a card's title or summary.
const maxSummary = 120

// OneLine returns the first line of a JSON string, no longer than help can show, with characters that cannot be seen as
// their code points.
func OneLine(raw json.RawMessage) string {
	text, _ := wire.Text(raw)
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return safetext.Truncate(safetext.OneLine(line), maxSummary, safetext.Runes, "…")
}
