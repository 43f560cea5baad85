package agentrpc_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/agentrpc"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// floodLines is the number of pieces of an answer with the stop reason "flood".
const floodLines = 1000

// A scriptedModel returns its answers in their order. An answer with the stop reason "wait" ends when the request is
// cancelled.
type scriptedModel struct {
	name   string
	window int
	sent   atomic.Int64 // pieces of an answer that is a flood
	mu     sync.Mutex
	all    []drawbridge.ModelResponse
	seen   []drawbridge.ModelRequest
}

func (m *scriptedModel) Info() drawbridge.ModelInfo {
	return drawbridge.ModelInfo{Provider: "test", Name: m.name, Images: true, Window: m.window,
		Price: drawbridge.ModelPrice{Input: 1e6, Output: 1e6}}
}

func (m *scriptedModel) Generate(ctx context.Context, r drawbridge.ModelRequest, on func(drawbridge.ModelDelta)) (
	drawbridge.ModelResponse, error) {
	m.mu.Lock()
	m.seen = append(m.seen, r)
	if len(m.all) == 0 {
		m.mu.Unlock()
		return drawbridge.ModelResponse{}, errors.New("the script has ended")
	}
	next := m.all[0]
	m.all = m.all[1:]
	m.mu.Unlock()
	for _, p := range next.Message.Parts {
		if p.Thinking != nil {
			on(drawbridge.ModelDelta{Thinking: p.Thinking.Text})
		}
	}
	if text := next.Message.Text(); text != "" {
		on(drawbridge.ModelDelta{Text: text})
	}
	if next.Stop == "flood" {
		for i := range floodLines {
			on(drawbridge.ModelDelta{Text: fmt.Sprintf("<%d>", i)})
			m.sent.Add(1)
		}
	}
	if next.Stop == "wait" {
		<-ctx.Done()
		return drawbridge.ModelResponse{}, context.Cause(ctx)
	}
	return next, nil
}

func says(text string, stop drawbridge.StopReason) drawbridge.ModelResponse {
	return drawbridge.ModelResponse{Message: drawbridge.Message{Parts: []drawbridge.MessagePart{{Text: text}}}, Stop: stop,
		Usage: drawbridge.ModelUsage{Input: 10, Output: 1}}
}

func calls(tool, arguments string) drawbridge.ModelResponse {
	return drawbridge.ModelResponse{Stop: drawbridge.StopToolCalls, Message: drawbridge.Message{
		Parts: []drawbridge.MessagePart{
			{Thinking: &drawbridge.Thinking{Text: "I call " + tool}},
			{ToolCall: &drawbridge.ToolCall{ID: "c1", Name: drawbridge.CardName(tool), Arguments: json.RawMessage(arguments)}},
		}}}
}

// scriptedTools has "read", which returns its arguments, and a tool for each kind of question.
type scriptedTools struct {
	mu      sync.Mutex
	waiting map[string]chan agent.Answer
	answers []agent.Answer
	// results are the results of further tools, by their names.
	results map[string]string
}

func (t *scriptedTools) Brief(context.Context, agent.Identity, bool) (agent.Briefing, error) {
	return agent.Briefing{}, nil
}

func (t *scriptedTools) Select(context.Context, agent.Identity, string, []drawbridge.CardName) (
	all []drawbridge.ToolDefinition, err error) {
	names := []string{"read", "ask_approval", "ask_script", "ask_form", "ask_url", "ask_sampling", "ask_plan"}
	for _, name := range append(names, slices.Sorted(maps.Keys(t.results))...) {
		all = append(all, drawbridge.ToolDefinition{Name: drawbridge.CardName(name), InputSchema: json.RawMessage(`{}`)})
	}
	return all, nil
}

func (t *scriptedTools) Call(ctx context.Context, _ agent.Identity, c drawbridge.ToolCall,
	update func(agent.CallUpdate)) (agent.CallOutcome, error) {
	if raw := t.results[string(c.Name)]; raw != "" {
		return agent.CallOutcome{Result: drawbridge.Result{Raw: json.RawMessage(raw)}}, nil
	}
	kind, asks := strings.CutPrefix(string(c.Name), "ask_")
	text := string(c.Arguments)
	if asks {
		answer := make(chan agent.Answer, 1)
		t.mu.Lock()
		if t.waiting == nil {
			t.waiting = map[string]chan agent.Answer{}
		}
		t.waiting["q1"] = answer
		t.mu.Unlock()
		update(agent.CallUpdate{Question: &agent.Question{ID: "q1", Kind: agent.QuestionKind(kind), Server: "srv", Tool: "do",
			Reason: "it writes", Arguments: c.Arguments, Message: "please", URL: cmp.Or(rawjson.GetString(c.Arguments, "url"), "https://example.com/")}})
		select {
		case a := <-answer:
			text = fmt.Sprintf("allow=%v always=%v %s", a.Allow, a.Always, a.Content)
		case <-ctx.Done():
			return agent.CallOutcome{}, context.Cause(ctx)
		}
	}
	raw, _ := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}})
	return agent.CallOutcome{Result: drawbridge.Result{Raw: raw}, Server: "srv", Tool: "do"}, nil
}

func (t *scriptedTools) Answer(_ context.Context, a agent.Answer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := t.waiting[a.ID]
	if waiting == nil {
		return errors.New("nothing waits")
	}
	delete(t.waiting, a.ID)
	t.answers = append(t.answers, a)
	waiting <- a
	return nil
}

// A scriptedHost opens sessions in memory. It keeps the histories, so that a session can be loaded.
type scriptedHost struct {
	model *scriptedModel
	tools scriptedTools
	mode  agent.PermissionMode
	// slow, if it is not nil, is waited for before the models are known.
	slow chan struct{}
	// window is that of the model.
	window int

	mu        sync.Mutex
	histories map[string]agent.History
	inUse     map[string]bool
	listed    []agentrpc.ListedSession
	// servers and elicitation are those of the last session.
	servers     []agentrpc.ClientServer
	elicitation bool
}

func (h *scriptedHost) Hold(ctx context.Context, o agentrpc.Opening,
	work func(context.Context, agentrpc.Opened) error) error {
	h.mu.Lock()
	history := h.histories[o.Session]
	h.servers, h.elicitation = o.Servers, o.Elicitation
	var notices []string
	for _, s := range o.Servers {
		if s.Name == "refused" {
			h.mu.Unlock()
			return fmt.Errorf("the server %s may not be used", s.Name)
		}
		notices = append(notices, "not used: "+s.Name)
	}
	if o.Session != "" && history == nil {
		h.mu.Unlock()
		return fmt.Errorf("no session %s", o.Session)
	}
	if history == nil {
		history = agent.NewMemoryHistory()
		if h.histories == nil {
			h.histories = map[string]agent.History{}
		}
		h.histories[history.ID()] = history
	}
	id := history.ID()
	if h.inUse[id] {
		h.mu.Unlock()
		return agent.ErrInUse
	}
	if h.inUse == nil {
		h.inUse = map[string]bool{}
	}
	h.inUse[id] = true
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.inUse, id)
		h.mu.Unlock()
	}()
	s, err := agent.New(ctx, agent.Options{Model: h.model, Tools: &h.tools, History: history, Mode: h.mode})
	if err != nil {
		return err
	}
	return work(ctx, agentrpc.Opened{Session: s, History: history, File: "/tmp/" + history.ID(),
		Notices: notices})
}

func (h *scriptedHost) Sessions(_ context.Context, dir string) (all []agentrpc.ListedSession, err error) {
	if dir == "/broken" {
		return nil, errors.New("the directory cannot be read")
	}
	for _, l := range h.listed {
		if dir == "" || l.Dir == dir {
			all = append(all, l)
		}
	}
	return all, nil
}

func (h *scriptedHost) Models(ctx context.Context) ([]string, error) {
	if h.slow != nil {
		select {
		case <-h.slow:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return []string{"test/a", "test/b"}, nil
}

func (h *scriptedHost) FindModel(ctx context.Context, name string) (agent.Model, error) {
	if name == "test/waits" {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if name != "test/b" {
		return nil, errors.New("unknown model")
	}
	return &scriptedModel{name: "b", all: []drawbridge.ModelResponse{says("I am b", drawbridge.StopEnd)}}, nil
}

// A client is the program at the other end.
type client struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *io.PipeReader
	lines *bufio.Reader
	ended chan error
}

// serve starts a server. The test ends when the server has.
func serve(t *testing.T, host *scriptedHost, run func(context.Context, agentrpc.Pipes, agentrpc.Host) error,
	answers ...drawbridge.ModelResponse) *client {
	t.Helper()
	host.model = &scriptedModel{name: "a", all: answers, window: host.window}
	fromClient, in := io.Pipe()
	out, toClient := io.Pipe()
	c := &client{t: t, in: in, out: out, lines: bufio.NewReader(out), ended: make(chan error, 1)}
	go func() {
		c.ended <- run(t.Context(), agentrpc.Pipes{In: fromClient, Out: toClient}, host)
		_ = toClient.Close()
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, c.lines)
		_ = out.Close()
		if len(host.inUse) != 0 {
			t.Errorf("%v are still held", host.inUse)
		}
	})
	return c
}

func acp(t *testing.T, answers ...drawbridge.ModelResponse) (*client, *scriptedHost) {
	host := &scriptedHost{}
	return serveACP(t, host, answers...), host
}

// serveACP serves the Agent Client Protocol with a host.
func serveACP(t *testing.T, host *scriptedHost, answers ...drawbridge.ModelResponse) *client {
	return serve(t, host, func(ctx context.Context, p agentrpc.Pipes, h agentrpc.Host) error {
		return agentrpc.ServeACP(ctx, p, h, "v1")
	}, answers...)
}

func link(t *testing.T, answers ...drawbridge.ModelResponse) (*client, *scriptedHost) {
	host := &scriptedHost{}
	return serveLink(t, host, answers...), host
}

// serveLink serves the link with a host.
func serveLink(t *testing.T, host *scriptedHost, answers ...drawbridge.ModelResponse) *client {
	return serve(t, host, func(ctx context.Context, p agentrpc.Pipes, h agentrpc.Host) error {
		return agentrpc.ServeLink(ctx, p, h, agentrpc.Opening{})
	}, answers...)
}

func (c *client) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next line, as it is.
func (c *client) next() string {
	c.t.Helper()
	line, err := c.lines.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

// until returns the next line with a text. Others are dropped.
func (c *client) until(text string) string {
	c.t.Helper()
	for {
		if line := c.next(); strings.Contains(line, text) {
			return line
		}
	}
}

// all returns the lines until each of the texts was in a line.
func (c *client) all(texts ...string) (lines []string) {
	c.t.Helper()
	for len(texts) > 0 {
		line := c.next()
		lines = append(lines, line)
		texts = slices.DeleteFunc(texts, func(text string) bool { return strings.Contains(line, text) })
	}
	return lines
}

// end ends the input, and returns the error of the server.
func (c *client) end() error {
	_ = c.in.Close()
	_, _ = io.Copy(io.Discard, c.lines)
	return <-c.ended
}
