package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// foldedDialog is how many lines of a question are shown before the person asks for everything.
const foldedDialog = 10

// A dialog is a question that waits for the person.
type dialog struct {
	q agent.Question
	// agent and call name the call that waits.
	agent, call string
	shown       time.Time // when it came to the front; zero before
	listed      time.Time // when it was first listed as one of a batch; zero before
	scroll      int
	all         bool
	form        *form
	asked       *inquiry // the question of a command; nil for the question of a call
}

// A decision is what a key means in a dialog.
type decision int

const (
	undecided decision = iota
	allowOnce
	allowAlways
	allowBatch
	deny
)

// ask adds the question of an event.
func (m *model) ask(e agent.Event) {
	if e.Question == nil {
		return
	}
	m.questions.add(newDialog(e))
	m.hidden = false
}

func newDialog(e agent.Event) *dialog {
	// A plan is shown in full: it is decided on as a whole.
	d := &dialog{q: *e.Question, agent: e.Agent, call: e.Call.ID, all: e.Question.Kind == agent.AskPlan}
	if d.q.Kind == agent.AskForm {
		d.form = newForm(d.q.Arguments)
	}
	return d
}

// shownDialog returns the question that is shown; nil if there is none.
func (m *model) shownDialog() *dialog {
	d := m.questions.first()
	if d == nil || m.hidden {
		return nil
	}
	if d.shown.IsZero() {
		d.shown = m.o.Now()
	}
	return d
}

func (m *model) showQuestions() {
	if m.questions.first() == nil {
		m.print(m.t.note("No question waits.", "")...)
	}
	m.hidden = false
}

// isNew reports whether a dialog is shown for so short a time that a key may have been meant for the input box.
func (m *model) isNew(d *dialog) bool { return m.o.Now().Sub(d.shown) < typeAhead }

// decide handles a key in a dialog. A new one takes only keys that scroll or put it away.
func (m *model) decide(d *dialog, name, text string) {
	if name == "esc" && d.form == nil {
		m.hidden = true
		return
	}
	if m.isNew(d) {
		if d.form == nil {
			d.scrolls(name)
		}
		return
	}
	if d.form != nil {
		if d.asked != nil && name != "e" && d.scrolls(name) {
			return
		}
		switch done, allow := d.form.press(name, text); {
		case done && d.asked != nil:
			m.respond(d, allow)
		case done && allow:
			m.answer(d, agent.Answer{ID: d.q.ID, Allow: true, Content: d.form.content()})
		case done:
			m.answer(d, agent.Answer{ID: d.q.ID})
		}
		return
	}
	decided := d.press(name)
	if d.asked != nil {
		if decided == allowOnce || decided == deny {
			m.respond(d, decided == allowOnce)
		}
		return
	}
	switch decided {
	case allowOnce:
		m.answer(d, agent.Answer{ID: d.q.ID, Allow: true})
	case allowAlways:
		m.answer(d, agent.Answer{ID: d.q.ID, Allow: true, Always: true})
	case deny:
		m.answer(d, agent.Answer{ID: d.q.ID})
	case allowBatch:
		for _, other := range slices.Clone(m.questions) {
			// A call that has just come was not seen.
			seen := other == d || !other.listed.IsZero() && m.o.Now().Sub(other.listed) >= typeAhead
			if other.q.Kind == agent.AskApproval && seen {
				m.answer(other, agent.Answer{ID: other.q.ID, Allow: true})
			}
		}
	}
}

// press returns what a key means.
func (d *dialog) press(name string) decision {
	approval := d.q.Kind == agent.AskApproval || d.q.Kind == agent.AskScript
	switch name {
	case "y", "o":
		return allowOnce
	case "a":
		if approval {
			return allowAlways
		}
	case "b":
		if d.q.Kind == agent.AskApproval {
			return allowBatch
		}
	case "n":
		return deny
	default:
		d.scrolls(name)
	}
	return undecided
}

// scrolls handles a key that only changes what is shown, and reports whether it is one.
func (d *dialog) scrolls(name string) bool {
	switch name {
	case "e":
		d.all, d.scroll = !d.all, 0
	case "up":
		d.scroll--
	case "down":
		d.scroll++
	case "pgup":
		d.scroll -= foldedDialog
	case "pgdown":
		d.scroll += foldedDialog
	default:
		return false
	}
	return true
}

// respond passes the answer to the question of a command on.
func (m *model) respond(d *dialog, allow bool) {
	m.questions.remove(isSame(d))
	m.print(d.asked.record(d, m.t, allow)...)
	d.asked.respond(d, allow)
}

// takeQuestions takes messages of the Asker. A new question shows those that were put away, too.
func (m *model) takeQuestions(messages []any) {
	m.print(m.questions.take(m.t, messages)...)
	m.hidden = m.hidden && !slices.ContainsFunc(messages, func(message any) bool {
		_, isQuestion := message.(*inquiry)
		return isQuestion
	})
}

// answer passes an answer on in the background: a sampling request asks the model first.
func (m *model) answer(d *dialog, a agent.Answer) {
	m.questions.remove(isSame(d))
	m.t.answered(d.agent, d.call)
	session := m.session.Load()
	word := "denied"
	switch {
	case a.Always:
		word = "allowed for this session"
	case a.Allow:
		word = "allowed"
	}
	m.print(m.t.note(word+": "+d.subject(), d.agent)...)
	m.host.background(func(ctx context.Context) tea.Msg { return answeredMsg{session.Answer(ctx, a)} })
}

// subject names what a question is about, on one line.
func (d *dialog) subject() string {
	switch d.q.Kind {
	case agent.AskApproval:
		return safetext.Line(d.q.Tool)
	case agent.AskScript:
		return "the calls of a script"
	case agent.AskURL:
		return "the page that " + safetext.Quote(d.q.Server) + " asks for"
	case agent.AskSampling:
		return "the request of " + safetext.Quote(d.q.Server) + " to the model"
	case agent.AskPlan:
		return "the plan"
	}
	return "the form of " + safetext.Quote(d.q.Server)
}

// title returns the header of a question. It is our own text: a server cannot write it.
func (d *dialog) title() string {
	if d.asked != nil {
		return d.asked.Command + ": " + safetext.Line(d.asked.Question)
	}
	server := safetext.Quote(safetext.Truncate(d.q.Server, 60, safetext.Runes, "…"))
	switch d.q.Kind {
	case agent.AskApproval:
		return "Allow this call?"
	case agent.AskScript:
		return "Allow the calls of this script?"
	case agent.AskURL:
		return "The server " + server + " asks you to open a web page. Its text is not verified."
	case agent.AskSampling:
		return "The server " + server + " asks for an answer of your model. Its text is not verified."
	case agent.AskPlan:
		return "Carry out this plan? A yes ends the plan mode."
	}
	return "The server " + server + " asks for values. Its text is not verified."
}

// body returns what a person decides about.
func (d *dialog) body(t *transcript) (lines []string) {
	text := func(s string, st style) { lines = append(lines, t.wrap([]span{{s, st}}, t.width)...) }
	if d.asked != nil && d.asked.Text != "" {
		return outputLines(t, d.asked.Text)
	}
	if d.agent != "" {
		text("Agent "+d.agent, dimStyle)
	}
	if d.q.Tool != "" && d.q.Kind != agent.AskPlan {
		what := safetext.Exact(d.q.Tool)
		if d.q.Server != "" {
			what += " of the server " + safetext.Quote(d.q.Server)
		}
		text(what, boldStyle)
	}
	if d.q.Reason != "" && d.q.Kind != agent.AskPlan {
		lines = append(lines, reasonLines(t, d.q.Reason)...)
	}
	if d.q.URL != "" {
		text(safetext.Exact(d.q.URL), linkStyle)
	}
	if d.q.Message != "" {
		bar := "│ " // the text of a server must not look like ours
		if t.plain {
			bar = "> "
		}
		for _, line := range strings.Split(clean(d.q.Message), "\n") {
			for _, part := range hardWrap(line, t.width-2) {
				lines = append(lines, t.paint(dimStyle, bar)+part)
			}
		}
	}
	if d.form != nil {
		return lines
	}
	if len(d.q.Arguments) > 0 {
		lines = append(lines, t.code(prettyJSON(d.q.Arguments), "", false, t.width)...)
	}
	if diff := argumentsDiff(d.q.Arguments); diff != "" && d.q.Kind == agent.AskApproval {
		lines = append(lines, t.diffLines(diff, t.width, 0)...)
	}
	return lines
}

// reasonLines returns why a person is asked, with each value that a yes endorses on its own line.
func reasonLines(t *transcript, reason string) (lines []string) {
	for _, line := range flow.ReasonLines(reason) {
		value, isValue := strings.CutPrefix(line, "  ")
		if !isValue {
			lines = append(lines, t.wrap([]span{{safetext.Text(line), dimStyle}}, t.width)...)
			continue
		}
		lines = append(lines, prefixed(t.wrap([]span{{safetext.Line(value), warnStyle}}, t.width-4), "  ", "    ")...)
	}
	return lines
}

// keys returns the line that names the keys.
func (d *dialog) keys(batch int) string {
	if d.asked != nil && d.form != nil {
		return "Enter send · arrows scroll · Esc decline"
	}
	switch d.q.Kind {
	case askCommand:
		return "y yes · n no · arrows scroll · Esc later"
	case agent.AskApproval:
		text := "y once · a for this session · n deny"
		if batch > 1 {
			text += fmt.Sprintf(" · b all %d calls of this batch once", batch)
		}
		return text + " · e everything · Esc later"
	case agent.AskScript:
		return "y once · a for this session · n deny · e everything · Esc later"
	case agent.AskURL:
		return "y after you have opened it · n decline · Esc later"
	case agent.AskSampling:
		return "y let the model answer · n decline · e everything · Esc later"
	case agent.AskPlan:
		return "y carry it out · n keep planning · e fold · Esc later"
	}
	return "Tab next · Enter send · Space choose · Esc decline"
}

// dialogLines returns the lines of a question, and the cursor of a form.
func (m *model) dialogLines(d *dialog, limit int) (lines []string, cursor *tea.Cursor) {
	batch := 0
	for _, other := range m.questions {
		if other.q.Kind == agent.AskApproval {
			batch++
		}
	}
	title := d.title()
	if n := len(m.questions); n > 1 {
		title += fmt.Sprintf(" (1 of %d)", n)
	}
	lines = append(lines, m.rule(""))
	lines = append(lines, m.t.wrap([]span{{title, warnStyle}}, m.t.width)...)
	keys := m.t.wrap([]span{{d.keys(batch), dimStyle}}, m.t.width)
	room := max(limit-len(lines)-len(keys), 1)
	var fields []string
	if d.form != nil {
		fields, cursor = d.form.lines(m.t, max(room-3, 1))
		room = max(room-len(fields), 1)
	}
	body := d.body(m.t)
	if batch > 1 && d.q.Kind == agent.AskApproval {
		for _, other := range m.questions[1:] {
			if other.q.Kind != agent.AskApproval {
				continue
			}
			if other.listed.IsZero() {
				other.listed = m.o.Now()
			}
			body = append(body, cut("also: "+other.q.Tool+" "+string(other.q.Arguments), m.t.width))
			if d.all {
				narrow := *m.t
				narrow.width -= 2
				body = append(body, prefixed(other.body(&narrow), "  ", "  ")...)
			}
		}
	}
	body = d.window(m.t, body, room)
	if cursor != nil {
		cursor.Y += len(lines) + len(body)
	}
	lines = append(append(append(lines, body...), fields...), keys...)
	return lines, cursor
}

// window returns the part of the lines that is shown.
func (d *dialog) window(t *transcript, lines []string, room int) []string {
	if !d.all {
		room = min(room, foldedDialog)
	}
	if len(lines) <= room {
		d.scroll = 0
		return lines
	}
	room = max(room-1, 1)
	d.scroll = min(max(d.scroll, 0), len(lines)-room)
	shown := append([]string(nil), lines[d.scroll:d.scroll+room]...)
	return append(shown, t.paint(warnStyle, cut(fmt.Sprintf("lines %d to %d of %d; arrows scroll", d.scroll+1,
		d.scroll+room, len(lines)), t.width)))
}

// rawObject returns the members of a JSON object; nil if it is none.
func rawObject(raw json.RawMessage) (members map[string]json.RawMessage) {
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}
