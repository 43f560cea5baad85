package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"golang.org/x/sync/errgroup"
)

// maxParallelCalls is how many calls of one tools.gather are made at the same time.
const maxParallelCalls = 16

// A scriptRequest is a request of a script: a JSON object from boot.py, or from a script that pretends to be it.
type scriptRequest struct {
	Op string `json:"op"`
	ToolCall
	// Calls and IDs are lists; they are read only up to the limit of calls.
	Calls   json.RawMessage `json:"calls"`
	Query   string          `json:"query"`
	Limit   int             `json:"limit"`
	IDs     json.RawMessage `json:"ids"`
	Outcome json.RawMessage `json:"outcome"`
}

// A scriptReply is the answer to one call.
type scriptReply struct {
	Result  json.RawMessage `json:"result,omitempty"`
	Pending string          `json:"pending,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Error   *replyError     `json:"error,omitempty"`
}

type replyError struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Next    string `json:"next,omitempty"`
}

// requests answers the requests of one run.
type requests struct {
	host   Host
	limits Limits
	// pause stops the clock of the run and returns the function that starts it again.
	pause func() (resume func())

	mu    sync.Mutex
	calls int
	// callsMet reports that the limit of calls was met. outcome is what the script last reported as its end.
	callsMet bool
	outcome  json.RawMessage
}

// answer returns the reply to a request.
func (r *requests) answer(ctx context.Context, request []byte) []byte {
	var q scriptRequest
	if err := json.Unmarshal(request, &q); err != nil {
		return r.encode(replyTo(Reply{Err: errors.New("the request is not a JSON object of this version")}))
	}
	switch q.Op {
	case "call":
		return r.encode(r.call(ctx, q.ToolCall))
	case "gather":
		calls, err := readList[ToolCall](q.Calls, r.limits.Calls)
		if err != nil {
			return r.encode(replyTo(Reply{Err: err}))
		}
		return r.encodeAll(r.gather(ctx, calls))
	case "flush":
		ids, err := readList[string](q.IDs, r.limits.Calls)
		if err != nil {
			return r.encode(replyTo(Reply{Err: err}))
		}
		return r.encodeAll(r.flush(ctx, ids))
	case "done":
		r.mu.Lock()
		r.outcome = q.Outcome
		r.mu.Unlock()
		return []byte("{}")
	}
	return r.encode(replyTo(r.look(ctx, q)))
}

// readList decodes a list with at most so many elements.
func readList[T any](list json.RawMessage, most int) (all []T, err error) {
	for raw := range rawjson.Elements(list) {
		if len(all) == most {
			return nil, &CallError{Code: "limit", Message: fmt.Sprintf("the script may make %d calls of tools", most)}
		}
		var one T
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, errors.New("the list of calls cannot be read")
		}
		all = append(all, one)
	}
	return all, nil
}

// encode returns a reply as JSON: an error in its place if it is too large.
func (r *requests) encode(reply any) []byte {
	text, err := json.Marshal(reply)
	if err == nil && len(text) > r.limits.Transfer {
		err = fmt.Errorf("the result of %d bytes is larger than the limit of %d bytes", len(text), r.limits.Transfer)
	}
	if err != nil {
		text, _ = json.Marshal(scriptReply{Error: &replyError{Code: "limit", Message: err.Error(),
			Next: "ask the tool for less"}}) // strings always encode
	}
	return text
}

// encodeAll returns the replies to several calls. Those that do not fit are errors, each in its place.
func (r *requests) encodeAll(replies []scriptReply) []byte {
	all := []byte(`{"replies":[`)
	for i, reply := range replies {
		if i > 0 {
			all = append(all, ',')
		}
		text := r.encode(reply)
		if len(all)+len(text) > r.limits.Transfer {
			text = r.encode(replyTo(Reply{Err: &CallError{Code: "limit", Next: "make fewer calls at a time",
				Message: fmt.Sprintf("the call was made, but the results together are larger than the limit of %d bytes",
					r.limits.Transfer)}}))
		}
		all = append(all, text...)
	}
	return append(all, "]}"...)
}

// call makes one call.
func (r *requests) call(ctx context.Context, c ToolCall) scriptReply {
	r.mu.Lock()
	r.calls++
	over := r.calls > r.limits.Calls
	r.callsMet = r.callsMet || over
	r.mu.Unlock()
	if over {
		return replyTo(Reply{Err: &CallError{Code: "limit",
			Message: fmt.Sprintf("the script may make %d calls of tools", r.limits.Calls)}})
	}
	if len(c.Arguments) == 0 || string(c.Arguments) == "null" {
		c.Arguments = json.RawMessage("{}")
	}
	if ctx.Err() != nil {
		return replyTo(Reply{Err: errors.New("the run has ended")})
	}
	return replyTo(r.host.Call(ctx, c))
}

// gather makes calls side by side. The replies are in the order of the calls.
func (r *requests) gather(ctx context.Context, calls []ToolCall) []scriptReply {
	replies := make([]scriptReply, len(calls))
	var group errgroup.Group
	group.SetLimit(maxParallelCalls)
	var size atomic.Int64
	for i, c := range calls {
		group.Go(func() error {
			if size.Load() > int64(r.limits.Transfer) {
				replies[i] = replyTo(Reply{Err: &CallError{Code: "limit",
					Message: "the call was not made: the results of the calls before it are too large"}})
				return nil
			}
			replies[i] = r.call(ctx, c)
			size.Add(int64(len(replies[i].Result)))
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return replies
}

// flush waits for pending calls.
func (r *requests) flush(ctx context.Context, ids []string) []scriptReply {
	replies := make([]scriptReply, len(ids))
	collector, ok := r.host.(Collector)
	if !ok {
		for i := range replies {
			replies[i] = replyTo(Reply{Err: errors.New("no call is pending")})
		}
		return replies
	}
	for i, reply := range collector.Flush(ctx, ids, r.pause) {
		replies[i] = replyTo(reply)
	}
	return replies
}

// look answers a request about the tools themselves.
func (r *requests) look(ctx context.Context, q scriptRequest) Reply {
	directory, ok := r.host.(Directory)
	if !ok {
		return Reply{Err: errors.New("tools cannot be looked up here")}
	}
	var found any
	var err error
	switch q.Op {
	case "search":
		found, err = directory.Search(ctx, q.Query, q.Limit)
	case "describe":
		found, err = directory.Describe(ctx, q.Name)
	case "names":
		var names []string
		names, err = directory.Names(ctx)
		found = map[string]any{"names": append([]string{}, names...)}
	default:
		err = errors.New("unknown request")
	}
	if err != nil {
		return Reply{Err: err}
	}
	text, err := json.Marshal(map[string]any{"structuredContent": found})
	return Reply{Result: text, Err: err}
}

// replyTo returns the reply to the script.
func replyTo(reply Reply) scriptReply {
	if reply.Err == nil {
		return scriptReply{Result: reply.Result, Pending: reply.Pending, Tool: reply.Tool}
	}
	text := &replyError{Message: reply.Err.Error()}
	if e, ok := errors.AsType[*CallError](reply.Err); ok {
		text.Code, text.Next = e.Code, e.Next
	}
	return scriptReply{Error: text}
}
