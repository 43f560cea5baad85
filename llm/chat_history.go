package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// noResult is the text of the result of a call that has none, because the session was interrupted.
const noResult = "There is no result: the call was interrupted."

// cleanHistory returns the messages in a form that every provider accepts. Messages of one role in a row are joined;
// empty parts are removed. Every call has exactly one result, in the message after it and before its other parts. A
// result without its call becomes text. The input is not changed.
func cleanHistory(messages []drawbridge.Message) []drawbridge.Message {
	var all []drawbridge.Message
	for _, m := range messages {
		parts := slices.DeleteFunc(slices.Clone(m.Parts), isEmptyPart)
		if n := len(all); n > 0 && all[n-1].Role == m.Role {
			all[n-1].Parts = append(all[n-1].Parts, parts...)
		} else if len(parts) > 0 {
			all = append(all, drawbridge.Message{Role: m.Role, Parts: parts})
		}
	}
	var open []drawbridge.ToolCall
	out := make([]drawbridge.Message, 0, len(all)+1)
	for _, m := range all {
		if m.Role == drawbridge.UserRole {
			m.Parts = orderResults(open, m.Parts)
			open = nil
		} else {
			open = m.ToolCalls()
		}
		out = append(out, m)
	}
	if len(open) > 0 {
		out = append(out, drawbridge.Message{Role: drawbridge.UserRole, Parts: orderResults(open, nil)})
	}
	return out
}

// noImage is the text in place of an image for a model that accepts none.
const noImage = "(There is an image here, which this model cannot see.)"

// withoutImages returns the messages with a text in place of each image. The input is not changed.
func withoutImages(messages []drawbridge.Message) []drawbridge.Message {
	all := slices.Clone(messages)
	for i, m := range all {
		all[i].Parts = slices.Clone(m.Parts)
		for j, p := range all[i].Parts {
			switch {
			case p.Image != nil:
				all[i].Parts[j] = drawbridge.MessagePart{Text: noImage}
			case p.ToolResult != nil && len(p.ToolResult.Images) > 0:
				r := *p.ToolResult
				r.Text = strings.TrimSpace(r.Text + "\n\n" + strings.Repeat(noImage+"\n", len(r.Images)))
				r.Images = nil
				all[i].Parts[j].ToolResult = &r
			}
		}
	}
	return all
}

func isEmptyPart(p drawbridge.MessagePart) bool {
	return strings.TrimSpace(p.Text) == "" && p.Image == nil && p.Thinking == nil && p.ToolCall == nil &&
		p.ToolResult == nil
}

// orderResults returns the parts of a user's message with one result for each of calls, in their order, and then the
// other parts.
func orderResults(calls []drawbridge.ToolCall, parts []drawbridge.MessagePart) []drawbridge.MessagePart {
	results := map[string]*drawbridge.ToolResult{}
	var rest []drawbridge.MessagePart
	for _, p := range parts {
		r := p.ToolResult
		called := r != nil && slices.ContainsFunc(calls, func(c drawbridge.ToolCall) bool { return c.ID == r.CallID })
		switch {
		case called && results[r.CallID] == nil:
			results[r.CallID] = r
		case r != nil && r.Text != "":
			rest = append(rest, drawbridge.MessagePart{Text: r.Text})
		case r == nil:
			rest = append(rest, p)
		}
	}
	var all []drawbridge.MessagePart
	for _, c := range calls {
		r := results[c.ID]
		if r == nil {
			r = &drawbridge.ToolResult{CallID: c.ID, Name: c.Name, Text: noResult, IsError: true}
		}
		all = append(all, drawbridge.MessagePart{ToolResult: r})
	}
	return append(all, rest...)
}

// callIDs returns the IDs of all calls in the messages.
func callIDs(messages []drawbridge.Message) map[string]bool {
	used := map[string]bool{}
	for _, m := range messages {
		for _, c := range m.ToolCalls() {
			used[c.ID] = true
		}
	}
	return used
}

// currentTurn returns the index of the first message after the last message that a person wrote. The model that
// answers is in a loop of calls from there on.
func currentTurn(messages []drawbridge.Message) int {
	for i, m := range slices.Backward(messages) {
		isResult := func(p drawbridge.MessagePart) bool { return p.ToolResult != nil }
		if m.Role == drawbridge.UserRole && !slices.ContainsFunc(m.Parts, isResult) {
			return i + 1
		}
	}
	return 0
}

// argumentsObject returns the arguments of a call as a JSON object. Arguments that are not an object are put into one,
// so that the model sees what it wrote.
func argumentsObject(raw json.RawMessage) json.RawMessage {
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "":
		return json.RawMessage("{}")
	case text[0] == '{' && utf8.ValidString(text) && json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return slices.Concat([]byte(`{"invalid_arguments":`), rawjson.Quote(strings.ToValidUTF8(text, "\uFFFD")), []byte("}"))
}

// wireName returns a tool's name with only the characters that all providers accept. A model may have written any name.
func wireName(name drawbridge.CardName) string {
	return onlyWireCharacters(string(name), 64, "unknown")
}

// wireID returns the ID of a call with only the characters that all providers accept. Different IDs stay different.
func wireID(id string) string { return onlyWireCharacters(id, maxCallID, "call") }

func onlyWireCharacters(s string, most int, empty string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, s)
	if clean == s && s != "" && len(s) <= most {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	if clean == "" {
		clean = empty
	}
	return clean[:min(len(clean), most-9)] + "_" + hex.EncodeToString(sum[:4])
}
