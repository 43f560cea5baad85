package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"golang.org/x/sync/errgroup"
)

// An agentTerminal is a session at a terminal, line by line: nothing that was printed is drawn again, so it suits screen
// readers and logs too. One goroutine reads lines and one runs prompts.
type agentTerminal struct {
	a       *app
	session *agent.Session
	lines   *Dialogue
	group   errgroup.Group

	mu sync.Mutex
	// cancel ends the run; nil if none goes on. questions wait for an answer, the first one was shown.
	cancel    context.CancelFunc
	questions []agent.Question
	// text is what the model wrote of an incomplete line.
	text strings.Builder
	// pressed is when Ctrl-C was pressed last without a run.
	pressed time.Time
}

// runTerminal holds a session at the terminal.
func (a *app) runTerminal(ctx context.Context, f agentFlags, args []string) error {
	prompt, err := promptOf(a.Dir, args)
	if err != nil {
		return err
	}
	return a.withSession(ctx, f, func(ctx context.Context, s *agent.Session) error {
		lines, ok := StartDialogue(ctx, a.In, a.Out)
		if !ok {
			return errors.New("a session needs a terminal; --print runs one prompt")
		}
		defer lines.Close()
		t := &agentTerminal{a: a, session: s, lines: lines}
		t.greet()
		if len(prompt) > 0 {
			t.start(ctx, prompt)
		}
		err := t.read(ctx)
		t.stop()
		_ = t.group.Wait() // errors of runs were shown
		return err
	})
}

// greet says what the session is.
func (t *agentTerminal) greet() {
	now := t.session.Snapshot()
	t.say("%s in %s, permission mode %s. /help lists commands; Ctrl-C cancels a run, twice ends.", now.Model, t.a.Dir, now.Mode)
	if now.Messages > 0 {
		t.say("The session %s goes on; it has %d messages.", now.Session, now.Messages)
	}
}

func (t *agentTerminal) say(format string, args ...any) { t.lines.Say(fmt.Sprintf(format, args...)) }

// read reads lines until the person ends the session.
func (t *agentTerminal) read(ctx context.Context) error {
	for {
		line, err := t.lines.Ask(t.promptText())
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			if t.interrupt() {
				return nil
			}
			continue
		case err != nil:
			return fmt.Errorf("read the terminal: %w", err)
		}
		if done := t.line(ctx, line); done {
			return nil
		}
	}
}

// promptText returns the text in front of the input.
func (t *agentTerminal) promptText() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.questions) > 0:
		return "[y]es, [a]lways in this session, [n]o? "
	case t.cancel != nil:
		return "… "
	}
	return "> "
}

// interrupt handles Ctrl-C. It cancels the run; without a run it reports whether the session ends.
func (t *agentTerminal) interrupt() (ends bool) {
	t.mu.Lock()
	cancel := t.cancel
	twice := time.Since(t.pressed) < 2*time.Second
	if cancel == nil {
		t.pressed = time.Now()
	}
	t.mu.Unlock()
	if cancel != nil {
		cancel()
		return false
	}
	if !twice {
		t.say("Press Ctrl-C again to end the session.")
	}
	return twice
}

func (t *agentTerminal) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
}

// line handles a line of the person. It returns true if the session ends.
func (t *agentTerminal) line(ctx context.Context, line string) (done bool) {
	line = strings.TrimSpace(line)
	t.mu.Lock()
	running, asked := t.cancel != nil, len(t.questions) > 0
	t.mu.Unlock()
	switch {
	case asked:
		t.answer(ctx, line)
	case line == "":
	case strings.HasPrefix(line, "/"):
		return t.command(ctx, line)
	default:
		words := []string{line}
		if strings.Contains(line, "@") {
			words = strings.Split(line, " ")
		}
		prompt, err := promptOf(t.a.Dir, words)
		switch {
		case err != nil:
			t.say("%s", err)
		case running:
			t.session.Queue(prompt)
			t.say("The model gets this with its next turn.")
		default:
			t.start(ctx, prompt)
		}
	}
	return false
}

// start runs a prompt in the background.
func (t *agentTerminal) start(ctx context.Context, prompt []drawbridge.MessagePart) {
	ctx, cancel := context.WithCancel(ctx)
	t.mu.Lock()
	t.cancel = cancel
	t.mu.Unlock()
	t.lines.SetPrompt(t.promptText())
	t.group.Go(func() error {
		defer cancel()
		began := time.Now()
		result, err := t.session.Run(ctx, prompt, t.event)
		t.flush()
		t.mu.Lock()
		t.cancel, t.questions = nil, nil
		t.mu.Unlock()
		switch {
		case result.Outcome == agent.Cancelled:
			t.say("(cancelled)")
		case err != nil:
			t.say("run failed: %s", err)
		}
		t.say("(%s, %d turns, %d tokens%s)", time.Since(began).Round(100*time.Millisecond), result.Turns,
			result.Usage.Input+result.Usage.Output, costText(result.Cost))
		t.lines.SetPrompt(t.promptText())
		return nil
	})
}

// costText returns the text for a cost in US dollars; empty for 0.
func costText(dollars float64) string {
	if dollars == 0 {
		return ""
	}
	return fmt.Sprintf(", $%.4f", dollars)
}

// event shows what happened.
func (t *agentTerminal) event(e agent.Event) {
	indent := strings.Repeat("  ", strings.Count(e.Agent, "/"))
	if e.Agent != "" {
		indent += "  "
	}
	switch e.Kind {
	case agent.TextDelta:
		if e.Agent == "" {
			t.write(e.Text)
		}
	case agent.ToolStarted:
		t.flush()
		t.say("%s• %s %s", indent, safetext.Exact(string(e.Call.Name)), oneLine(string(e.Call.Arguments), 200))
	case agent.ToolProgress:
		if e.Progress.Message != "" {
			t.say("%s  … %s", indent, oneLine(e.Progress.Message, 200))
		}
	case agent.ToolAsked:
		t.flush()
		t.ask(*e.Question)
	case agent.ToolFinished:
		mark := "✓"
		if e.Result.IsError {
			mark = "✗"
		}
		t.say("%s  %s %s %s: %s", indent, mark, safetext.Exact(string(e.Call.Name)), e.Elapsed.Round(time.Millisecond), oneLine(e.Result.Text, 200))
	case agent.ModelRetried:
		t.flush()
		t.say("%s(asked again: %s)", indent, e.Text)
	case agent.Condensed:
		t.say("(old turns were summarised)")
	case agent.Notice:
		t.flush()
		t.say("%s%s", indent, e.Text)
	case agent.TurnFinished:
		t.flush()
	}
}

// write shows the complete lines of a text, and keeps the rest.
func (t *agentTerminal) write(text string) {
	t.mu.Lock()
	t.text.WriteString(text)
	whole := t.text.String()
	end := strings.LastIndexByte(whole, '\n')
	if end >= 0 {
		t.text.Reset()
		t.text.WriteString(whole[end+1:])
	}
	t.mu.Unlock()
	if end >= 0 {
		t.say("%s", whole[:end])
	}
}

// flush shows the incomplete line.
func (t *agentTerminal) flush() {
	t.mu.Lock()
	rest := t.text.String()
	t.text.Reset()
	t.mu.Unlock()
	if strings.TrimSpace(rest) != "" {
		t.say("%s", rest)
	}
}

// oneLine returns a text as one line with at most limit bytes.
func oneLine(text string, limit int) string {
	return safetext.Truncate(strings.Join(strings.Fields(safetext.Text(text)), " "), limit, safetext.Bytes, "…")
}

// ask shows a question, with everything that the person decides on.
func (t *agentTerminal) ask(q agent.Question) {
	t.mu.Lock()
	t.questions = append(t.questions, q)
	first := len(t.questions) == 1
	t.mu.Unlock()
	if first {
		t.show(q)
	}
}

func (t *agentTerminal) show(q agent.Question) {
	var pretty bytes.Buffer
	if json.Indent(&pretty, q.Arguments, "    ", "  ") != nil {
		pretty.Reset()
		pretty.Write(q.Arguments)
	}
	switch q.Kind {
	case agent.AskApproval:
		t.say("May %s be called? (%s)\n    %s", toolOf(q), q.Reason, pretty.String())
	case agent.AskScript:
		t.say("May the calls of this script be made? (%s)\n%s\n    %s", q.Reason, q.Message, pretty.String())
	case agent.AskURL:
		t.say("The server %s asks you to open a page. Its text is not verified: %s\n    %s", safetext.Exact(q.Server), q.Message, q.URL)
	case agent.AskSampling:
		t.say("The server %s asks your model for an answer. Its text is not verified.\n    %s", safetext.Exact(q.Server), pretty.String())
	default:
		t.say("The server %s asks for values. Its text is not verified: %s\n    %s", safetext.Exact(q.Server), q.Message, pretty.String())
	}
	t.lines.SetPrompt(t.promptText())
}

// toolOf returns the name of the tool that a question is about.
func toolOf(q agent.Question) string {
	if q.Server == "" {
		return safetext.Exact(q.Tool)
	}
	return safetext.Exact(q.Tool) + " of the server " + safetext.Exact(q.Server)
}

// answer answers the question that is shown.
func (t *agentTerminal) answer(ctx context.Context, line string) {
	word := strings.ToLower(line)
	if !slices.Contains([]string{"y", "yes", "a", "always", "n", "no"}, word) {
		t.say("Answer y, a or n.")
		return
	}
	t.mu.Lock()
	q := t.questions[0]
	t.mu.Unlock()
	reply := agent.Answer{ID: q.ID, Allow: word[0] != 'n', Always: word[0] == 'a'}
	if q.Kind == agent.AskForm && reply.Allow {
		content, err := t.fillForm(q)
		if err != nil {
			reply.Allow = false
		}
		reply.Content = content
	}
	if err := t.session.Answer(ctx, reply); err != nil {
		t.say("%s", err)
	}
	t.mu.Lock()
	if len(t.questions) > 0 {
		t.questions = t.questions[1:]
	}
	var next *agent.Question
	if len(t.questions) > 0 {
		next = &t.questions[0]
	}
	t.mu.Unlock()
	if next != nil {
		t.show(*next)
	}
}

// fillForm asks for each value of a server's form. An empty line leaves a value out.
func (t *agentTerminal) fillForm(q agent.Question) (json.RawMessage, error) {
	var edits []rawjson.Edit
	for m := range rawjson.Members(rawjson.Get(q.Arguments, "requestedSchema", "properties")) {
		name, _ := rawjson.DecodeString(m.Name)
		line, err := t.lines.Ask(safetext.Exact(name) + ": ")
		if err != nil {
			return nil, err
		}
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		value := json.RawMessage(line)
		if kind := rawjson.GetString(m.Value, "type"); kind == "string" || !json.Valid(value) {
			value = rawjson.Quote(line)
		}
		edits = append(edits, rawjson.Put(value, name))
	}
	return rawjson.Apply(json.RawMessage(`{}`), edits...), nil
}

// command runs a slash command. It returns true if the session ends.
func (t *agentTerminal) command(ctx context.Context, line string) (done bool) {
	words := strings.Fields(line)
	name := strings.ToLower(strings.TrimPrefix(words[0], "/"))
	for _, c := range terminalCommands() {
		if slices.Contains(c.names, name) {
			if err := c.run(ctx, t, words[1:]); err != nil {
				if errors.Is(err, errSessionEnds) {
					return true
				}
				t.say("%s", err)
			}
			return false
		}
	}
	t.say("Unknown command: %s", safetext.Exact(words[0]))
	return false
}

// errSessionEnds is the error of the command that ends the session.
var errSessionEnds = errors.New("the session ends")

// runSubcommand runs a command of the command line, with its output at the terminal.
func (t *agentTerminal) runSubcommand(ctx context.Context, args ...string) error {
	var out, stderr bytes.Buffer
	p := t.a.Process
	p.In, p.Out, p.Err = os.Stdin, &out, &stderr
	code := Main(ctx, args, p)
	for _, text := range []string{out.String(), stderr.String()} {
		if text = strings.TrimRight(text, "\n"); text != "" {
			t.say("%s", text)
		}
	}
	if code != exitOK && stderr.Len() == 0 {
		t.say("(exit code %d)", code)
	}
	return nil
}
