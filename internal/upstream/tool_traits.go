package upstream

import (
	"bytes"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// toolTraits is what a server's tools want of their callers, by name. The zero value is for tools that want nothing.
type toolTraits struct {
	// HeaderParams are the arguments that travel in headers too.
	HeaderParams map[string][]mcp.HeaderParam
	// TaskOnly are the tools that are only to be had as tasks.
	TaskOnly map[string]bool
}

// parseToolTraits reads the tools of a listing. With headers it looks for Marks.
func parseToolTraits(tools []json.RawMessage, headers bool) toolTraits {
	t := toolTraits{TaskOnly: taskOnlyTools(tools)}
	if headers {
		t.HeaderParams = headerParamsByTool(tools)
	}
	return t
}

// headerParamsByTool gives the arguments that travel in headers too, by tool.
func headerParamsByTool(tools []json.RawMessage) map[string][]mcp.HeaderParam {
	var marks map[string][]mcp.HeaderParam
	for _, tool := range tools {
		m, err := mcp.ParseHeaderParams(rawjson.Get(tool, "inputSchema"))
		if err != nil || len(m) == 0 {
			continue
		}
		if marks == nil {
			marks = map[string][]mcp.HeaderParam{}
		}
		marks[rawjson.GetString(tool, "name")] = m
	}
	return marks
}

// taskOnlyTools gives the names of the tools that are only to be had as tasks.
func taskOnlyTools(tools []json.RawMessage) map[string]bool {
	var out map[string]bool
	for _, tool := range tools {
		if bytes.Contains(tool, []byte("taskSupport")) && rawjson.GetString(tool, "execution",
			"taskSupport") == "required" {
			if out == nil {
				out = map[string]bool{}
			}
			out[rawjson.GetString(tool, "name")] = true
		}
	}
	return out
}

// isToolRepeatable says whether a tool may be called twice with the same arguments to no other effect than once: where
// it says so itself.
func isToolRepeatable(tools []json.RawMessage, name string) bool {
	for _, tool := range tools {
		if rawjson.GetString(tool, "name") == name {
			hints := rawjson.Get(tool, "annotations")
			return string(rawjson.Get(hints, "readOnlyHint")) == "true" ||
				string(rawjson.Get(hints, "idempotentHint")) == "true"
		}
	}
	return false
}
