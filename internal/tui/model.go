package tui

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

const (
	defaultWidth  = 80
	defaultHeight = 24
	// typeAhead is how long a new question takes no decision: a key may have been meant for the input box.
	typeAhead = 400 * time.Millisecond
)

// A model is the state of the screen. Only the program's loop uses it.
type model struct {
	o        Options
	host     *screen
	session  *atomic.Pointer[agent.Session]
	state    agent.Snapshot
	commands []Command
	more     []Command // of Options.MoreCommands, as they were last
	asking   bool      // for more

	width, height int
	t             *transcript
	input         editor
	history       *promptHistory
	chooser       *chooser
	palette       bool
	pane          bool
	hint          string
	interrupted   bool // the last key was Ctrl-C

	questions questions
	hidden    bool // the person has put the questions away

	// cancel ends the run; nil if there is none. began is the start of the run.
	cancel  context.CancelFunc
	working runningCommands
	running bool
	began   time.Time
	awaited string // servers for which the run waits; empty if it does not
	ended   bool   // the event of the run's end was shown
	held    int    // messages that were in the queue when the run was cancelled; math.MaxInt if it was not
	stalled bool   // events wait until lines are printed

	frame tea.View
	dirty bool
}

func newModel(o Options, host *screen) *model {
	m := &model{o: o, host: host, session: o.Shown, dirty: true}
	m.state = o.Session.Snapshot()
	p := painter{colour: !o.Terminal.NoColour}
	m.t = newTranscript(newMarkdown(p, false), defaultWidth, o.Now)
	m.t.graphics = graphicsOf(o.Terminal.Env)
	m.commands = allCommands(o, m.session, m.push)
	m.resize(defaultWidth, defaultHeight)
	if o.Terminal.Width > 0 && o.Terminal.Height > 0 {
		m.resize(o.Terminal.Width, o.Terminal.Height)
	}
	return m
}

// resize takes the size of the terminal. Lines are one column narrower: a full line makes some terminals wrap.
func (m *model) resize(width, height int) {
	m.width, m.height = width, height
	m.t.width = max(width-1, 10)
	m.host.lines.chunk.Store(int64(max(1, height-m.maxFrame())))
	m.t.pictureRows = max(0, height-m.maxFrame())
}

// maxFrame is how many lines the frame may have. The lines above it are room to print finished lines.
func (m *model) maxFrame() int { return max(5, m.height-m.height/3) }

// The messages of background work.
type (
	promptMsg struct {
		parts []drawbridge.MessagePart
		err   error
	}
	commandMsg struct {
		number int // in runningCommands
		name   string
		out    Output
		err    error
	}
	moreMsg     struct{ commands []Command }
	answeredMsg struct{ err error }
	changedMsg  struct {
		state agent.Snapshot
		err   error
	}
	choicesMsg struct {
		text    string // what the input box had
		choices []choice
	}
)

// Init reads the input history and sends the first prompt.
func (m *model) Init() tea.Cmd {
	history, err := readHistory(m.o.HistoryFile)
	m.history = history
	m.print(m.welcome()...)
	if err != nil {
		m.print(m.t.note(err.Error(), "")...)
	}
	if m.o.First != "" {
		m.submit(m.o.First)
	}
	return nil
}

// welcome returns the first lines.
func (m *model) welcome() []string {
	lines := []string{m.t.paint(headingStyle, "Drawbridge") + " " + m.t.paint(dimStyle, cut(m.state.Model, m.t.width-12))}
	return append(lines, m.t.note("Enter sends. /help lists the commands, /keys the keys.", "")...)
}

// print puts finished lines above the frame.
func (m *model) print(lines ...string) {
	if len(lines) == 0 {
		return
	}
	m.stalled = m.host.lines.add(lines, false) > maxWaiting
}

// push passes an event of the session to the screen. It is called from the goroutines of the session.
func (m *model) push(e agent.Event) {
	shown := shownEvent{Event: e, pictures: m.t.graphics.pictures(e.Result)}
	switch e.Kind {
	case agent.TextDelta, agent.ThinkingDelta, agent.ToolProgress:
	default:
		state := m.session.Load().Snapshot()
		shown.state = &state
	}
	m.host.events.push(shown)
}

// start runs parts, or continues the conversation without parts.
func (m *model) start(parts []drawbridge.MessagePart) {
	ctx, cancel := context.WithCancel(m.host.ctx)
	session := m.session.Load()
	m.cancel, m.running, m.ended, m.held, m.began = cancel, true, false, math.MaxInt, m.o.Now()
	m.host.background(func(context.Context) tea.Msg {
		defer cancel()
		_, err := session.Run(ctx, parts, m.push)
		m.host.events.push(shownEvent{end: true, err: err})
		return nil
	})
}

// takeEvents shows events that wait, for a quarter of a frame's time, unless too many lines wait to be printed.
func (m *model) takeEvents() {
	for began := time.Now(); !m.stalled; {
		e, ok := m.host.events.next()
		if !ok {
			return
		}
		if e.end {
			m.runEnded(e.err)
			continue
		}
		if e.state != nil {
			m.state = *e.state
		}
		m.awaited = ""
		switch e.Kind {
		case agent.ServersAwaited:
			m.awaited = e.Text
		case agent.ToolAsked:
			m.ask(e.Event)
		case agent.ToolFinished:
			m.questions.remove(isOf(e.Agent, e.Call.ID))
		case agent.RunFinished:
			m.ended = m.ended || e.Agent == ""
		}
		m.print(m.t.handle(e)...)
		if time.Since(began) > frameTime/4 {
			signal(m.host.events.ready)
			return
		}
	}
}

// runEnded takes the end of a run. Messages that were queued too late for it, or after it was cancelled, begin the next
// one.
func (m *model) runEnded(err error) {
	m.running, m.cancel, m.awaited = false, nil, ""
	m.questions.remove(isOfRun)
	if err != nil && !m.ended {
		m.print(m.t.wrap([]span{{clean(err.Error()), warnStyle}}, m.t.width)...)
	}
	m.state = m.session.Load().Snapshot()
	if err == nil && m.state.Queued > 0 || m.state.Queued > m.held {
		m.start(nil)
	}
}

// change makes a change of the session in the background: it writes the history.
func (m *model) change(f func(ctx context.Context, s *agent.Session) error) {
	session := m.session.Load()
	m.host.background(func(ctx context.Context) tea.Msg {
		err := f(ctx, session)
		return changedMsg{session.Snapshot(), err}
	})
}
