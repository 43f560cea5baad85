package tui

import (
	"context"
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

// Update takes a message of the terminal or of background work.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	changed := true
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.host.raise.Add(m.brokenLines(msg.Width))
		m.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		m.press(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case eventsMsg:
		m.takeEvents()
	case drainedMsg:
		changed = m.stalled
		if m.stalled {
			m.stalled = false
			m.takeEvents()
		}
	case tickMsg:
		changed = m.running
	case promptMsg:
		m.send(msg)
	case commandMsg:
		cmd = m.commandDone(msg)
	case askerMsg:
		m.takeQuestions(msg.all)
	case answeredMsg:
		m.failure(msg.err)
	case changedMsg:
		m.state = msg.state
		m.failure(msg.err)
	case moreMsg:
		m.takeMore(msg.commands)
	case choicesMsg:
		if msg.text == string(m.input.text) && len(msg.choices) > 0 {
			m.chooser = &chooser{choices: msg.choices}
		}
	default:
		changed = false
	}
	m.dirty = m.dirty || changed
	return m, cmd
}

// failure shows an error.
func (m *model) failure(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		m.print(m.t.wrap([]span{{clean(err.Error()), badStyle}}, m.t.width)...)
	}
}

// press handles a key.
func (m *model) press(key tea.KeyPressMsg) {
	name := key.Keystroke()
	if name == "ctrl+c" {
		m.interrupt()
		return
	}
	m.interrupted, m.hint = false, ""
	if d := m.shownDialog(); d != nil {
		m.decide(d, name, key.Text)
		return
	}
	if m.pressChooser(name) || m.pressGlobal(name) {
		return
	}
	switch name {
	case "enter":
		m.enter()
	case "alt+enter", "shift+enter", "ctrl+j":
		m.input.insert("\n")
	case "up", "down":
		m.moveOrRecall(name)
	case "tab":
		m.completeInput()
		return
	case "esc":
		m.escape()
	default:
		if !m.input.press(name) && key.Text != "" {
			m.input.insert(key.Text)
		}
		m.suggest()
	}
}

// pressGlobal handles the keys that work whatever the input box has.
func (m *model) pressGlobal(name string) bool {
	switch name {
	case "ctrl+d":
		if len(m.input.text) > 0 {
			m.input.press("delete")
			return true
		}
		m.quit()
	case "ctrl+p":
		m.openPalette()
	case "shift+tab":
		m.nextMode()
	case "ctrl+t":
		m.pane = !m.pane
	case "ctrl+o":
		m.print(m.t.unfold()...)
	case "ctrl+l":
		m.chooser, m.palette = nil, false
	default:
		return false
	}
	return true
}

// interrupt handles Ctrl-C: once it cancels the run or the commands, twice it ends the program.
func (m *model) interrupt() {
	switch {
	case m.interrupted:
		m.quit()
	case m.cancelWork():
		m.hint = "Cancelled. Ctrl-C again ends the program."
	default:
		m.input.set("")
		m.chooser, m.palette = nil, false
		m.hint = "Ctrl-C again ends the program."
	}
	m.interrupted = true
}

// escape closes what is open, ends the wait for servers, or cancels the run or the commands.
func (m *model) escape() {
	switch {
	case m.pane:
		m.pane = false
	case m.awaited != "" && m.session.Load().SkipWait():
		m.awaited = ""
	case m.cancelWork():
		m.hint = "Cancelled."
	}
}

// cancelWork cancels the run, or the commands if no run goes on. It returns false if there is nothing to cancel. Messages
// that wait for a cancelled run stay in the queue; one that is sent later is answered after the end of the run.
func (m *model) cancelWork() bool {
	if m.cancel == nil {
		m.working.cancel()
		return m.working.any()
	}
	m.held = m.session.Load().Snapshot().Queued
	m.cancel()
	return true
}

// quit ends the program after the last line is printed.
func (m *model) quit() {
	if m.cancel != nil {
		m.cancel()
	}
	m.working.cancel()
	m.host.lines.add(nil, true)
}

func (m *model) paste(text string) {
	if d := m.shownDialog(); d != nil {
		if d.form != nil && !m.isNew(d) {
			d.form.insert(text)
		}
		return
	}
	m.input.paste(text)
}

// nextMode changes the permission mode to the next one.
func (m *model) nextMode() {
	next := map[agent.PermissionMode]agent.PermissionMode{
		agent.AskFirst: agent.AcceptEdits, agent.AcceptEdits: agent.PlanOnly,
	}[m.state.Mode]
	if next == "" {
		next = agent.AskFirst
	}
	m.state.Mode = next // so that a second key at once counts from here
	m.change(func(ctx context.Context, s *agent.Session) error { return s.SetMode(ctx, next) })
}

// moveOrRecall moves the cursor between lines, or shows another prompt of the history.
func (m *model) moveOrRecall(name string) {
	by := 1
	if name == "up" {
		by = -1
	}
	if m.input.moveLine(by) {
		return
	}
	if text, ok := m.history.step(by, m.input.value()); ok {
		m.input.set(text)
	}
}

// enter sends the input.
func (m *model) enter() {
	text := strings.TrimSpace(m.input.value())
	if text == "" {
		return
	}
	m.input.set("")
	m.chooser = nil
	m.submit(text)
}

// submit carries out a command, or makes the message of a prompt.
func (m *model) submit(text string) {
	shown := withoutSecrets(m.commands, text)
	m.failure(m.history.add(shown))
	m.print(m.promptLines(shown)...)
	if name, args, ok := parseCommand(text); ok {
		m.runCommand(name, args)
		return
	}
	m.host.background(func(ctx context.Context) tea.Msg {
		parts, err := m.o.Prompt(ctx, text)
		return promptMsg{parts, err}
	})
}

// send runs a message, or queues it while a run is going.
func (m *model) send(msg promptMsg) {
	switch {
	case msg.err != nil:
		m.failure(msg.err)
	case m.running:
		session := m.session.Load()
		session.Queue(msg.parts)
		m.state.Queued++
	default:
		m.start(msg.parts)
	}
}

// promptLines returns a prompt as it stays in the scrollback.
func (m *model) promptLines(text string) []string {
	const shown = 20
	lines := m.t.wrap([]span{{clean(text), boldStyle}}, m.t.width-2)
	if len(lines) > shown {
		lines = append(lines[:shown], m.t.paint(dimStyle, "…"))
	}
	if m.running {
		lines[len(lines)-1] += m.t.paint(dimStyle, " (queued)")
	}
	return append([]string{""}, prefixed(lines, m.t.paint(promptStyle, "> "), "  ")...)
}

// runCommand carries a command out in the background.
func (m *model) runCommand(name, args string) {
	c, ok := findCommand(m.commands, name)
	m.inBackground(name, func(ctx context.Context) (Output, error) {
		if !ok {
			var err error
			if c, err = findMore(ctx, m.o, name); err != nil {
				return Output{}, err
			}
		}
		return c.Run(ctx, args)
	})
}

// inBackground runs a command. Ctrl-C cancels it, unless a run goes on.
func (m *model) inBackground(name string, run func(ctx context.Context) (Output, error)) {
	ctx, number := m.working.add(m.host.ctx)
	m.host.background(func(context.Context) tea.Msg {
		out, err := run(ctx)
		return commandMsg{number, name, out, err}
	})
}

// takeSession shows the session of an output, unless a run goes on.
func (m *model) takeSession(out Output) bool {
	left, shown := out.Session, !m.running
	if shown {
		left = m.session.Swap(out.Session)
		m.t.todo, m.t.plan, m.t.last = nil, "", nil
	}
	if out.Left != nil {
		m.host.background(func(context.Context) tea.Msg {
			out.Left(left)
			return nil
		})
	}
	return shown
}

// commandDone shows the output of a command.
func (m *model) commandDone(msg commandMsg) (cmd tea.Cmd) {
	m.takeEvents()
	m.working.remove(msg.number)
	m.failure(msg.err)
	out := msg.out
	if out.Session != nil && !m.takeSession(out) {
		m.failure(errors.New("/" + msg.name + ": a run has not ended yet"))
		return nil
	}
	if out.Text != "" {
		m.print(m.t.render(out.Text, m.t.width)...)
	}
	if out.Copy != "" {
		cmd = tea.SetClipboard(out.Copy)
	}
	if out.Pane {
		m.pane = !m.pane
	}
	if out.Questions {
		m.showQuestions()
	}
	if out.Prompt != nil {
		m.send(promptMsg{parts: out.Prompt})
	}
	if out.Quit {
		m.quit()
	}
	m.state = m.session.Load().Snapshot()
	return cmd
}
