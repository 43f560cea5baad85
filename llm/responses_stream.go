package llm

import (
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A responsesReader reads an answer of the Responses API. The answer is complete with the event response.completed or
// response.incomplete.
type responsesReader struct {
	*answer
	// items are the parts of the items, by their index.
	items   map[int]*answerPart
	refused bool
}

type responsesEvent struct {
	Type     string          `json:"type"`
	Index    int             `json:"output_index"`
	Summary  int             `json:"summary_index"`
	Delta    string          `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response struct {
		Error      json.RawMessage   `json:"error"`
		Output     []json.RawMessage `json:"output"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage struct {
			Input   int64 `json:"input_tokens"`
			Output  int64 `json:"output_tokens"`
			Details struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	} `json:"response"`
}

// readEvent reads one event.
func (r *responsesReader) readEvent(data []byte) (bool, error) {
	if string(data) == "[DONE]" {
		return true, nil
	}
	var e responsesEvent
	if json.Unmarshal(data, &e) != nil {
		return false, errNotJSON
	}
	switch e.Type {
	case "response.output_item.added":
		return false, r.startItem(e.Index, e.Item)
	case "response.output_text.delta":
		return false, r.addText(e, textPart, e.Delta)
	case "response.refusal.delta":
		r.refused = true
		return false, r.addText(e, textPart, e.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return false, r.addText(e, thinkingPart, e.Delta)
	case "response.reasoning_summary_part.added":
		if e.Summary > 0 {
			return false, r.addText(e, thinkingPart, "\n\n")
		}
	case "response.function_call_arguments.delta":
		if p := r.items[e.Index]; p != nil && p.kind == callPart {
			p.text.WriteString(e.Delta)
		}
	case "response.output_item.done":
		return false, r.endItem(e.Index, e.Item)
	case "response.completed", "response.incomplete":
		return true, r.end(e)
	case "response.failed":
		return false, responsesError(e.Response.Error)
	case "error":
		return false, responsesError(data)
	default:
		if e := streamError(data); e != nil {
			return false, e
		}
	}
	return false, nil
}

// responsesError returns the error of an object with the members code and message.
func responsesError(object json.RawMessage) error {
	if nested := rawjson.Get(object, "error"); len(nested) > 0 {
		object = nested
	}
	if len(object) == 0 {
		object = json.RawMessage(`{}`)
	}
	wrapped := slices.Concat([]byte(`{"error":`), object, []byte("}"))
	if e := streamError(wrapped); e != nil {
		return e
	}
	return errCut
}

// startItem adds the part of an item. Items of types that were not asked for are skipped.
func (r *responsesReader) startItem(index int, item json.RawMessage) error {
	if r.items[index] != nil {
		return nil
	}
	kinds := map[string]partKind{"message": textPart, "reasoning": thinkingPart, "function_call": callPart,
		"tool_search_call": searchPart, "tool_search_output": searchPart}
	k, known := kinds[rawjson.GetString(item, "type")]
	if !known {
		return nil
	}
	p, err := r.add(k)
	if err != nil {
		return err
	}
	r.items[index] = p
	if k == callPart {
		r.setCall(p, rawjson.GetString(item, "call_id"), rawjson.GetString(item, "name"))
	}
	return nil
}

// addText adds text to the part of an event's item. Some endpoints do not announce items.
func (r *responsesReader) addText(e responsesEvent, kind partKind, text string) error {
	p := r.items[e.Index]
	if p == nil || p.kind != kind {
		return r.writeText(kind, text)
	}
	r.write(p, text)
	return nil
}

// endItem completes the part of an item with the item itself, which has everything.
func (r *responsesReader) endItem(index int, item json.RawMessage) error {
	if err := r.startItem(index, item); err != nil {
		return err
	}
	p := r.items[index]
	if p == nil {
		return nil
	}
	switch p.kind {
	case textPart:
		if p.text.Len() == 0 {
			for c := range rawjson.Elements(rawjson.Get(item, "content")) {
				r.refused = r.refused || rawjson.GetString(c, "type") == "refusal"
				r.write(p, rawjson.GetString(c, "text")+rawjson.GetString(c, "refusal"))
			}
		}
	case thinkingPart:
		p.provider = reasoningItem(item)
		if p.text.Len() == 0 {
			for s := range rawjson.Elements(rawjson.Get(item, "summary")) {
				r.write(p, rawjson.GetString(s, "text"))
			}
		}
	case searchPart:
		p.provider = searchItem(item)
	case callPart:
		if name := rawjson.Get(item, "namespace"); len(name) > 2 && name[0] == '"' {
			p.provider = rawjson.Apply(nil, rawjson.Put(name, "namespace"))
		}
		if whole, ok := rawjson.DecodeString(rawjson.Get(item, "arguments")); ok && whole != "" {
			p.text.Reset()
			p.text.WriteString(whole)
		}
		if id := rawjson.GetString(item, "call_id"); id != "" {
			p.id = id
		}
	}
	return nil
}

// reasoningItem returns what is sent back of a reasoning item; nil if the provider could not read it, since it stores
// nothing.
func reasoningItem(item json.RawMessage) json.RawMessage {
	if rawjson.GetString(item, "encrypted_content") == "" {
		return nil
	}
	out := newObject()
	for m := range rawjson.Members(item) {
		for _, keep := range []string{"type", "id", "summary", "content", "encrypted_content"} {
			if m.HasName(keep) && string(m.Value) != "null" {
				out.add(m.Name, m.Value)
			}
		}
	}
	if len(rawjson.Get(item, "summary")) == 0 {
		out.add(rawjson.Quote("summary"), json.RawMessage("[]"))
	}
	return out.end()
}

// end reads the last event.
func (r *responsesReader) end(e responsesEvent) error {
	none := len(r.parts) == 0
	for i, item := range e.Response.Output {
		if none || r.items[i] != nil {
			if err := r.endItem(i, item); err != nil {
				return err
			}
		}
	}
	u := e.Response.Usage
	r.usage = drawbridge.ModelUsage{Input: u.Input, Output: u.Output, CacheRead: u.Details.Cached}
	switch {
	case r.refused, e.Response.Incomplete.Reason == "content_filter":
		r.stop = drawbridge.StopRefusal
	case e.Type == "response.incomplete":
		r.stop = drawbridge.StopMaxOutput
	default:
		r.stop = drawbridge.StopEnd
	}
	return nil
}
