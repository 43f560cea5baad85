package tui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/muesli/cancelreader"
)

// maxPlainLine is the longest line that is read.
const maxPlainLine = 1 << 20

// A plainUI shows a session as lines: nothing is drawn again, and there are no boxes and no colours.
type plainUI struct {
	o        Options
	ctx      context.Context
	session  *atomic.Pointer[agent.Session]
	commands []Command
	history  *promptHistory
	t        *transcript
	out      *bufio.Writer

	tasks   sync.WaitGroup
	events  *eventQueue
	results chan any // messages of background work, as those of model

	running     int // runs and commands that have not ended
	inRun       bool
	cancel      context.CancelFunc // ends the run; nil if there is none
	working     runningCommands
	interrupted bool
	ended       bool // the event of the run's end was shown
	held        int  // messages that were in the queue when the run was cancelled; math.MaxInt if it was not
	closed      bool // the input has ended
	quit        bool
	questions   questions
	label       string // the printed label of the run, see labelText
}

// runEnded is the end of a run.
type runEnded struct{ err error }

// runPlain is Run with plain output.
func runPlain(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	u := &plainUI{o: o, ctx: ctx, session: o.Shown, out: bufio.NewWriter(o.Terminal.Out),
		events: newEventQueue(), results: make(chan any)}
	width := o.Terminal.Width
	if width <= 0 {
		width = defaultWidth
	}
	u.t = newTranscript(newMarkdown(painter{}, true), width, o.Now)
	u.commands = allCommands(o, u.session, u.push)
	input, err := cancelreader.NewReader(o.Terminal.In)
	if err != nil {
		return fmt.Errorf("read the input: %w", err)
	}
	defer func() {
		cancel()
		u.events.close()
		input.Cancel()
		u.tasks.Wait()
		_ = input.Close() // it was only read
	}()
	lines := make(chan string)
	u.tasks.Go(func() { readLines(ctx, input, lines) })
	if u.history, err = readHistory(o.HistoryFile); err != nil {
		u.print(u.t.note(err.Error(), "")...)
	}
	u.print("Drawbridge. Model: "+safetext.Line(o.Session.Snapshot().Model)+".", "/help lists the commands.")
	u.showLabel(o.Session.Snapshot().Label)
	if o.First != "" {
		u.submit(o.First)
	}
	return u.loop(lines)
}

// readLines sends the lines of the input, and closes the channel at its end.
func readLines(ctx context.Context, in io.Reader, lines chan<- string) {
	defer close(lines)
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxPlainLine)
	for scanner.Scan() {
		select {
		case lines <- scanner.Text():
		case <-ctx.Done():
			return
		}
	}
}

func (u *plainUI) loop(lines <-chan string) error {
	for !u.quit && (!u.closed || u.running > 0) {
		u.showNewQuestion()
		if err := u.out.Flush(); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
		select {
		case <-u.ctx.Done():
			return context.Cause(u.ctx)
		case <-u.o.Terminal.Interrupts:
			u.interrupt()
		case <-u.o.Asker.ready:
			u.print(u.questions.take(u.t, u.o.Asker.take())...)
		case <-u.events.ready:
			u.takeEvents()
		case msg := <-u.results:
			u.take(msg)
		case line, ok := <-lines:
			if !ok {
				u.closed, lines = true, nil
				continue
			}
			u.interrupted = false
			u.enter(line)
		}
	}
	return u.out.Flush()
}

// print writes lines. They are safe already.
func (u *plainUI) print(lines ...string) {
	for _, line := range lines {
		_, _ = u.out.WriteString(line + "\n") // Flush returns the error
	}
}

func (u *plainUI) failure(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		u.print("Error: " + safetext.Text(err.Error()))
	}
}

func (u *plainUI) push(e agent.Event) { u.events.push(shownEvent{Event: e}) }

// background runs f in a goroutine, and the loop takes its result.
func (u *plainUI) background(f func() any) {
	u.running++
	u.tasks.Go(func() {
		msg := f()
		select {
		case u.results <- msg:
		case <-u.ctx.Done():
		}
	})
}

// interrupt handles Ctrl-C: once it cancels the run or the commands, twice it ends the program.
func (u *plainUI) interrupt() {
	text := "Cancelled. Ctrl-C again ends the program."
	switch {
	case u.interrupted:
		u.quit = true
		return
	case u.cancel != nil:
		u.held = u.session.Load().Snapshot().Queued
		u.cancel()
	case u.working.any():
		u.working.cancel()
	default:
		text = "Ctrl-C again ends the program."
	}
	u.interrupted = true
	u.print(text)
}

// enter takes a line: an answer to the question that waits, a command or a prompt.
func (u *plainUI) enter(line string) {
	if d := u.questions.first(); d != nil && !isCommand(line) {
		u.decide(d, strings.TrimSpace(line))
		return
	}
	if line = strings.TrimSpace(line); line != "" {
		u.submit(line)
	} else if u.session.Load().SkipWait() {
		u.print("Starting without them.")
	}
}

// isCommand reports whether a line is a command although a question waits. A path such as /bin/sh may be an answer.
func isCommand(line string) bool {
	_, _, ok := parseCommand(strings.TrimSpace(line))
	return ok
}

func (u *plainUI) submit(text string) {
	u.failure(u.history.add(withoutSecrets(u.commands, text)))
	name, args, ok := parseCommand(text)
	if !ok {
		u.background(func() any {
			parts, err := u.o.Prompt(u.ctx, text)
			return promptMsg{parts, err}
		})
		return
	}
	c, found := findCommand(u.commands, name)
	ctx, number := u.working.add(u.ctx)
	u.background(func() any {
		if !found {
			var err error
			if c, err = findMore(ctx, u.o, name); err != nil {
				return commandMsg{number, name, Output{}, err}
			}
		}
		out, err := c.Run(ctx, args)
		return commandMsg{number, c.Name, out, err}
	})
}

// take takes the result of background work.
func (u *plainUI) take(msg any) {
	u.running--
	u.takeEvents()
	switch msg := msg.(type) {
	case promptMsg:
		u.failure(msg.err)
		if msg.err == nil {
			u.send(msg.parts)
		}
	case runEnded:
		u.inRun, u.cancel = false, nil
		u.questions.remove(isOfRun)
		if !u.ended {
			u.failure(msg.err)
		}
		if queued := u.session.Load().Snapshot().Queued; msg.err == nil && queued > 0 || queued > u.held {
			u.start(nil)
			return
		}
		u.print("Ready.")
	case answeredMsg:
		u.failure(msg.err)
	case commandMsg:
		u.commandDone(msg)
	}
}

func (u *plainUI) send(parts []drawbridge.MessagePart) {
	if u.inRun {
		u.session.Load().Queue(parts)
		u.print("Queued.")
		return
	}
	u.start(parts)
}

func (u *plainUI) start(parts []drawbridge.MessagePart) {
	ctx, cancel := context.WithCancel(u.ctx)
	session := u.session.Load()
	u.cancel, u.inRun, u.ended, u.held = cancel, true, false, math.MaxInt
	u.background(func() any {
		defer cancel()
		_, err := session.Run(ctx, parts, u.push)
		return runEnded{err}
	})
}

func (u *plainUI) commandDone(msg commandMsg) {
	out := msg.out
	u.working.remove(msg.number)
	u.failure(msg.err)
	if left := out.Session; left != nil {
		refused := u.inRun
		if !refused {
			left = u.session.Swap(out.Session)
		}
		if out.Left != nil {
			u.background(func() any {
				out.Left(left)
				return nil
			})
		}
		if refused {
			u.failure(errors.New("/" + msg.name + ": a run has not ended yet"))
			return
		}
		u.t.todo, u.t.plan, u.t.last = nil, "", nil
	}
	if out.Copy != "" {
		out.Text = "The clipboard is not available with plain output."
	}
	if out.Text != "" {
		u.print(u.t.render(out.Text, u.t.width)...)
	}
	if out.Pane {
		u.print(u.t.pane(1 << 20)...)
	}
	if out.Questions {
		u.showQuestion()
	}
	if out.Prompt != nil {
		u.send(out.Prompt)
	}
	u.quit = u.quit || out.Quit
}

// takeEvents prints the events that wait. A call is also printed when it begins.
func (u *plainUI) takeEvents() {
	for _, e := range u.events.take() {
		switch e.Kind {
		case agent.ToolAsked:
			if e.Question != nil {
				u.questions.add(newDialog(e.Event))
			}
		case agent.ToolFinished:
			u.questions.remove(isOf(e.Agent, e.Call.ID))
		case agent.RunFinished:
			u.ended = u.ended || e.Agent == ""
		}
		u.print(u.t.handle(e)...)
		if e.Kind == agent.ToolFinished && e.Details != nil {
			u.showLabel(e.Details.Label)
		}
		if e.Kind == agent.ServersAwaited {
			u.print("Waiting for " + safetext.Line(e.Text) + ". Enter starts without them.")
		}
		if e.Kind == agent.ToolStarted {
			u.print(u.t.callLine(u.t.find(e.Event), "running", 0))
		}
		if e.Kind == agent.ToolProgress {
			u.print("  " + cut(progressText(*e.Progress, true), u.t.width))
		}
	}
}

// showLabel prints the label of the run, unless it was printed.
func (u *plainUI) showLabel(l *agent.RunLabel) {
	if l == nil {
		return
	}
	first := *l
	first.More = 0
	if text := labelText(&first); text != "" && text != u.label {
		u.label = text
		u.print("The run is " + text)
	}
}

// showNewQuestion prints the question that waits unless it was printed. The loop calls it before it waits for a line, so
// that no line answers a question that was not printed.
func (u *plainUI) showNewQuestion() {
	if d := u.questions.first(); d != nil && d.shown.IsZero() {
		u.showQuestion()
	}
}

// showQuestion prints the question that waits, with everything that the person decides about.
func (u *plainUI) showQuestion() {
	d := u.questions.first()
	if d == nil {
		u.print("No question waits.")
		return
	}
	d.shown = u.o.Now()
	u.print("", "Question: "+d.title())
	u.print(d.body(u.t)...)
	if d.form != nil {
		u.showField(d.form)
		return
	}
	answers := "Type y for once, a for this session, n to deny."
	switch d.q.Kind {
	case agent.AskPlan:
		answers = "Type y to carry it out, n to keep planning."
	case agent.AskURL, agent.AskSampling, askCommand:
		answers = "Type y to agree, n to decline."
	case agent.AskApproval:
		if n := len(u.questions); n > 1 {
			answers += fmt.Sprintf(" %d more questions wait.", n-1)
		}
	}
	u.print(answers)
}

// decide takes a line as the answer to a question.
func (u *plainUI) decide(d *dialog, line string) {
	answer := agent.Answer{ID: d.q.ID}
	if d.form != nil {
		done, allow := u.fill(d.form, line)
		if !done {
			return
		}
		if answer.Allow = allow; allow {
			answer.Content = d.form.content()
		}
	} else {
		switch d.press(strings.ToLower(line)) {
		case allowOnce:
			answer.Allow = true
		case allowAlways:
			answer.Allow, answer.Always = true, true
		case deny:
		default:
			u.showQuestion()
			return
		}
	}
	u.questions.remove(isSame(d))
	if d.asked != nil {
		d.asked.respond(d, answer.Allow)
		return
	}
	session := u.session.Load()
	u.background(func() any { return answeredMsg{session.Answer(u.ctx, answer)} })
}

// showField prints what the current field of a form asks for.
func (u *plainUI) showField(f *form) {
	if f.at >= len(f.fields) {
		u.print("Type y to agree, or ! to decline.")
		return
	}
	x := f.fields[f.at]
	text := safetext.Line(x.title)
	if x.note != "" {
		text += " (" + safetext.Line(x.note) + ")"
	}
	if x.required {
		text += ", required"
	}
	switch {
	case x.kind == "boolean":
		text += ": type y or n"
	case len(x.choices) > 0:
		text += ": type the number"
		if x.kind == "array" {
			text += "s, with spaces between them"
		}
		for i, c := range x.choices {
			text += fmt.Sprintf("\n  %d. %s", i+1, safetext.Line(c.label))
		}
	}
	u.print(text, "Type ! to decline.")
}

// fill takes a line as the value of the current field. done reports that the form was completed or declined.
func (u *plainUI) fill(f *form, line string) (done, allow bool) {
	if line == "!" {
		return true, false
	}
	if f.at < len(f.fields) {
		x := f.fields[f.at]
		x.take(line)
		if fault := x.check(); fault != "" {
			u.print("Error: " + fault)
			u.showField(f)
			return false, false
		}
		if f.at++; f.at < len(f.fields) {
			u.showField(f)
			return false, false
		}
		return true, true
	}
	return strings.EqualFold(line, "y"), true
}

// take sets the value from a line.
func (x *field) take(line string) {
	switch {
	case x.kind == "boolean":
		x.yes = strings.HasPrefix(strings.ToLower(line), "y")
	case len(x.choices) > 0:
		clear(x.chosen)
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' }) {
			var n int
			if _, err := fmt.Sscan(word, &n); err == nil && n >= 1 && n <= len(x.choices) {
				x.chosen[n-1] = true
				if x.kind != "array" {
					break
				}
			}
		}
	case line != "":
		x.input.set(line)
	}
}
