package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

const (
	// frameTime is the shortest time between two frames that show new events.
	frameTime = 16 * time.Millisecond
	// maxWaiting is how many events and how many lines may wait to be shown. A session with more waits.
	maxWaiting = 1024
)

// Run shows a session until the person ends it or ctx ends. It returns after the session's run has ended. The error is
// nil if the person ended it.
func Run(ctx context.Context, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	defer o.Asker.close()
	if o.Terminal.Plain {
		return runPlain(ctx, o)
	}
	return newScreen(ctx, o).run()
}

// A screen is the program of one Run. It owns the goroutines, and waits for them.
type screen struct {
	parent context.Context
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	tea    *tea.Program
	model  *model
	events *eventQueue
	lines  *printer
	drawn  chan struct{} // closed when the first frame was drawn
	raise  atomic.Int64  // how many lines the next output begins above the cursor
}

// newScreen prepares a program. Its run method must be called.
func newScreen(ctx context.Context, o Options) *screen {
	s := &screen{parent: ctx, events: newEventQueue(), lines: newPrinter(), drawn: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.model = newModel(o, s)
	profile := colorprofile.ANSI256
	if o.Terminal.NoColour {
		profile = colorprofile.ASCII
	}
	options := []tea.ProgramOption{tea.WithContext(s.ctx), tea.WithInput(o.Terminal.In), tea.WithOutput(watchOutput(o.Terminal.Out, s)),
		tea.WithEnvironment(o.Terminal.Env), tea.WithColorProfile(profile), tea.WithoutSignalHandler()}
	if o.Terminal.Width > 0 && o.Terminal.Height > 0 {
		options = append(options, tea.WithWindowSize(o.Terminal.Width, o.Terminal.Height))
	}
	s.tea = tea.NewProgram(s.model, options...)
	return s
}

// run runs the program until it ends.
func (s *screen) run() error {
	for _, loop := range []func(){s.wakeForEvents, s.passOnQuestions, s.print, s.tick} {
		s.tasks.Go(loop)
	}
	_, err := s.tea.Run()
	s.cancel()
	s.events.close()
	s.tasks.Wait()
	if errors.Is(err, tea.ErrProgramKilled) && s.parent.Err() != nil {
		return context.Cause(s.parent)
	}
	return err
}

// background runs f in a goroutine and sends its message to the model.
func (s *screen) background(f func(ctx context.Context) tea.Msg) {
	s.tasks.Go(func() {
		if msg := f(s.ctx); msg != nil {
			s.tea.Send(msg)
		}
	})
}

// The messages of the loops.
type (
	eventsMsg  struct{}            // events wait
	drainedMsg struct{}            // no lines wait
	tickMsg    struct{ time.Time } // time has passed
	askerMsg   struct{ all []any } // messages of the Asker
)

// wakeForEvents tells the model of new events, at most once a frame.
func (s *screen) wakeForEvents() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.events.ready:
		}
		s.tea.Send(eventsMsg{})
		s.wait(frameTime)
	}
}

// passOnQuestions passes the messages of the Asker to the model.
func (s *screen) passOnQuestions() {
	select { // the size of the terminal is not known before
	case <-s.ctx.Done():
		return
	case <-s.drawn:
	}
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.model.o.Asker.ready:
		}
		s.tea.Send(askerMsg{s.model.o.Asker.take()})
	}
}

// tick sends the time twice a second, for the times of calls that run.
func (s *screen) tick() {
	ticker := time.NewTicker(time.Second / 2)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-ticker.C:
			s.tea.Send(tickMsg{now})
		}
	}
}

func (s *screen) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
	case <-timer.C:
	}
}

// print prints finished lines above the frame, in order. It prints few lines at once: together with the frame they must
// fit on the screen, or parts of the frame would stay in the scrollback.
func (s *screen) print() {
	select { // before the first frame, the renderer does not know where the frame is
	case <-s.ctx.Done():
		return
	case <-s.drawn:
	}
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.lines.ready:
		}
		for {
			chunk, quit := s.lines.take()
			if chunk == nil {
				if quit {
					s.tea.Quit()
					return
				}
				break
			}
			s.tea.Send(tea.Println(strings.Join(chunk, "\n"))())
		}
		s.tea.Send(drainedMsg{})
	}
}

// A watchedOutput closes drawn when the first frame is written. Each frame has a rule. It also moves the cursor up before
// the first output after the terminal became narrower.
type watchedOutput struct {
	io.Writer
	host *screen
	once sync.Once
}

// A watchedFile is the watchedOutput of a file: the renderer asks a file for the size of its terminal.
type watchedFile struct {
	*os.File
	watched *watchedOutput
}

func watchOutput(out io.Writer, host *screen) io.Writer {
	w := &watchedOutput{Writer: out, host: host}
	if file, ok := out.(*os.File); ok {
		return &watchedFile{file, w}
	}
	return w
}

// Write writes p.
func (w *watchedOutput) Write(p []byte) (int, error) {
	if up := w.host.raise.Swap(0); up > 0 {
		if _, err := io.WriteString(w.Writer, ansi.CursorUp(int(up))); err != nil {
			return 0, err
		}
	}
	n, err := w.Writer.Write(p)
	if bytes.Contains(p, []byte("─")) {
		w.once.Do(func() { close(w.host.drawn) })
	}
	return n, err
}

// Write writes p.
func (f *watchedFile) Write(p []byte) (int, error) { return f.watched.Write(p) }

// WriteString writes s.
func (f *watchedFile) WriteString(s string) (int, error) { return f.watched.Write([]byte(s)) }

// An eventQueue passes the events of a session to the model. push waits while too many events wait.
type eventQueue struct {
	ready chan struct{} // has an element if events wait

	// mu guards the fields below.
	mu      sync.Mutex
	space   *sync.Cond
	waiting []shownEvent
	closed  bool
}

// A shownEvent is an event with the pictures of its result, and with the state of the session after it, if that may have
// changed; or the end of a run.
type shownEvent struct {
	agent.Event
	pictures []picture
	state    *agent.Snapshot
	end      bool
	err      error
}

func newEventQueue() *eventQueue {
	q := &eventQueue{ready: make(chan struct{}, 1)}
	q.space = sync.NewCond(&q.mu)
	return q
}

// push adds an event. Pieces of one text are joined.
func (q *eventQueue) push(e shownEvent) {
	const joined = 1 << 10
	q.mu.Lock()
	for len(q.waiting) >= maxWaiting && !q.closed {
		q.space.Wait()
	}
	if n := len(q.waiting); n > 0 && (e.Kind == agent.TextDelta || e.Kind == agent.ThinkingDelta) &&
		q.waiting[n-1].Kind == e.Kind && q.waiting[n-1].Agent == e.Agent && len(q.waiting[n-1].Text) < joined {
		q.waiting[n-1].Text += e.Text
	} else if !q.closed {
		q.waiting = append(q.waiting, e)
	}
	q.mu.Unlock()
	signal(q.ready)
}

// take returns the events that wait.
func (q *eventQueue) take() []shownEvent {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	q.space.Broadcast()
	return all
}

// next returns the oldest event that waits.
func (q *eventQueue) next() (e shownEvent, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return e, false
	}
	e, q.waiting = q.waiting[0], q.waiting[1:]
	q.space.Signal()
	return e, true
}

// close drops the events that wait; push does not wait any more.
func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.waiting = true, nil
	q.space.Broadcast()
}

// A printer holds the lines that are not printed yet.
type printer struct {
	ready chan struct{} // has an element if there is something to do
	chunk atomic.Int64  // how many lines are printed at once

	// mu guards the fields below. quit asks to end after the last line.
	mu    sync.Mutex
	lines []string
	quit  bool
}

func newPrinter() *printer {
	p := &printer{ready: make(chan struct{}, 1)}
	p.chunk.Store(1)
	return p
}

// add adds lines and returns how many wait.
func (p *printer) add(lines []string, quit bool) int {
	p.mu.Lock()
	p.lines = append(p.lines, lines...)
	p.quit = p.quit || quit
	n := len(p.lines)
	p.mu.Unlock()
	signal(p.ready)
	return n
}

// take returns the next lines; nil if none wait.
func (p *printer) take() (chunk []string, quit bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, rows := 0, 0
	for _, line := range p.lines {
		rows += 1 + strings.Count(line, "\n")
		if n > 0 && rows > int(p.chunk.Load()) {
			break
		}
		n++
	}
	if n == 0 {
		p.lines = nil
		return nil, p.quit
	}
	chunk, p.lines = p.lines[:n:n], p.lines[n:]
	return chunk, p.quit
}

func signal(ready chan struct{}) {
	select {
	case ready <- struct{}{}:
	default:
	}
}
