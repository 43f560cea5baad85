package server

import (
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// logLevels lists the log levels of MCP, the least severe first.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// levelAdmits reports whether the log message in params is at least as severe as level, the minimum level of the
// client. An empty level admits all messages. A message with an unknown level is always admitted.
func levelAdmits(level string, params json.RawMessage) bool {
	if level == "" {
		return true
	}
	own := slices.Index(logLevels, rawjson.GetString(params, "level"))
	return own < 0 || own >= slices.Index(logLevels, level)
}
