package llm

import (
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A completionsReader reads an answer of the Chat Completions API. The answer is complete if it has a finish reason,
// with or without the event [DONE] behind it.
type completionsReader struct {
	*answer
	// calls are the parts of calls by their index on the wire. details are the elements of reasoning_details.
	calls   []indexedCall
	details []json.RawMessage
	refused bool
}

type indexedCall struct {
	index int
	part  *answerPart
}

type completionsChunk struct {
	Choices []struct {
		Index   int               `json:"index"`
		Delta   *completionsDelta `json:"delta"`
		Message *completionsDelta `json:"message"` // some endpoints send the whole message at once
		Finish  string            `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Input   int64 `json:"prompt_tokens"`
		Output  int64 `json:"completion_tokens"`
		Details struct {
			Cached  int64 `json:"cached_tokens"`
			Written int64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

type completionsDelta struct {
	Content          json.RawMessage   `json:"content"` // a text, or a list of parts
	Refusal          string            `json:"refusal"`
	ReasoningContent string            `json:"reasoning_content"`
	Reasoning        json.RawMessage   `json:"reasoning"`
	Details          []json.RawMessage `json:"reasoning_details"`
	Calls            []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"` // a text; some endpoints send an object
		} `json:"function"`
	} `json:"tool_calls"`
}

// readEvent reads one chunk.
func (r *completionsReader) readEvent(data []byte) (bool, error) {
	if string(data) == "[DONE]" {
		return true, nil
	}
	if e := streamError(data); e != nil {
		return false, e
	}
	var chunk completionsChunk
	if json.Unmarshal(data, &chunk) != nil {
		return false, errNotJSON
	}
	if u := chunk.Usage; u != nil {
		r.usage = drawbridge.ModelUsage{Input: u.Input, Output: u.Output, CacheRead: u.Details.Cached,
			CacheWrite: u.Details.Written}
	}
	for _, c := range chunk.Choices {
		if c.Index != 0 {
			continue
		}
		for _, d := range []*completionsDelta{c.Delta, c.Message} {
			if d == nil {
				continue
			}
			if err := r.addDelta(*d); err != nil {
				return false, err
			}
		}
		if c.Finish != "" {
			r.stop = r.stopReason(c.Finish)
		}
	}
	return false, nil
}

func (r *completionsReader) stopReason(finish string) drawbridge.StopReason {
	switch finish {
	case "length", "max_tokens":
		return drawbridge.StopMaxOutput
	case "content_filter":
		return drawbridge.StopRefusal
	case "tool_calls", "function_call":
		return drawbridge.StopToolCalls
	case "error": // OpenRouter
		return ""
	}
	return drawbridge.StopEnd
}

func (r *completionsReader) addDelta(d completionsDelta) error {
	field, reasoning := "reasoning_content", d.ReasoningContent
	if text, ok := rawjson.DecodeString(d.Reasoning); ok && reasoning == "" {
		field, reasoning = "reasoning", text
	}
	if reasoning != "" {
		if err := r.writeText(thinkingPart, reasoning); err != nil {
			return err
		}
		r.parts[len(r.parts)-1].provider = json.RawMessage(`{"field":"` + field + `"}`)
	}
	if r.details = append(r.details, d.Details...); len(r.details) > maxAnswerParts {
		return errTooLarge
	}
	text, ok := rawjson.DecodeString(d.Content)
	if !ok {
		for part := range rawjson.Elements(d.Content) {
			text += rawjson.GetString(part, "text")
		}
	}
	if d.Refusal != "" {
		r.refused = true
		text += d.Refusal
	}
	if err := r.writeText(textPart, text); err != nil {
		return err
	}
	for i, c := range d.Calls {
		index := i
		if c.Index != nil {
			index = *c.Index
		}
		if err := r.addCall(index, c.ID, c.Function.Name, c.Function.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// addCall adds a piece of a call. A piece with another ID begins another call, since some endpoints give all calls the
// same index. So does a piece with a name but no ID behind complete arguments.
func (r *completionsReader) addCall(index int, id, name string, arguments json.RawMessage) error {
	var p *answerPart
	for _, c := range slices.Backward(r.calls) {
		if c.index == index {
			p = c.part
			break
		}
	}
	if p == nil || id != "" && p.id != "" && id != p.id ||
		id == "" && name != "" && p.name != "" && json.Valid([]byte(p.text.String())) {
		var err error
		if p, err = r.add(callPart); err != nil {
			return err
		}
		r.calls = append(r.calls, indexedCall{index, p})
	}
	if id != "" && p.id == "" {
		p.id = id
	}
	if name != "" && p.name == "" {
		r.setCall(p, p.id, name)
	}
	text, ok := rawjson.DecodeString(arguments)
	if !ok && string(arguments) != "null" {
		text = string(arguments)
	}
	p.text.WriteString(text)
	return nil
}

// finish returns the answer.
func (r *completionsReader) finish() (drawbridge.ModelResponse, error) {
	if r.refused && r.stop == drawbridge.StopEnd {
		r.stop = drawbridge.StopRefusal
	}
	if len(r.details) > 0 {
		array := mapArray(slices.Concat([]byte("["), joinRaw(r.details), []byte("]")),
			func(e json.RawMessage) json.RawMessage { return e })
		i := slices.IndexFunc(r.parts, func(p *answerPart) bool { return p.kind == thinkingPart })
		if i < 0 {
			r.parts, i = slices.Insert(r.parts, 0, &answerPart{kind: thinkingPart}), 0
		}
		r.parts[i].provider = slices.Concat([]byte(`{"reasoning_details":`), array, []byte("}"))
	}
	return r.response()
}

func joinRaw(all []json.RawMessage) (out []byte) {
	for i, one := range all {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, one...)
	}
	return out
}
