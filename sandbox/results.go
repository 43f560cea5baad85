package sandbox

import (
	"context"
	"encoding/json"
	"errors"
)

// A ResultKeeper is a [Host] that keeps texts, such as large results, for later scripts of the same caller.
type ResultKeeper interface {
	Host
	// Keep keeps a text. id is empty, or the id that the text got before the run was interrupted, see [Script.Entries].
	Keep(ctx context.Context, text, id string) (KeptResult, error)
	// Read returns size characters of a kept text from the character at on: fewer at its end, none beyond it. Neither
	// number is negative.
	Read(ctx context.Context, id string, at, size int) (ResultPart, error)
}

// A KeptResult describes a kept text.
type KeptResult struct {
	// ID is the name of the text in scripts: tools.result(ID).
	ID string `json:"id"`
	// Length is the number of characters.
	Length int `json:"length"`
}

// A ResultPart is a part of a kept text.
type ResultPart struct {
	Text string `json:"text"`
	// Length is the number of characters of the whole text.
	Length int `json:"length"`
	// Tools are the tools from which the text may be derived.
	Tools []string `json:"tools,omitempty"`
}

// maxEncodedCharacter is the maximum length of a character in JSON, in bytes.
const maxEncodedCharacter = 8

// recordedResults answers a request to keep a text, or to read a kept one. The reply of a repeated run is from the
// journal. A [Repeater] is then told of the tools from which the script has something, and a kept text is kept again,
// because hosts may keep texts in memory.
func (r *requests) recordedResults(ctx context.Context, q scriptRequest, number int) []byte {
	asked := false
	reply := r.recorder.look(ctx, number, func() []byte {
		asked = true
		return r.encode(replyTo(r.results(ctx, q)))
	})
	if asked {
		return reply
	}
	var recorded struct {
		Result struct {
			Content struct {
				ID    string   `json:"id"`
				Tools []string `json:"tools"`
			} `json:"structuredContent"`
		} `json:"result"`
	}
	_ = json.Unmarshal(reply, &recorded) // an error has neither
	if host, ok := r.host.(Repeater); ok {
		for _, tool := range recorded.Result.Content.Tools {
			host.Repeat(ctx, ToolCall{Name: tool})
		}
	}
	if keeper, ok := r.host.(ResultKeeper); ok && q.Op == "keep" && recorded.Result.Content.ID != "" {
		_, _ = keeper.Keep(ctx, q.Text, recorded.Result.Content.ID) // if it is not kept, it is unknown later
	}
	return reply
}

// results answers a request to keep a text, or to read a kept one.
func (r *requests) results(ctx context.Context, q scriptRequest) Reply {
	keeper, ok := r.host.(ResultKeeper)
	if !ok {
		return Reply{Err: errors.New("results are not kept here")}
	}
	var answer any
	var err error
	switch {
	case q.Op == "keep":
		answer, err = keeper.Keep(ctx, q.Text, "")
	case q.At < 0 || q.Size < 0:
		err = errors.New("a part of a result begins at 0 or later, and has a size of 0 or more")
	default:
		answer, err = keeper.Read(ctx, q.ID, q.At, min(q.Size, max(r.limits.Transfer/maxEncodedCharacter, 1)))
	}
	if err != nil {
		return Reply{Err: err}
	}
	text, err := json.Marshal(map[string]any{"structuredContent": answer})
	return Reply{Result: text, Err: err}
}
