package deck

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// pageURIPaths returns the two paths in a tool at which the URI of its page may be: the path in the MCP Apps
// specification, and an older path.
func pageURIPaths() [][]string {
	return [][]string{{"_meta", "ui", "resourceUri"}, {"_meta", "ui/resourceUri"}}
}

// isAppOnly reports whether the "_meta" of a tool limits its visibility to the server's own pages. Such a tool must not
// be shown to a model.
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

// pageURIsOf returns the distinct URIs of pages in a tool; see pageURIPaths. It ignores URIs that do not begin with
// "ui://", because hosts ignore them too.
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

// maxSummary is the maximum length of a title or summary, in characters.
const maxSummary = 120

// oneLine returns the first line of a JSON string, truncated to maxSummary characters. Invisible characters are
// replaced with their code points.
func oneLine(raw json.RawMessage) string {
	text, _ := rawjson.DecodeString(raw)
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return safetext.Truncate(safetext.OneLine(line), maxSummary, safetext.Runes, "…")
}
