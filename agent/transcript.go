package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// A transcript is what the model sees of a conversation, computed from its entries. The same entries make the same
// transcript, while a session runs and after it was resumed.
type transcript struct {
	items []item
	// open are the calls of the last message of the model, as long as one of them has no result.
	open []openCall
}

// An item is one message, with the ID of the entry that it begins with and its size.
type item struct {
	entry   string
	message drawbridge.Message
	size    int
	// results is set if the message has the results of the message before it.
	results bool
}

// An openCall is a call of the model's last message.
type openCall struct {
	call   drawbridge.ToolCall
	sent   bool
	result *drawbridge.ToolResult
}

// add adds the next entry of the conversation.
func (t *transcript) add(e Entry) {
	switch {
	case e.Kind == PromptEntry && e.Message != nil:
		t.addMessage(e.ID, *e.Message, false)
	case e.Kind == ModelEntry && e.Message != nil:
		t.addMessage(e.ID, *e.Message, false)
		for _, call := range e.Message.ToolCalls() {
			t.open = append(t.open, openCall{call: call})
		}
	case e.Kind == CallEntry && e.Call != nil:
		if i := t.indexOf(e.Call.ID); i >= 0 {
			t.open[i].sent = true
		}
	case e.Kind == ResultEntry && e.Result != nil:
		if i := t.indexOf(e.Result.CallID); i >= 0 {
			t.open[i].result = e.Result
		}
		t.close(e.ID)
	case e.Kind == SummaryEntry:
		keep := slices.IndexFunc(t.items, func(i item) bool { return i.entry == e.Keep })
		if keep < 0 {
			keep = len(t.items)
		}
		rest := t.items[keep:]
		t.items = make([]item, 0, len(rest)+16) // a new array, so that the old messages are freed
		t.addMessage(e.ID, drawbridge.NewUserMessage(summaryHeading+e.Text), false)
		t.items = append(t.items, rest...)
	}
}

func (t *transcript) addMessage(entry string, m drawbridge.Message, results bool) {
	if len(m.Parts) > 0 {
		t.items = append(t.items, item{entry: entry, message: m, size: messageSize(m), results: results})
	}
}

// indexOf returns the index of an open call; -1 without one.
func (t *transcript) indexOf(callID string) int {
	return slices.IndexFunc(t.open, func(c openCall) bool { return c.call.ID == callID })
}

// close adds the results of the open calls, in the order of the calls, once each has one.
func (t *transcript) close(entry string) {
	if len(t.open) == 0 || slices.ContainsFunc(t.open, func(c openCall) bool { return c.result == nil }) {
		return
	}
	m := drawbridge.Message{Role: drawbridge.UserRole}
	for _, c := range t.open {
		m.Parts = append(m.Parts, drawbridge.MessagePart{ToolResult: c.result})
	}
	t.open = nil
	t.addMessage(entry, m, true)
}

// messages returns the messages for a model. Without images, a model sees "[Image: type]" in their place.
func (t *transcript) messages(images bool) []drawbridge.Message {
	all := make([]drawbridge.Message, len(t.items))
	for i, it := range t.items {
		if all[i] = it.message; !images {
			all[i] = withoutImages(it.message)
		}
	}
	return all
}

// withoutImages returns m with a text in place of each image. The texts of results name their images already.
func withoutImages(m drawbridge.Message) drawbridge.Message {
	if !slices.ContainsFunc(m.Parts, func(p drawbridge.MessagePart) bool {
		return p.Image != nil || p.ToolResult != nil && len(p.ToolResult.Images) > 0
	}) {
		return m
	}
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		switch {
		case p.Image != nil:
			m.Parts[i] = drawbridge.MessagePart{Text: "[Image: " + p.Image.MIMEType + "]"}
		case p.ToolResult != nil && len(p.ToolResult.Images) > 0:
			result := *p.ToolResult
			result.Images = nil
			m.Parts[i].ToolResult = &result
		}
	}
	return m
}

// normalised returns m in the form that it has after it was written to a history and read again.
func normalised(m drawbridge.Message) drawbridge.Message {
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		p.Text = strings.ToValidUTF8(p.Text, "\uFFFD")
		switch {
		case p.Thinking != nil:
			thinking := *p.Thinking
			thinking.Text, thinking.Provider = strings.ToValidUTF8(thinking.Text, "\uFFFD"), compacted(thinking.Provider)
			p.Thinking = &thinking
		case p.ToolCall != nil:
			call := *p.ToolCall
			call.Arguments, call.Provider = compacted(call.Arguments), compacted(call.Provider)
			p.ToolCall = &call
		}
		m.Parts[i] = p
	}
	return m
}

// compacted returns JSON without white space between its parts. What is not JSON becomes valid UTF-8.
func compacted(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return json.RawMessage(strings.ToValidUTF8(string(raw), "\uFFFD"))
	}
	return b.Bytes()
}
