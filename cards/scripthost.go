package cards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

const (
	// defaultFoundTools is how many tools a search returns by default, and maxFoundTools the maximum.
	defaultFoundTools, maxFoundTools = 10, 50
)

// ScriptApprovals decides about calls of scripts that need an approval.
type ScriptApprovals interface {
	// Approve waits until a person has allowed collected calls of a script, see [deck.Deck.ApproveScript].
	Approve(ctx context.Context, a deck.ScriptApproval) (deck.ApprovalAnswer, error)
	// UseGrant reports whether an earlier grant covers a call of a script, see [deck.Deck.UseScriptGrant].
	UseGrant(ctx context.Context, a deck.ScriptApproval) (answer deck.ApprovalAnswer, granted bool, err error)
}

// A ScriptTools is the deck, as scripts use it. Every method decides for the caller that it is given.
type ScriptTools interface {
	// Call runs a tools/call, with all checks.
	Call(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
	// Tools returns the tools that the caller may call. With wait set it waits, as a list does, for servers that were
	// never listed.
	Tools(ctx context.Context, caller drawbridge.Caller, wait bool) []drawbridge.Spec
	ScriptApprovals
	// Find returns the tools that match a query best, the best first. It waits as Tools does.
	Find(ctx context.Context, caller drawbridge.Caller, query string, limit int) []drawbridge.Spec
	// LearnedOutput returns the output type that was learned for a tool without an output schema.
	LearnedOutput(ctx context.Context, caller drawbridge.Caller, name drawbridge.CardName) (deck.LearnedOutput, bool)
}

// A scriptHost answers the requests of one script. Its caller has the kind Sandbox and the rights of the caller that
// started the script, narrowed to the requested tools. Calls that need an approval are collected until the script uses a
// result of them.
type scriptHost struct {
	tools ScriptTools
	// run is the call of run_python, spec is run_python, code is the script, and input are its arguments. call is the
	// prototype of the script's own calls. patterns are the requested tools; empty for all.
	run      drawbridge.Call
	spec     drawbridge.Spec
	code     string
	input    json.RawMessage
	call     drawbridge.Call
	patterns []string
	// runID is the ID of the run, see [SavedRun]. made counts its calls, also those that are answered from its journal.
	runID   string
	made    atomic.Int32
	results ScriptResults
	// calls are the goroutines of calls that wait for an approval.
	calls sync.WaitGroup
	// foreign reports that the script called a tool whose results its caller gets marked as foreign texts.
	foreign atomic.Bool

	mu sync.Mutex
	// specs are the tools that the script may call; nil until they are read.
	specs []drawbridge.Spec
	// found maps names in the script to the names of listed tools.
	found map[string]drawbridge.CardName
	// pending are the calls that wait for an approval, by id; pendingBytes is the size of their params.
	pending      map[string]*collectedCall
	pendingBytes int
	nextID       int
	// allowed is how many calls of each tool were allowed, by a person's answer or by a grant.
	allowed map[drawbridge.CardName]int
	// sources are the tools whose results the script may have.
	sources map[drawbridge.CardName]bool

	// progressMu guards progress, the last progress that the client was told.
	progressMu sync.Mutex
	progress   int
}

var (
	_ sandbox.Directory = (*scriptHost)(nil)
	_ sandbox.Collector = (*scriptHost)(nil)
	_ sandbox.Repeater  = (*scriptHost)(nil)
)

func newScriptHost(tools ScriptTools, run drawbridge.Call, spec drawbridge.Spec, in runPythonInput,
	input json.RawMessage) *scriptHost {
	call := run
	call.Caller.StartedBy, call.Caller.Kind = run.Caller.Kind, drawbridge.Sandbox
	if rights := run.Caller.Agent; rights != nil && len(in.Tools) > 0 {
		narrowed := *rights
		narrowed.Tools = append(slices.Clone(rights.Tools), in.Tools)
		call.Caller.Agent = &narrowed
	}
	return &scriptHost{tools: tools, run: run, spec: spec, code: in.Code, input: input, call: call, patterns: in.Tools,
		found: map[string]drawbridge.CardName{}, pending: map[string]*collectedCall{},
		allowed: map[drawbridge.CardName]int{}, sources: map[drawbridge.CardName]bool{}}
}

// isRequested reports whether the script asked for the tool.
func (h *scriptHost) isRequested(name drawbridge.CardName) bool {
	return len(h.patterns) == 0 || slices.ContainsFunc(h.patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, string(name))
		return ok && err == nil
	})
}

// available returns the tools that the script may call. They are read once, and again with wait set, see
// [ScriptTools].Tools.
func (h *scriptHost) available(ctx context.Context, wait bool) []drawbridge.Spec {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.specs == nil || wait {
		h.specs = slices.DeleteFunc(h.tools.Tools(ctx, h.call.Caller, wait),
			func(s drawbridge.Spec) bool { return !h.isRequested(s.Name) })
	}
	return h.specs
}

// find returns the tool that a script means: by its listed name, or by the attributes of the module tools, in which
// characters that Python does not allow are underscores.
func (h *scriptHost) find(ctx context.Context, name string) (drawbridge.Spec, bool) {
	for _, wait := range []bool{false, true} {
		specs := h.available(ctx, wait)
		for _, s := range specs {
			if string(s.Name) == name {
				return s, true
			}
		}
		want := attributeName(name)
		for _, s := range specs {
			if attributeName(string(s.Name)) == want ||
				s.Server != "" && attributeName(string(s.Server)+"."+s.Tool) == want {
				return s, true
			}
		}
	}
	return drawbridge.Spec{}, false
}

// calledName returns the name with which the deck is asked to call a tool. A name that is not listed may be that of a
// server that has not started yet: the deck then waits for the server. With patterns only listed names are called,
// because the deck knows other spellings of a name.
func (h *scriptHost) calledName(ctx context.Context, name string) (called drawbridge.CardName, ok bool) {
	h.mu.Lock()
	called, ok = h.found[name]
	h.mu.Unlock()
	if ok {
		return called, true
	}
	if spec, ok := h.find(ctx, name); ok {
		h.mu.Lock()
		h.found[name] = spec.Name
		h.mu.Unlock()
		return spec.Name, true
	}
	return drawbridge.CardName(strings.Replace(name, ".", "__", 1)), len(h.patterns) == 0
}

// attributeName returns a name in the form in which names of tools and Python attributes are compared.
func attributeName(name string) string {
	server, tool, ok := strings.Cut(name, ".")
	if !ok {
		if server, tool, ok = strings.Cut(name, "__"); !ok {
			return naming.Canonical(name)
		}
	}
	return naming.Canonical(server) + "." + naming.Canonical(tool)
}

// Call calls a tool for the script. If the call needs an approval, the reply is Pending, and the call waits.
func (h *scriptHost) Call(ctx context.Context, c sandbox.ToolCall) sandbox.Reply {
	h.made.Add(1)
	name, ok := h.calledName(ctx, c.Name)
	if !ok {
		return sandbox.Reply{Err: h.unknownTool(c.Name)}
	}
	if err := h.countCall(ctx, name); err != nil {
		return sandbox.Reply{Err: err}
	}
	h.notifyProgress(ctx, "call "+string(name))
	call := h.call
	call.Method = mcp.MethodToolsCall
	call.Params = h.paramsFor(name, c.Arguments)
	collected := &collectedCall{host: h, peer: h.run.Peer, line: c.Line, size: len(call.Params),
		waits: make(chan deck.ApprovalRequest, 1), decided: make(chan approvalDecision, 1),
		ended: make(chan sandbox.Reply, 1)}
	call.Peer = collected
	h.calls.Go(func() {
		result, err := h.tools.Call(ctx, call)
		h.addCalled(ctx, c.Name, name, err)
		if err != nil {
			collected.ended <- sandbox.Reply{Err: h.callError(c.Name, err)}
			return
		}
		collected.ended <- sandbox.Reply{Result: result.Raw}
	})
	select {
	case reply := <-collected.ended:
		return reply
	case collected.request = <-collected.waits:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nextID++
	id := strconv.Itoa(h.nextID)
	h.pending[id] = collected
	return sandbox.Reply{Pending: id, Tool: string(name)}
}

// paramsFor returns the params of a call of the script. The origin that the call of run_python names is that of every
// call of the script.
func (h *scriptHost) paramsFor(name drawbridge.CardName, arguments json.RawMessage) json.RawMessage {
	params := rawjson.Apply(nil, rawjson.Put(rawjson.Quote(string(name)), "name"), rawjson.Put(arguments, "arguments"))
	if origin := rawjson.Get(h.run.Params, "_meta", deck.MetaOrigin); origin != nil {
		params = rawjson.Apply(params, rawjson.Put(origin, "_meta", deck.MetaOrigin))
	}
	return params
}

// A CallCounter is a Peer of the session of an agent that has a budget. A script takes each of its calls from the budget.
type CallCounter interface {
	// CountCall takes a call of a tool from the budget. The error says why the call must not be made.
	CountCall(ctx context.Context, tool drawbridge.CardName) error
}

// countCall takes a call from the budget of the session that started the script. The script of an agent whose session
// does not answer makes no calls.
func (h *scriptHost) countCall(ctx context.Context, name drawbridge.CardName) error {
	if h.run.Caller.Agent == nil {
		return nil
	}
	err := errors.New("the session of the agent does not count calls")
	if counter, ok := h.run.Peer.(CallCounter); ok {
		err = counter.CountCall(ctx, name)
	}
	if err == nil {
		return nil
	}
	return &sandbox.CallError{Code: string(drawbridge.PolicyBlocked), Message: "the call was not made: " + err.Error()}
}

// Repeat implements [sandbox.Repeater]. Whether the earlier result was foreign text is not recorded, so it counts as such.
func (h *scriptHost) Repeat(ctx context.Context, c sandbox.ToolCall) {
	h.made.Add(1)
	h.addRepeated(ctx, c.Name)
	if h.run.Caller.Kind != drawbridge.Author {
		h.foreign.Store(true)
	}
}

// notifyProgress sends a progress notification with a text, if the client of run_python requested them.
func (h *scriptHost) notifyProgress(ctx context.Context, text string) {
	token := rawjson.Get(h.run.Params, "_meta", mcp.MetaProgressToken)
	if token == nil || h.run.Peer == nil {
		return
	}
	h.progressMu.Lock() // also while the notification is sent: progress must increase
	defer h.progressMu.Unlock()
	h.progress++
	// An error means that the client is gone, which ends ctx too.
	_ = h.run.Peer.Notify(ctx, mcp.NoteProgress, rawjson.Apply(nil, rawjson.Put(token, "progressToken"),
		rawjson.Put([]byte(strconv.Itoa(h.progress)), "progress"), rawjson.Put(rawjson.Quote(text), "message")))
}

// nextProgress returns a progress that no notification had.
func (h *scriptHost) nextProgress() int {
	h.progressMu.Lock()
	defer h.progressMu.Unlock()
	h.progress++
	return h.progress
}

// Flush asks a person about pending calls, with one question, and then lets them be sent one after the other. The clock
// of the run stands still while the person is asked.
func (h *scriptHost) Flush(ctx context.Context, ids []string, batch sandbox.Batch) []sandbox.Reply {
	calls := make([]*collectedCall, len(ids))
	var waiting []*collectedCall
	h.mu.Lock()
	for i, id := range ids {
		if c := h.pending[id]; c != nil {
			delete(h.pending, id)
			h.pendingBytes -= c.size
			calls[i], waiting = c, append(waiting, c)
		}
	}
	h.mu.Unlock()
	var decision approvalDecision
	if len(waiting) > 0 {
		resume := batch.Pause()
		decision.answer, decision.err = h.approve(ctx, waiting)
		resume()
	}
	replies := make([]sandbox.Reply, len(ids))
	for i, c := range calls {
		switch {
		case c == nil:
			replies[i] = sandbox.Reply{Err: errors.New("this call does not wait for an approval")}
		case decision.err != nil:
			replies[i] = c.end(ctx, decision)
		default:
			sent := false
			replies[i] = batch.Send(ctx, ids[i], func() sandbox.Reply {
				sent = true
				return c.end(ctx, decision)
			})
			if !sent {
				c.end(ctx, approvalDecision{err: replies[i].Err})
			}
		}
	}
	return replies
}

// end passes the decision to a call that waits, and returns the call's reply.
func (c *collectedCall) end(ctx context.Context, decision approvalDecision) sandbox.Reply {
	c.decided <- decision
	select {
	case reply := <-c.ended:
		return reply
	case <-ctx.Done():
		return sandbox.Reply{Err: errors.New("the run has ended")}
	}
}

// approve asks a person about calls.
func (h *scriptHost) approve(ctx context.Context, calls []*collectedCall) (deck.ApprovalAnswer, error) {
	a := h.approval(calls...)
	a.Progress = h.nextProgress()
	return h.tools.Approve(ctx, a)
}

// approval returns the request to approve calls.
func (h *scriptHost) approval(calls ...*collectedCall) deck.ScriptApproval {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := deck.ScriptApproval{ApprovalRequest: deck.ApprovalRequest{Call: h.run, Spec: h.spec, Run: h.runID + " " + strconv.Itoa(int(h.made.Load()))}, Script: h.code,
		Input: h.input, Allowed: maps.Clone(h.allowed)}
	for _, c := range calls {
		a.Requests, a.Lines = append(a.Requests, c.request), append(a.Lines, c.line)
	}
	return a
}

// noteAllowed counts a call of the tool that may be sent.
func (h *scriptHost) noteAllowed(name drawbridge.CardName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.allowed[name]++
}

// isScriptCall reports whether a script makes the call.
func isScriptCall(call drawbridge.Call) bool {
	_, ok := call.Peer.(*collectedCall)
	return ok
}

// close waits until all calls have ended. The context of the calls must have ended.
func (h *scriptHost) close() { h.calls.Wait() }

// A collectedCall is the Peer of one call of a script: messages go to the client of run_python, and the deck's question
// for an approval waits until the script needs the result.
type collectedCall struct {
	host *scriptHost
	peer drawbridge.Peer
	line int
	// size is the size of the params in bytes.
	size int
	// asked counts the questions. waits gets the request for approval, decided the decision, and ended the reply.
	asked   atomic.Int32
	waits   chan deck.ApprovalRequest
	decided chan approvalDecision
	ended   chan sandbox.Reply
	request deck.ApprovalRequest
}

type approvalDecision struct {
	answer deck.ApprovalAnswer
	err    error
}

var (
	_ deck.CallCollector   = (*collectedCall)(nil)
	_ deck.ForeignListener = (*collectedCall)(nil)
)

// NoteForeign implements [deck.ForeignListener].
func (c *collectedCall) NoteForeign() { c.host.foreign.Store(true) }

// Collect implements [deck.CallCollector]. A call that an earlier grant covers does not wait.
func (c *collectedCall) Collect(ctx context.Context, r deck.ApprovalRequest) (deck.ApprovalAnswer, error) {
	answer, granted, err := c.host.tools.UseGrant(ctx, c.host.approval(&collectedCall{line: c.line, request: r}))
	if err == nil && !granted {
		answer, err = c.awaitDecision(ctx, r)
	}
	if err == nil {
		c.host.noteAllowed(r.Spec.Name)
	}
	return answer, err
}

// awaitDecision waits for the decision about a call. A second question during the same call, as by a tool that calls
// another one, is asked at once.
func (c *collectedCall) awaitDecision(ctx context.Context, r deck.ApprovalRequest) (deck.ApprovalAnswer, error) {
	if c.asked.Add(1) > 1 {
		return c.host.approve(ctx, []*collectedCall{{line: c.line, request: r}})
	}
	if !c.host.addPending(c.size) {
		return deck.ApprovalAnswer{}, fmt.Errorf("the calls that wait for an approval have more than %d bytes: use the result of one earlier",
			maxPendingBytes)
	}
	c.waits <- r
	select {
	case d := <-c.decided:
		if d.err == nil && !r.StillValid() {
			return d.answer, errors.New("the tool or its configuration changed while a person was asked")
		}
		return d.answer, d.err
	case <-ctx.Done():
		return deck.ApprovalAnswer{}, context.Cause(ctx)
	}
}

// maxPendingBytes is the maximum size of all calls of a script that wait for an approval: a person is not asked to read
// more.
const maxPendingBytes = 256 << 10

// addPending adds the size of a call to that of the waiting calls. It returns false if they are too large.
func (h *scriptHost) addPending(size int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pendingBytes+size > maxPendingBytes {
		return false
	}
	h.pendingBytes += size
	return true
}

// Notify implements [drawbridge.Peer].
func (c *collectedCall) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if c.peer == nil {
		return nil
	}
	return c.peer.Notify(ctx, method, params)
}

// Request implements [drawbridge.Peer].
func (c *collectedCall) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if c.peer == nil {
		return nil, &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: method,
			Err: errors.New("the script has no client that could answer")}
	}
	return c.peer.Request(ctx, method, params)
}

// unknownTool returns the error for a name that the script may not call: the same for names that do not exist.
func (h *scriptHost) unknownTool(name string) error {
	return &sandbox.CallError{Code: string(drawbridge.NotFound), Message: "unknown tool " + name,
		Next: "tools.search finds tools, tools.names lists them"}
}

// isUnknown reports whether a call failed because its tool does not exist for the caller.
func isUnknown(err error) bool {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	return ok && f.Kind == drawbridge.UnknownCapability
}

// callError returns the error of a call for the script.
func (h *scriptHost) callError(name string, err error) error {
	if isUnknown(err) {
		return h.unknownTool(name)
	}
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok {
		return &sandbox.CallError{Message: "internal error"}
	}
	return &sandbox.CallError{Code: string(f.Code), Message: f.Error()} // with the next step
}

// Search implements [sandbox.Directory].
func (h *scriptHost) Search(ctx context.Context, query string, limit int) (json.RawMessage, error) {
	if limit <= 0 {
		limit = defaultFoundTools
	}
	found := []listedTool{}
	for _, s := range h.tools.Find(ctx, h.call.Caller, query, maxFoundTools) {
		if len(found) < min(limit, maxFoundTools) && h.isRequested(s.Name) {
			found = append(found, listedTool{Name: s.Name, Server: string(s.Server), Title: s.Title, Summary: s.Summary})
		}
	}
	return json.Marshal(map[string]any{"tools": found})
}

// Describe implements [sandbox.Directory].
func (h *scriptHost) Describe(ctx context.Context, name string) (json.RawMessage, error) {
	spec, ok := h.find(ctx, name)
	if !ok {
		return nil, h.unknownTool(name)
	}
	described := struct {
		Name        drawbridge.CardName `json:"name"`
		Description string              `json:"description"`
		Input       json.RawMessage     `json:"input_schema"`
		Output      json.RawMessage     `json:"output_schema,omitempty"`
		// LearnedFrom is the number of results that Output was learned from; 0 if Output is of the definition.
		LearnedFrom int `json:"output_schema_learned_from,omitempty"`
	}{
		Name: spec.Name, Description: rawjson.GetString(spec.Definition, "description"),
		Input: rawjson.Get(spec.Definition, "inputSchema"), Output: rawjson.Get(spec.Definition, "outputSchema"),
	}
	if out, ok := h.tools.LearnedOutput(ctx, h.call.Caller, spec.Name); ok {
		described.Output, described.LearnedFrom = out.Schema, out.Results
	}
	return json.Marshal(described)
}

// Names implements [sandbox.Directory].
func (h *scriptHost) Names(ctx context.Context) ([]string, error) {
	var names []string
	for _, s := range h.available(ctx, true) {
		names = append(names, string(s.Name))
	}
	return names, nil
}
