package tui

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/vt"
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write the golden frames")

// patience is how long a test waits for the screen to show something.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// A script is a model whose n-th answer is made by the n-th function.
type script struct {
	mu      sync.Mutex
	asked   int
	answers []answer
}

type answer func(ctx context.Context, on func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error)

func (s *script) Info() drawbridge.ModelInfo {
	return drawbridge.ModelInfo{Provider: "test", Name: "script", Window: 200000}
}

func (s *script) Generate(ctx context.Context, _ drawbridge.ModelRequest, on func(drawbridge.ModelDelta)) (
	drawbridge.ModelResponse, error) {
	s.mu.Lock()
	n := s.asked
	s.asked++
	s.mu.Unlock()
	if n >= len(s.answers) {
		return drawbridge.ModelResponse{}, fmt.Errorf("the script has no answer %d", n)
	}
	return s.answers[n](ctx, on)
}

// response is a complete answer with a text and calls.
func response(text string, calls ...drawbridge.ToolCall) drawbridge.ModelResponse {
	var m drawbridge.Message
	if text != "" {
		m.Parts = append(m.Parts, drawbridge.MessagePart{Text: text})
	}
	stop := drawbridge.StopEnd
	for i := range calls {
		m.Parts = append(m.Parts, drawbridge.MessagePart{ToolCall: &calls[i]})
		stop = drawbridge.StopToolCalls
	}
	return drawbridge.ModelResponse{Message: m, Stop: stop, Usage: drawbridge.ModelUsage{Input: 1000, Output: 100}}
}

// says answers with a text in one piece, and calls.
func says(text string, calls ...drawbridge.ToolCall) answer {
	return func(_ context.Context, on func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
		if text != "" {
			on(drawbridge.ModelDelta{Text: text})
		}
		return response(text, calls...), nil
	}
}

// streams sends a text, waits until the channel is closed, and sends the rest.
func streams(first, rest string, proceed <-chan struct{}) answer {
	return func(ctx context.Context, on func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
		for _, piece := range strings.SplitAfter(first, " ") {
			on(drawbridge.ModelDelta{Text: piece})
		}
		select {
		case <-proceed:
		case <-ctx.Done():
			return drawbridge.ModelResponse{}, context.Cause(ctx)
		}
		on(drawbridge.ModelDelta{Text: rest})
		return response(first + rest), nil
	}
}

func newPrompt(text string) []drawbridge.MessagePart { return []drawbridge.MessagePart{{Text: text}} }

func call(id, name, arguments string) drawbridge.ToolCall {
	return drawbridge.ToolCall{ID: id, Name: drawbridge.CardName(name), Arguments: json.RawMessage(arguments)}
}

// tools are tools from one function. Answers of the person arrive in answers.
type tools struct {
	call    func(ctx context.Context, c drawbridge.ToolCall, update func(agent.CallUpdate)) (agent.CallOutcome, error)
	mu      sync.Mutex
	waiting map[string]chan agent.Answer
}

func (*tools) Brief(context.Context, agent.Identity, bool) (agent.Briefing, error) {
	return agent.Briefing{}, nil
}

func (*tools) Select(context.Context, agent.Identity, string, []drawbridge.CardName) ([]drawbridge.ToolDefinition,
	error) {
	var all []drawbridge.ToolDefinition
	for _, name := range []drawbridge.CardName{"fs__read", "edit", "todo", "bash", "ask", "fs__write", "exit_plan_mode"} {
		all = append(all, drawbridge.ToolDefinition{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	return all, nil
}

func (t *tools) Call(ctx context.Context, _ agent.Identity, c drawbridge.ToolCall, update func(agent.CallUpdate)) (
	agent.CallOutcome, error) {
	return t.call(ctx, c, update)
}

// ask asks the person and returns the answer.
func (t *tools) ask(ctx context.Context, q agent.Question, update func(agent.CallUpdate)) (agent.Answer, error) {
	answered := make(chan agent.Answer, 1)
	t.mu.Lock()
	if t.waiting == nil {
		t.waiting = map[string]chan agent.Answer{}
	}
	t.waiting[q.ID] = answered
	t.mu.Unlock()
	update(agent.CallUpdate{Question: &q})
	select {
	case a := <-answered:
		return a, nil
	case <-ctx.Done():
		return agent.Answer{}, context.Cause(ctx)
	}
}

func (t *tools) Answer(_ context.Context, a agent.Answer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	answered, ok := t.waiting[a.ID]
	if !ok {
		return errors.New("no call waits for this answer")
	}
	delete(t.waiting, a.ID)
	answered <- a
	return nil
}

// outcome is a result with a text and a structured content.
func outcome(text string, structured any) agent.CallOutcome {
	result := map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
	if structured != nil {
		result["structuredContent"] = structured
	}
	raw, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	return agent.CallOutcome{Result: drawbridge.Result{Raw: raw}, Server: "srv", Tool: "tool"}
}

func newSession(t testing.TB, model agent.Model, box agent.Tools) *agent.Session {
	t.Helper()
	return openSession(t, agent.Options{Model: model, Tools: box, ManualCondense: true})
}

// openSession opens a session. Its clock stands still, and the entries have numbers.
func openSession(t testing.TB, o agent.Options) *agent.Session {
	t.Helper()
	n := 0
	var mu sync.Mutex
	o.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	first := rand.Text()
	o.NewID = func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("%s-%d", first, n)
	}
	s, err := agent.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A terminal is a session on a terminal that exists in memory.
type terminal struct {
	t      testing.TB
	screen *screen
	keys   *io.PipeWriter
	done   chan error

	// mu guards the fields below. changed is closed at each change of the screen.
	mu      sync.Mutex
	screenV *vt.Emulator
	raw     bytes.Buffer // all that was written
	changed chan struct{}
	now     time.Time
}

// Write draws what the program writes.
func (x *terminal) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.raw.Write(p)
	// Like the driver of a terminal that is not in raw mode.
	_, err := x.screenV.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")))
	close(x.changed)
	x.changed = make(chan struct{})
	return len(p), err
}

// open shows a session on a terminal of a size.
func open(t testing.TB, width, height int, o Options) *terminal {
	t.Helper()
	in, keys := io.Pipe()
	x := &terminal{t: t, keys: keys, done: make(chan error, 1), screenV: vt.NewEmulator(width, height),
		changed: make(chan struct{}), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	o.Terminal.In, o.Terminal.Out, o.Terminal.Width, o.Terminal.Height = in, x, width, height
	o.Terminal.Env = append(o.Terminal.Env, "TERM=xterm-256color")
	o.Now = func() time.Time {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.now
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "work")
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	x.screen = newScreen(t.Context(), o)
	var tasks sync.WaitGroup
	tasks.Go(func() { // the answers of the terminal to requests of the program
		_, _ = io.Copy(io.Discard, x.screenV)
	})
	go func() { x.done <- x.screen.run() }()
	t.Cleanup(func() {
		x.screen.cancel()
		_ = keys.Close()
		<-x.done
		_ = x.screenV.InputPipe().(io.Closer).Close() // Close of the emulator races with Read
		tasks.Wait()
	})
	return x
}

// text returns what the terminal shows, with the lines above the screen.
func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var b strings.Builder
	width := x.screenV.Width()
	for y := range x.screenV.ScrollbackLen() {
		var line strings.Builder
		for i := 0; i < width; i++ {
			c := x.screenV.ScrollbackCellAt(i, y)
			if c == nil {
				line.WriteByte(' ')
				continue
			}
			line.WriteString(c.Content)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	if b.Len() > 0 {
		b.WriteString("~~~~ the screen begins here\n")
	}
	for line := range strings.Lines(x.screenV.String()) {
		b.WriteString(strings.TrimRight(line, " \n\r") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// press types keys.
func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := io.WriteString(x.keys, keys); err != nil {
		x.t.Fatal(err)
	}
}

// pass lets time pass.
func (x *terminal) pass(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = x.now.Add(d)
}

// resize changes the size.
func (x *terminal) resize(width, height int) {
	x.mu.Lock()
	x.screenV.Resize(width, height)
	x.mu.Unlock()
	x.screen.tea.Send(tea.WindowSizeMsg{Width: width, Height: height})
}

// until waits until the terminal shows what is wanted.
func (x *terminal) until(what string, shown func(text string) bool) string {
	x.t.Helper()
	deadline := time.After(patience)
	for {
		x.mu.Lock()
		changed := x.changed
		x.mu.Unlock()
		text := x.text()
		if shown(text) {
			return text
		}
		select {
		case <-changed:
		case <-deadline:
			x.t.Fatalf("the terminal does not show %s, but\n%s", what, text)
		}
	}
}

// shows waits until the terminal shows texts, and no text that begins with "!".
func (x *terminal) shows(all ...string) string {
	x.t.Helper()
	return x.until(strings.Join(all, ", "), func(text string) bool {
		for _, s := range all {
			if not, ok := strings.CutPrefix(s, "!"); ok && strings.Contains(text, not) || !ok && !strings.Contains(text, s) {
				return false
			}
		}
		return true
	})
}

// golden waits until the terminal shows the frame in testdata. With -update it writes the frame.
func (x *terminal) golden(name string) {
	x.t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		x.quiet()
		if err := os.WriteFile(path, []byte(x.text()), 0o644); err != nil {
			x.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		x.t.Fatal(err)
	}
	deadline := time.After(patience)
	for {
		x.mu.Lock()
		changed := x.changed
		x.mu.Unlock()
		got := x.text()
		if got == string(want) {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			x.t.Fatalf("%s (-want +got):\n%s", path, cmp.Diff(string(want), got))
		}
	}
}

// quiet waits until nothing was drawn for a while. Only -update uses it.
func (x *terminal) quiet() {
	for {
		x.mu.Lock()
		changed := x.changed
		x.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(700 * time.Millisecond):
			return
		}
	}
}

// ends waits until the program has ended, and returns its error.
func (x *terminal) ends() error {
	x.t.Helper()
	select {
	case err := <-x.done:
		x.done <- err
		return err
	case <-time.After(patience):
		x.t.Fatalf("the program does not end:\n%s", x.text())
		return nil
	}
}
