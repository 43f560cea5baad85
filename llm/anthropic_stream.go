package llm

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An anthropicReader reads an answer of the Messages API. The answer is complete with the event message_stop.
type anthropicReader struct {
	*answer
	// blocks are the open blocks, by their index.
	blocks map[int]*answerPart
	// signatures are the signatures of thinking, which arrive in pieces.
	signatures map[*answerPart][]byte
	usage      anthropicUsage
	reason     string
	ended      bool
}

type anthropicUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage json.RawMessage `json:"usage"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		JSON       string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage json.RawMessage `json:"usage"`
}

// readEvent reads one event.
func (r *anthropicReader) readEvent(data []byte) (bool, error) {
	var e anthropicEvent
	if json.Unmarshal(data, &e) != nil {
		return false, errNotJSON
	}
	switch e.Type {
	case "message_start":
		_ = json.Unmarshal(e.Message.Usage, &r.usage)
	case "content_block_start":
		return false, r.startBlock(e)
	case "content_block_delta":
		return false, r.addDelta(e)
	case "content_block_stop":
		delete(r.blocks, e.Index)
	case "message_delta":
		_ = json.Unmarshal(e.Usage, &r.usage)
		if e.Delta.StopReason != "" {
			r.reason = e.Delta.StopReason
		}
	case "message_stop":
		r.ended = true
		return true, nil
	default:
		if e := streamError(data); e != nil {
			return false, e
		}
	}
	return false, nil
}

// startBlock adds the part of a block. Blocks of types that were not asked for are skipped.
func (r *anthropicReader) startBlock(e anthropicEvent) error {
	kind := map[string]partKind{"text": textPart, "thinking": thinkingPart, "redacted_thinking": thinkingPart,
		"tool_use": callPart, "tool_search_tool_result": searchPart}
	name := rawjson.GetString(e.Block, "type")
	if name == "server_tool_use" && rawjson.GetString(e.Block, "name") == anthropicSearchName {
		kind[name] = searchPart
	}
	k, known := kind[name]
	if !known {
		return nil
	}
	p, err := r.add(k)
	if err != nil {
		return err
	}
	r.blocks[e.Index] = p
	switch name {
	case "text":
		r.write(p, rawjson.GetString(e.Block, "text"))
	case "thinking":
		p.provider = e.Block
		r.write(p, rawjson.GetString(e.Block, "thinking"))
	case "redacted_thinking", "server_tool_use", "tool_search_tool_result":
		p.provider = e.Block
	case "tool_use":
		r.setCall(p, rawjson.GetString(e.Block, "id"), rawjson.GetString(e.Block, "name"))
		if input := rawjson.Get(e.Block, "input"); len(input) > 2 { // some endpoints send the whole call at once
			p.text.Write(input)
		}
	}
	return nil
}

func (r *anthropicReader) addDelta(e anthropicEvent) error {
	p := r.blocks[e.Index]
	if p == nil {
		return nil
	}
	switch e.Delta.Type {
	case "text_delta":
		r.write(p, e.Delta.Text)
	case "thinking_delta":
		r.write(p, e.Delta.Thinking)
	case "signature_delta":
		if r.signatures == nil {
			r.signatures = map[*answerPart][]byte{}
		}
		r.signatures[p] = append(r.signatures[p], e.Delta.Signature...)
	case "input_json_delta":
		p.text.WriteString(e.Delta.JSON)
	}
	return nil
}

// finish returns the answer.
func (r *anthropicReader) finish() (drawbridge.ModelResponse, error) {
	if !r.ended {
		return drawbridge.ModelResponse{}, errCut
	}
	switch r.reason {
	case "":
		return drawbridge.ModelResponse{}, errCut
	case "tool_use":
		r.stop = drawbridge.StopToolCalls
	case "max_tokens", "model_context_window_exceeded":
		r.stop = drawbridge.StopMaxOutput
	case "refusal":
		r.stop = drawbridge.StopRefusal
	case "pause_turn":
		r.stop = drawbridge.StopPaused
	default:
		r.stop = drawbridge.StopEnd
	}
	for _, p := range r.parts {
		if p.kind == searchPart && json.Valid([]byte(p.text.String())) {
			p.provider = rawjson.Apply(p.provider, rawjson.Put(json.RawMessage(p.text.String()), "input"))
		}
		if p.kind != thinkingPart || rawjson.GetString(p.provider, "type") != "thinking" {
			continue
		}
		signature := rawjson.GetString(p.provider, "signature") + string(r.signatures[p])
		if signature == "" {
			p.provider = nil // it would be refused
			continue
		}
		p.provider = rawjson.Apply(p.provider, rawjson.Put(rawjson.Quote(p.text.String()), "thinking"),
			rawjson.Put(rawjson.Quote(signature), "signature"))
	}
	r.answer.usage = drawbridge.ModelUsage{Input: r.usage.Input + r.usage.CacheRead + r.usage.CacheWrite,
		Output: r.usage.Output, CacheRead: r.usage.CacheRead, CacheWrite: r.usage.CacheWrite}
	return r.response()
}
