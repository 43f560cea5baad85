package offer

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Restore gives the params of a call in the server's own names: members of the arguments at any depth, and the name of the
// argument that is to be completed, that are among names. Everything else stays byte for byte. Params must be valid JSON.
func Restore(params json.RawMessage, names map[string]string) json.RawMessage {
	if len(names) == 0 {
		return params
	}
	var edits []wire.Edit
	for _, path := range [][]string{{"arguments"}, {"context", "arguments"}} {
		if given := wire.Get(params, path...); given != nil {
			if own := members(given, names); !sameBytes(own, given) {
				edits = append(edits, wire.Put(own, path...))
			}
		}
	}
	if own, ok := names[wire.GetText(params, "argument", "name")]; ok {
		edits = append(edits, wire.Put(wire.Quote(own), "argument", "name"))
	}
	return wire.Apply(params, edits...)
}

// members renames the members of all objects in a value: in valid JSON a string before a colon is a member's name.
func members(value json.RawMessage, names map[string]string) json.RawMessage {
	var out []byte
	at := 0
	for i := 0; i < len(value); {
		if value[i] != '"' {
			i++
			continue
		}
		end := i + 1
		for value[end] != '"' {
			if value[end] == '\\' {
				end++
			}
			end++
		}
		end++
		next := end
		for next < len(value) && (value[next] == ' ' || value[next] == '\t' || value[next] == '\n' || value[next] == '\r') {
			next++
		}
		if next < len(value) && value[next] == ':' {
			if text, ok := wire.Text(value[i:end]); ok && names[text] != "" {
				out = wire.AppendQuoted(append(out, value[at:i]...), names[text])
				at = end
			}
		}
		i = end
	}
	if out == nil {
		return value
	}
	return append(out, value[at:]...)
}
