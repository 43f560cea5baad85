package llm

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
)

// A geminiReader reads an answer of the Gemini API. The answer is complete if it has a finish reason.
type geminiReader struct{ *answer }

type geminiChunk struct {
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text      string          `json:"text"`
				Thought   bool            `json:"thought"`
				Signature json.RawMessage `json:"thoughtSignature"`
				Call      *struct {
					ID   string          `json:"id"`
					Name string          `json:"name"`
					Args json.RawMessage `json:"args"`
				} `json:"functionCall"`
			} `json:"parts"`
		} `json:"content"`
		Finish string `json:"finishReason"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt   int64 `json:"promptTokenCount"`
		Tools    int64 `json:"toolUsePromptTokenCount"`
		Output   int64 `json:"candidatesTokenCount"`
		Thoughts int64 `json:"thoughtsTokenCount"`
		Cached   int64 `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
}

// readEvent reads one chunk.
func (r *geminiReader) readEvent(data []byte) (bool, error) {
	if e := streamError(data); e != nil {
		return false, e
	}
	var chunk geminiChunk
	if json.Unmarshal(data, &chunk) != nil {
		return false, errNotJSON
	}
	if u := chunk.Usage; u != nil {
		r.usage = drawbridge.ModelUsage{Input: u.Prompt + u.Tools, Output: u.Output + u.Thoughts, CacheRead: u.Cached}
	}
	if chunk.Feedback.Block != "" && chunk.Feedback.Block != "BLOCK_REASON_UNSPECIFIED" {
		r.stop = drawbridge.StopRefusal
	}
	if len(chunk.Candidates) == 0 {
		return false, nil
	}
	c := chunk.Candidates[0]
	for _, p := range c.Content.Parts {
		switch {
		case p.Call != nil:
			part, err := r.add(callPart)
			if err != nil {
				return false, err
			}
			part.text.Write(p.Call.Args)
			part.provider = geminiProvider(p.Call.ID, p.Signature)
			r.setCall(part, p.Call.ID, p.Call.Name)
		case p.Thought:
			if err := r.writeText(thinkingPart, p.Text); err != nil {
				return false, err
			}
		default:
			if err := r.writeText(textPart, p.Text); err != nil {
				return false, err
			}
		}
	}
	if c.Finish != "" {
		return false, r.setStop(c.Finish)
	}
	return false, nil
}

// geminiProvider returns what is sent back with a call; nil if there is nothing.
func geminiProvider(id string, signature json.RawMessage) json.RawMessage {
	out := newObject()
	if id != "" {
		quoted, _ := json.Marshal(id)
		out.add(json.RawMessage(`"id"`), quoted)
	}
	if len(signature) > 0 && signature[0] == '"' {
		out.add(json.RawMessage(`"thoughtSignature"`), signature)
	}
	if len(out.b) == 1 {
		return nil
	}
	return out.end()
}

// setStop reads a finish reason. A call that the model wrote wrongly ends the answer like a broken stream: the same
// request may succeed.
func (r *geminiReader) setStop(reason string) error {
	switch reason {
	case "FINISH_REASON_UNSPECIFIED":
	case "STOP":
		r.stop = drawbridge.StopEnd
	case "MAX_TOKENS":
		r.stop = drawbridge.StopMaxOutput
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY",
		"IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		r.stop = drawbridge.StopRefusal
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE":
		return errBadCall
	default:
		r.stop = drawbridge.StopEnd
	}
	return nil
}

// finish returns the answer. Gemini sometimes stops after its thoughts without an answer; that is a broken answer.
func (r *geminiReader) finish() (drawbridge.ModelResponse, error) {
	answered := false
	for _, p := range r.parts {
		answered = answered || p.kind != thinkingPart
	}
	if r.stop == drawbridge.StopEnd && !answered {
		return drawbridge.ModelResponse{}, errEmpty
	}
	return r.response()
}
