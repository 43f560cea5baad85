package claim

import (
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// severity has the log levels of MCP, the least severe first.
var severity = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Hears says whether a log line is severe enough for a client that asks for a level and above. An empty level admits all, and so does
// a line whose own is unknown.
func Hears(level string, params json.RawMessage) bool {
	if level == "" {
		return true
	}
	own := slices.Index(severity, wire.GetText(params, "level"))
	return own < 0 || own >= slices.Index(severity, level)
}
