package deck

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// pageURIPaths are where a tool names its page: the place of the specification, and the flat key of before.
func pageURIPaths() [][]string {
	return [][]string{{"_meta", "ui", "resourceUri"}, {"_meta", "ui/resourceUri"}}
}

// isAppOnly says whether the "_meta" of a tool lets nobody but the server's own pages use it.
func isAppOnly(meta json.RawMessage) bool {
	only := false
	for who := range rawjson.Elements(rawjson.Get(meta, "ui", "visibility")) {
		if text, _ := rawjson.DecodeString(who); text != "app" {
			return false
		}
		only = true
	}
	return only
}

// pageURIsOf gives the URIs of the pages that a tool names, each once. What is no "ui://" is no page to any host.
func pageURIsOf(tool json.RawMessage) []string {
	meta := rawjson.Get(tool, "_meta")
	if meta == nil {
		return nil
	}
	var out []string
	for _, path := range pageURIPaths() {
		uri := rawjson.GetString(meta, path[1:]...)
		if strings.HasPrefix(uri, "ui://") && len(uri) <= naming.MaxURI && !slices.Contains(out, uri) {
			out = append(out, uri)
		}
	}
	return out
}

// maxSummary is the most characters of a card's title or summary.
const maxSummary = 120

// oneLine returns the first line of a JSON string, no longer than help can show, with characters that cannot be seen as
// their code points.
func oneLine(raw json.RawMessage) string {
	text, _ := rawjson.DecodeString(raw)
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return safetext.Truncate(safetext.OneLine(line), maxSummary, safetext.Runes, "…")
}
