package tui

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// An Asker asks the person of a session, and tells them something, from outside of the session: for a command, or for a
// program that watches the servers. Run serves the Asker of its options until it returns. The methods may be called from
// several goroutines.
type Asker struct {
	ready chan struct{} // has an element if messages wait
	ended chan struct{} // closed when Run has returned

	// mu guards the fields below.
	mu      sync.Mutex
	waiting []any // inquiry, withdrawal or told
	closed  bool
}

// NewAsker returns an Asker for the options of Run.
func NewAsker() *Asker {
	return &Asker{ready: make(chan struct{}, 1), ended: make(chan struct{})}
}

// A ReplyKind is the kind of reply that a CommandQuestion asks for.
type ReplyKind int

// The kinds of replies: a line of text, yes or no, and a line of text that is not shown.
const (
	ReplyLine ReplyKind = iota
	ReplyYesNo
	ReplySecret
)

// A CommandQuestion is a question of a command.
type CommandQuestion struct {
	// Command is the command that asks, such as "/mcp add".
	Command string
	// Text is what the person decides about: all that the command printed since its last question.
	Text string
	// Question is the question itself.
	Question string
	Kind     ReplyKind
}

// An inquiry is a question that waits for its reply. A reply without a value means that the person declined.
type inquiry struct {
	CommandQuestion
	reply chan *string
}

// A withdrawal ends an inquiry without a reply.
type withdrawal struct{ *inquiry }

// A told is a text for the person.
type told struct {
	text string
	code bool // the text is output of a command
}

// maxTold is how many messages may wait to be shown.
const maxTold = 1000

// Ask shows a question and returns the reply: the text, or "y" or "n". The error is io.EOF if the person declined to
// reply or the session has ended, and the error of ctx if ctx ended first.
func (a *Asker) Ask(ctx context.Context, q CommandQuestion) (string, error) {
	asked := &inquiry{q, make(chan *string, 1)}
	a.add(asked)
	select {
	case text := <-asked.reply:
		if text == nil {
			return "", io.EOF
		}
		return *text, nil
	case <-a.ended:
		return "", io.EOF
	case <-ctx.Done():
		a.add(withdrawal{asked})
		return "", ctx.Err()
	}
}

// Tell shows a line of text.
func (a *Asker) Tell(text string) { a.add(told{text: text}) }

// TellOutput shows output of a command as it is.
func (a *Asker) TellOutput(text string) { a.add(told{text: text, code: true}) }

func (a *Asker) add(message any) {
	a.mu.Lock()
	if _, isText := message.(told); !a.closed && !(isText && len(a.waiting) >= maxTold) {
		a.waiting = append(a.waiting, message)
	}
	a.mu.Unlock()
	signal(a.ready)
}

// take returns the messages that wait.
func (a *Asker) take() []any {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.waiting
	a.waiting = nil
	return all
}

// close ends all questions.
func (a *Asker) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.closed, a.waiting = true, nil
		close(a.ended)
	}
}

// askCommand is the kind of the question of a command that is answered with yes or no. Another question of a command
// is a form with one field.
const askCommand agent.QuestionKind = "command"

// newInquiryDialog returns the dialog of the question of a command. Nothing is folded: the person asked for it.
func newInquiryDialog(asked *inquiry) *dialog {
	d := &dialog{q: agent.Question{Kind: askCommand}, asked: asked, all: true}
	if asked.Kind != ReplyYesNo {
		d.scroll = len(asked.Text) // to the end: the last lines say what is asked for
		d.form = &form{fields: []*field{{name: "reply", title: "Reply", kind: "string", chosen: map[int]bool{},
			secret: asked.Kind == ReplySecret}}}
	}
	return d
}

// respond passes the answer of a person to the command.
func (q *inquiry) respond(d *dialog, allow bool) {
	text := "n"
	switch {
	case d.form != nil && !allow:
		q.reply <- nil
		return
	case d.form != nil:
		text = strings.TrimSpace(d.form.fields[0].input.value())
	case allow:
		text = "y"
	}
	q.reply <- &text
}

// record returns what stays in the scrollback after a question of a command: what it was about, and the reply.
func (q *inquiry) record(d *dialog, t *transcript, allow bool) (lines []string) {
	if q.Text != "" {
		lines = outputLines(t, q.Text)
	}
	reply := "no"
	switch {
	case d.form != nil && !allow:
		reply = "no reply"
	case q.Kind == ReplySecret:
		reply = "a secret"
	case d.form != nil:
		reply = strings.TrimSpace(d.form.fields[0].input.value())
	case allow:
		reply = "yes"
	}
	return append(lines, t.note(safetext.Line(q.Question+" "+reply), "")...)
}

// toldLines returns the lines of a text for the person.
func toldLines(t *transcript, m told) []string {
	if m.code {
		return outputLines(t, m.text)
	}
	return t.wrap([]span{{clean(m.text), warnStyle}}, t.width)
}

// marked matches what has a style of its own in the output of a command: the words that a definition lost, [-such-], those
// that it got, {+such+}, and addresses.
var marked = lazyregexp.New(`\[-.*?-\]|\{\+.*?\+\}|https?://\S+`)

// outputLines returns output of a command as lines. Long lines are broken between words where possible.
func outputLines(t *transcript, text string) (lines []string) {
	for _, line := range strings.Split(strings.Trim(clean(text), "\n"), "\n") {
		var spans []span
		end := 0
		for _, at := range marked().FindAllStringIndex(line, -1) {
			s := map[byte]style{'[': badStyle, '{': okStyle, 'h': linkStyle}[line[at[0]]]
			spans = append(spans, span{line[end:at[0]], codeStyle}, span{line[at[0]:at[1]], s})
			end = at[1]
		}
		spans = append(spans, span{line[end:], codeStyle})
		lines = append(lines, prefixed(t.wrap(spans, t.width-2), "  ", "  ")...)
	}
	return lines
}
