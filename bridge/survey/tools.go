package survey

import (
	"bytes"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Tools is what a server's tools want of their callers, by name. The zero value is for tools that want nothing.
type Tools struct {
	// Marks are the arguments that travel in headers too.
	Marks map[string][]wire.ParamMark
	// OnlyTasks are the tools that are only to be had as tasks.
	OnlyTasks map[string]bool
}

// ToolsOf reads the tools of a listing. With headers it looks for Marks.
func ToolsOf(tools []json.RawMessage, headers bool) Tools {
	t := Tools{OnlyTasks: onlyTasks(tools)}
	if headers {
		t.Marks = marksOf(tools)
	}
	return t
}

// marksOf gives the arguments that travel in headers too, by tool.
func marksOf(tools []json.RawMessage) map[string][]wire.ParamMark {
	var marks map[string][]wire.ParamMark
	for _, tool := range tools {
		m, err := wire.ParamMarks(wire.Get(tool, "inputSchema"))
		if err != nil || len(m) == 0 {
			continue
		}
		if marks == nil {
			marks = map[string][]wire.ParamMark{}
		}
		marks[wire.GetText(tool, "name")] = m
	}
	return marks
}

// onlyTasks gives the names of the tools that are only to be had as tasks.
func onlyTasks(tools []json.RawMessage) map[string]bool {
	var out map[string]bool
	for _, tool := range tools {
		if bytes.Contains(tool, []byte("taskSupport")) && wire.GetText(tool, "execution", "taskSupport") == "required" {
			if out == nil {
				out = map[string]bool{}
			}
			out[wire.GetText(tool, "name")] = true
		}
	}
	return out
}

// Repeatable says whether a tool may be called twice with the same arguments to no other effect than once: where it says so
// itself.
func Repeatable(tools []json.RawMessage, name string) bool {
	for _, tool := range tools {
		if wire.GetText(tool, "name") == name {
			hints := wire.Get(tool, "annotations")
			return string(wire.Get(hints, "readOnlyHint")) == "true" || string(wire.Get(hints, "idempotentHint")) == "true"
		}
	}
	return false
}
