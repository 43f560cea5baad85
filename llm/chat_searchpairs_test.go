package llm

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestPairedSearches has calls and results of searches, of which some lost the other half.
func TestPairedSearches(t *testing.T) {
	part := func(raw string) drawbridge.MessagePart {
		return drawbridge.MessagePart{Thinking: &drawbridge.Thinking{Provider: json.RawMessage(raw)}}
	}
	use := func(id string) drawbridge.MessagePart { return part(`{"type":"server_tool_use","id":"` + id + `"}`) }
	found := func(id string) drawbridge.MessagePart {
		return part(`{"type":"tool_search_tool_result","tool_use_id":"` + id + `"}`)
	}
	call := part(`{"type":"tool_search_call","call_id":"c"}`)
	output := part(`{"type":"tool_search_output","call_id":"c"}`)
	hosted := part(`{"type":"tool_search_output","call_id":null}`)
	thought := part(`{"type":"thinking"}`)
	said := func(parts ...drawbridge.MessagePart) drawbridge.Message {
		return drawbridge.Message{Role: drawbridge.AssistantRole, Parts: parts}
	}
	for name, tt := range map[string]struct {
		messages []drawbridge.Message
		want     string // the parts of each message that stay
	}{
		"whole":                  {[]drawbridge.Message{said(use("1"), found("1")), said(thought)}, "[0 1] [0]"},
		"in the next answer":     {[]drawbridge.Message{said(use("1")), said(found("1"))}, "[0] [0]"},
		"result without call":    {[]drawbridge.Message{said(thought, found("1")), said(thought)}, "[0] [0]"},
		"result before its call": {[]drawbridge.Message{said(found("1")), said(use("1"))}, "[] [0]"},
		"call that was cut off":  {[]drawbridge.Message{said(thought, use("1")), said(thought)}, "[0] [0]"},
		"call in the last":       {[]drawbridge.Message{said(thought, use("1")), {Role: drawbridge.UserRole}}, "[0 1] []"},
		"of OpenAI":              {[]drawbridge.Message{said(call, output), said(output)}, "[0 1] [0]"},
		"of OpenAI, alone":       {[]drawbridge.Message{said(output, hosted), said(call)}, "[1] [0]"},
	} {
		var got []string
		before, err := json.Marshal(tt.messages)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range pairedSearches(tt.messages) {
			var kept []string
			for n, p := range tt.messages[i].Parts {
				if slices.ContainsFunc(m.Parts, func(other drawbridge.MessagePart) bool { return other.Thinking == p.Thinking }) {
					kept = append(kept, string(rune('0'+n)))
				}
			}
			got = append(got, "["+strings.Join(kept, " ")+"]")
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: %s, want %s", name, s, tt.want)
		}
		if after, err := json.Marshal(tt.messages); err != nil || string(after) != string(before) {
			t.Errorf("%s: the messages were changed, %v", name, err)
		}
	}
}
