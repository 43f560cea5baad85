package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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
	// Text is a text to keep; ID, At and Size are a part of a kept one.
	Text string `json:"text"`
	ID   string `json:"id"`
	At   int    `json:"at"`
	Size int    `json:"size"`
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
	// recorder records the run; it may be nil. fail ends a run that cannot be recorded, or repeated.
	recorder *recorder
	fail     func(error)
	// clock has the readings of the clock since the last request.
	clock []byte

	mu    sync.Mutex
	calls int
	// pending are the host's ids of the calls that wait for a person, by the ids that the script knows.
	pending map[string]string
	// callsMet reports that the limit of calls was met. outcome is what the script last reported as its end.
	callsMet bool
	outcome  json.RawMessage
}

// answer returns the reply to a request.
func (r *requests) answer(ctx context.Context, request []byte) []byte {
	var q scriptRequest
	if err := json.Unmarshal(request, &q); err != nil {
		return encodeError(errors.New("the request is not a JSON object of this version"))
	}
	if q.Op == "done" {
		r.mu.Lock()
		r.outcome = q.Outcome
		r.mu.Unlock()
		return []byte("{}")
	}
	clock := r.clock
	r.clock = nil
	number, err := r.recorder.request(ctx, request, clock)
	if err != nil {
		r.fail(err)
		return encodeError(err)
	}
	switch q.Op {
	case "call":
		return r.encode(r.call(ctx, q.ToolCall, r.countCalls(1), func() bool { return true }))
	case "gather":
		calls, err := readList[ToolCall](q.Calls, r.limits.Calls)
		if err != nil {
			return encodeError(err)
		}
		return r.encodeAll(r.gather(ctx, calls))
	case "flush":
		ids, err := readList[string](q.IDs, r.limits.Calls)
		if err != nil {
			return encodeError(err)
		}
		return r.encodeAll(r.flush(ctx, ids))
	case "keep", "result":
		return r.recordedResults(ctx, q, number)
	}
	return r.recorder.look(ctx, number, func() []byte { return r.encode(replyTo(r.look(ctx, q))) })
}

// encodeError returns the reply of a request that has no result.
func encodeError(err error) []byte {
	text, _ := json.Marshal(replyTo(Reply{Err: err})) // strings always encode
	return text
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

// countCalls counts calls, and returns the number of the first of them: 1 for the first call of the run.
func (r *requests) countCalls(calls int) (first int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = r.calls + 1
	r.calls += calls
	r.callsMet = r.callsMet || r.calls > r.limits.Calls
	return first
}

// call makes the call with this number, unless fits returns false: then the results before it are too large. That is
// recorded like a result, because calls side by side end in any order.
func (r *requests) call(ctx context.Context, c ToolCall, number int, fits func() bool) scriptReply {
	if number > r.limits.Calls {
		return replyTo(Reply{Err: &CallError{Code: "limit",
			Message: fmt.Sprintf("the script may make %d calls of tools", r.limits.Calls)}})
	}
	if len(c.Arguments) == 0 || string(c.Arguments) == "null" {
		c.Arguments = json.RawMessage("{}")
	}
	if ctx.Err() != nil {
		return replyTo(Reply{Err: errors.New("the run has ended")})
	}
	if reply, ok := r.recorder.repeated(number); ok {
		if host, ok := r.host.(Repeater); ok {
			host.Repeat(ctx, c)
		}
		return reply
	}
	return r.recorder.call(ctx, number, func() scriptReply {
		if !fits() {
			return replyTo(Reply{Err: &CallError{Code: "limit",
				Message: "the call was not made: the results of the calls before it are too large"}})
		}
		reply := r.host.Call(ctx, c)
		if reply.Pending != "" && reply.Err == nil {
			id := strconv.Itoa(number)
			r.mu.Lock()
			r.pending[id] = reply.Pending
			r.mu.Unlock()
			reply.Pending = id
		}
		return replyTo(reply)
	})
}

// gather makes calls side by side. The replies are in the order of the calls.
func (r *requests) gather(ctx context.Context, calls []ToolCall) []scriptReply {
	replies := make([]scriptReply, len(calls))
	first := r.countCalls(len(calls))
	var group errgroup.Group
	group.SetLimit(maxParallelCalls)
	var size atomic.Int64
	for i, c := range calls {
		group.Go(func() error {
			replies[i] = r.call(ctx, c, first+i, func() bool { return size.Load() <= int64(r.limits.Transfer) })
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
	b := batch{requests: r, numbers: map[string]int{}}
	var waiting []string
	var places []int
	for i, id := range ids {
		number, _ := strconv.Atoi(id) // an id that the host did not give is not in r.pending
		if reply, ok := r.recorder.outcome(number); ok {
			replies[i] = reply
			continue
		}
		r.mu.Lock()
		pending, ok := r.pending[id]
		delete(r.pending, id)
		r.mu.Unlock()
		if !ok {
			replies[i] = replyTo(Reply{Err: errors.New("this call does not wait for an approval")})
			continue
		}
		b.numbers[pending] = number
		waiting, places = append(waiting, pending), append(places, i)
	}
	if len(waiting) == 0 {
		return replies
	}
	collector, ok := r.host.(Collector)
	if !ok {
		for _, at := range places {
			replies[at] = replyTo(Reply{Err: errors.New("no call is pending")})
		}
		return replies
	}
	r.recorder.begin(ctx)
	for i, reply := range collector.Flush(ctx, waiting, b) {
		replies[places[i]] = replyTo(reply)
	}
	return replies
}

// A batch is a [Batch] of the run. numbers are the numbers of the calls by the host's ids.
type batch struct {
	*requests
	numbers map[string]int
}

// Pause implements [Batch].
func (b batch) Pause() (resume func()) { return b.pause() }

// Send implements [Batch].
func (b batch) Send(ctx context.Context, id string, send func() Reply) Reply {
	if b.recorder == nil {
		return send()
	}
	var reply Reply
	recorded := b.recorder.approved(ctx, b.numbers[id], func() scriptReply {
		reply = send()
		return replyTo(reply)
	})
	if e := recorded.Error; e != nil && reply.Err == nil {
		reply = Reply{Err: &CallError{Code: e.Code, Message: e.Message, Next: e.Next}}
	}
	return reply
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
