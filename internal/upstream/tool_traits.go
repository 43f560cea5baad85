package upstream

import (
	"bytes"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// toolTraits contains special requirements of a server's tools, by tool name. The zero value contains none.
type toolTraits struct {
	// HeaderParams are the arguments that are also sent in HTTP headers.
	HeaderParams map[string][]mcp.HeaderParam
	// TaskOnly is the set of tools that must be called as tasks.
	TaskOnly map[string]bool
}

// parseToolTraits returns the traits of listed tools. It parses HeaderParams only if headers is set.
func parseToolTraits(tools []json.RawMessage, headers bool) toolTraits {
	t := toolTraits{TaskOnly: taskOnlyTools(tools)}
	if headers {
		t.HeaderParams = headerParamsByTool(tools)
	}
	return t
}

// headerParamsByTool returns the arguments that are also sent in HTTP headers, by tool name.
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

// taskOnlyTools returns the names of the tools that must be called as tasks.
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

// isToolRepeatable reports whether the tool declares itself read-only or idempotent.
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
