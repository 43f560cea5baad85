package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A starter starts worker processes, all from one thread that lives as long as it does: the kernel kills a worker when
// the thread that started it ends. The zero value is ready.
type starter struct {
	// program is the path of the program that is started; empty means this program.
	program string

	once  sync.Once
	jobs  chan func()
	ended chan struct{}
}

// do runs f on the thread of the starter.
func (s *starter) do(f func()) {
	s.once.Do(func() {
		s.jobs, s.ended = make(chan func()), make(chan struct{})
		go func() {
			defer close(s.ended)
			runtime.LockOSThread()
			for job := range s.jobs {
				job()
			}
		}()
	})
	done := make(chan struct{})
	s.jobs <- func() {
		defer close(done)
		f()
	}
	<-done
}

// close ends the thread. No worker is alive and none is started afterwards.
func (s *starter) close() {
	s.once.Do(func() {})
	if s.jobs != nil {
		close(s.jobs)
		<-s.ended
	}
}

// maxPause is for how long the clock of a run may stand still in all.
const maxPause = time.Hour

// A workerProcess is a worker, seen from the program.
type workerProcess struct {
	// command is the process; nil for a worker in this process. kill has the worker end, and wait waits for that.
	command    *exec.Cmd
	kill, wait func()

	in     io.WriteCloser
	out    *bufio.Reader
	buffer []byte
	log    *slog.Logger
	// owner is the owner of the scripts that it runs, and runs is the number of them. broken reports that it can run no
	// more.
	owner     string
	runs      int
	broken    bool
	idleTimer *time.Timer
}

// start starts a worker and waits until it can run scripts.
func (s *starter) start(ctx context.Context, setup EngineSetup, log *slog.Logger) (*workerProcess, error) {
	path, err := s.program, error(nil)
	if path == "" {
		path, err = programPath()
	}
	if err != nil {
		return nil, err
	}
	argument, err := json.Marshal(setup)
	if err != nil {
		return nil, err
	}
	c := exec.Command(path, workerArgument, string(argument))
	c.Env = []string{} // nil would pass on ours
	c.Dir = setup.Compiled
	prepareCommand(c)
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.do(func() { err = c.Start() })
	if err != nil {
		return nil, fmt.Errorf("start a worker of the sandbox: %w", err)
	}
	p := &workerProcess{command: c, in: in, out: bufio.NewReaderSize(out, 64<<10), log: log}
	p.kill = func() { _ = c.Process.Kill() } // it may have ended
	p.wait = func() { _ = c.Wait() }         // it was killed
	if err := p.awaitReady(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// awaitReady waits until a worker that was started can run scripts. After an error the worker has ended.
func (p *workerProcess) awaitReady(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.kill)
	kind, payload, err := readFrame(p.out)
	if !stop() && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	switch {
	case err == nil && kind == errorFrame:
		err = errors.New(string(payload))
	case err == nil && kind != readyFrame:
		err = errProtocol
	}
	if err != nil {
		p.close()
		return fmt.Errorf("start a worker of the sandbox: %w", err)
	}
	return nil
}

var (
	errProtocol = errors.New("the worker does not keep to the protocol")
	errTimeUp   = errors.New("the time limit of the script was met")
	// errNotBegun is the error of a worker that cannot run the script, and has not begun it.
	errNotBegun = errors.New("the worker has ended")
)

// An endedError is the reason why the program ended a run that cannot be recorded or repeated.
type endedError struct{ error }

func isEndedError(err error) bool {
	_, ok := errors.AsType[*endedError](err)
	return ok
}

// close ends the worker and waits for it.
func (p *workerProcess) close() {
	p.kill()
	_ = p.in.Close()
	p.wait()
}

// run runs one script. The run ends with ctx, and also with life. The worker is broken after anything but a regular end.
func (p *workerProcess) run(ctx, life context.Context, script Script, limits Limits, host Host) (Outcome, error) {
	p.runs++
	message, err := script.message()
	if err != nil {
		return Outcome{}, err
	}
	record, err := newRecorder(script)
	if err != nil {
		return Outcome{}, err
	}
	work := workerRun{Message: message, Limits: limits}
	if record != nil {
		work.Seed, work.Clock, work.Record = record.seed, record.clock, true
	}
	job, err := json.Marshal(work)
	switch {
	case err != nil:
		return Outcome{}, err
	case len(job) > limits.Transfer:
		return Outcome{}, fmt.Errorf("sandbox: the script and its arguments have more than %d bytes", limits.Transfer)
	}
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(errors.New("the run has ended"))
	defer context.AfterFunc(life, func() { cancel(errClosed) })()
	stop := context.AfterFunc(runCtx, p.kill)
	clock := startClock(limits.Time, func() { cancel(errTimeUp) })
	defer clock.stop()
	longest := time.AfterFunc(limits.Time+maxPause, func() { cancel(errTimeUp) })
	defer longest.Stop()
	r := &requests{host: host, limits: limits, pause: clock.pause, recorder: record,
		pending: map[string]string{}, fail: func(err error) { cancel(&endedError{err}) }}
	result, err := p.exchange(runCtx, job, r)
	p.broken = !stop() || err != nil
	outcome := Outcome{Calls: r.calls}
	switch {
	case err == nil:
		outcome.fill(result, r, limits)
	case errors.Is(err, errNotBegun) && runCtx.Err() == nil:
		return outcome, err
	case errors.Is(context.Cause(runCtx), errTimeUp):
		outcome.Limit = "time"
		outcome.Error = &ScriptError{Type: "TimeoutError", Message: fmt.Sprintf("the script ran for more than %s",
			limits.Time)}
	case isEndedError(context.Cause(runCtx)):
		outcome.Limit = "journal"
		outcome.Error = &ScriptError{Type: "RuntimeError", Message: context.Cause(runCtx).Error()}
	case runCtx.Err() != nil:
		return outcome, context.Cause(runCtx)
	default:
		p.log.Warn("a worker of the sandbox ended during a script", "err", err)
		outcome.Limit = "crash"
		outcome.Error = &ScriptError{Type: "SystemError", Message: "the interpreter ended"}
	}
	return outcome, nil
}

// exchange sends a script to the worker and answers its requests until it reports the end.
func (p *workerProcess) exchange(ctx context.Context, job []byte, r *requests) (result workerResult, err error) {
	if p.out.Buffered() > 0 {
		return result, errNotBegun // it sent something after the end of the last run
	}
	if p.buffer, err = writeFrame(p.in, p.buffer, runFrame, job); err != nil {
		return result, errNotBegun
	}
	for first := true; ; first = false {
		kind, payload, err := readFrame(p.out)
		if errors.Is(err, io.EOF) && first {
			return result, errNotBegun
		}
		if err != nil {
			return result, err
		}
		switch kind {
		case requestFrame:
			if len(payload) > r.limits.Transfer {
				return result, errProtocol
			}
			reply := r.answer(ctx, payload)
			if ctx.Err() != nil {
				return result, context.Cause(ctx)
			}
			if p.buffer, err = writeFrame(p.in, p.buffer, replyFrame, reply); err != nil {
				return result, err
			}
		case clockFrame:
			if r.clock = append(r.clock, payload...); len(payload) == 0 || len(r.clock) > maxClock {
				r.clock = nil
				if err := r.recorder.lose(ctx); err != nil {
					r.fail(err)
				}
			}
		case doneFrame:
			return result, json.Unmarshal(payload, &result)
		default:
			return result, errProtocol
		}
	}
}

// fill fills the outcome of a run whose worker reported the end.
func (o *Outcome) fill(result workerResult, r *requests, limits Limits) {
	o.Stdout, o.Truncated = clip(result.Stdout, limits.Output, result.Truncated)
	o.Stderr, o.Truncated = clip(result.Stderr, limits.Output, o.Truncated)
	o.Memory = result.Memory
	switch {
	case result.Flooded:
		o.Limit = "output"
		o.Error = &ScriptError{Type: "OutputLimit", Message: fmt.Sprintf("the script wrote more than %d bytes",
			floodFactor*limits.Output)}
		return
	case result.Fault != "":
		o.Limit = "crash"
		o.Error = &ScriptError{Type: "SystemError", Message: result.Fault}
		return
	}
	// The script may have reported anything.
	var end struct {
		Value json.RawMessage `json:"value"`
		Repr  string          `json:"repr"`
		Exit  *int            `json:"exit"`
		Error *ScriptError    `json:"error"`
	}
	if err := json.Unmarshal(r.outcome, &end); err != nil {
		o.Limit = "crash"
		o.Error = &ScriptError{Type: "SystemError", Message: "the script did not report its end"}
		return
	}
	o.Value, o.Exit = end.Value, end.Exit
	o.Repr, o.Truncated = clip(end.Repr, maxErrorText, o.Truncated)
	if len(end.Value) > limits.Value {
		o.Repr, o.Truncated = safetext.Truncate(string(end.Value), limits.Value, safetext.Bytes, "…"), true
		o.Value = nil
	}
	if e := end.Error; e != nil {
		o.Error = &ScriptError{Type: safetext.Truncate(e.Type, 200, safetext.Bytes, "…"), Line: e.Line,
			Message:   safetext.Truncate(e.Message, maxErrorText, safetext.Bytes, "…"),
			Traceback: safetext.Truncate(e.Traceback, maxErrorText, safetext.Bytes, "…")}
	}
	switch {
	case end.Error == nil:
	case end.Error.Type == "MemoryError":
		o.Limit = "memory"
	case r.callsMet:
		o.Limit = "calls"
	}
}

// maxErrorText is the maximum length of each text of an error, and of Outcome.Repr, in bytes.
const maxErrorText = 16 << 10

// clip returns at most limit bytes of a text, and whether something is missing.
func clip(text string, limit int, truncated bool) (string, bool) {
	if len(text) <= 3*limit { // invalid bytes of the output became three bytes each
		return text, truncated
	}
	return safetext.Truncate(text, limit, safetext.Bytes, ""), true
}

// A runClock calls a function when a run has taken its time. It can be paused.
type runClock struct {
	mu    sync.Mutex
	left  time.Duration
	since time.Time
	timer *time.Timer
}

func startClock(limit time.Duration, expire func()) *runClock {
	return &runClock{left: limit, since: time.Now(), timer: time.AfterFunc(limit, expire)}
}

// pause stops the clock until resume is called.
func (c *runClock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	c.left -= time.Since(c.since)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

func (c *runClock) stop() { c.timer.Stop() }
