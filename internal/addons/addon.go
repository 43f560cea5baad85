package addons

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// The time limits for starting and stopping a program.
const (
	startTimeout = 30 * time.Second
	stopGrace    = 500 * time.Millisecond
	// The pause before the next start is minPause after the first failure, and doubles up to maxPause.
	minPause = 100 * time.Millisecond
	maxPause = 30 * time.Second
)

// maxReason is the maximum size in bytes of a text of a program in an error.
const maxReason = 500

// An Addon is an addon that was opened with New. Its program is started when it is first needed, and again after a
// failure. Close ends the program.
type Addon struct {
	found   Found
	timeout time.Duration
	environ []string
	log     *slog.Logger
	now     func() time.Time

	// starting is locked while the program is started or ended.
	starting sync.Mutex
	closed   bool
	current  *program
	// failures counts the failures since the last answer. No new program is started before the time retry.
	failures int
	retry    time.Time
}

// A program is one run of an addon's program.
type program struct {
	process *process.Process
	conn    *transport.StreamConn
	// usable is canceled when the program writes a line that is not a message. The cause of the context then contains
	// the reason.
	usable  context.Context
	discard context.CancelCauseFunc
}

// New returns an Addon for f. If f cannot be used, it returns f.Err. environ is the environment of the addon's program,
// as "name=value".
func New(f Found, environ []string, log *slog.Logger) (*Addon, error) {
	if f.Err != nil {
		return nil, f.Err
	}
	timeout, err := f.timeout()
	if err != nil {
		return nil, err
	}
	return &Addon{found: f, timeout: timeout, environ: environ, log: log.With("addon", f.ID), now: time.Now}, nil
}

// ID returns the name of the addon.
func (a *Addon) ID() string { return a.found.ID }

// Tools returns the tools of the addon.
func (a *Addon) Tools() []Tool { return a.found.Tools }

// Close ends the program and waits until it has ended. It returns an error if a process remains.
func (a *Addon) Close(ctx context.Context) error {
	a.starting.Lock()
	defer a.starting.Unlock()
	a.closed = true
	return a.stop(ctx)
}

// stop ends the current program.
func (a *Addon) stop(ctx context.Context) error {
	p := a.current
	a.current = nil
	if p == nil {
		return nil
	}
	p.discard(errors.New("the addon was ended"))
	return p.conn.Close(ctx)
}

// ask sends an event to the program and returns the answer, a JSON object. If the program does not answer in time, or
// its answer is invalid, ask ends the program. A later event starts the program again.
func (a *Addon) ask(caller context.Context, event string, params any) (json.RawMessage, error) {
	p, text, err := a.prepare(caller, params)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(caller, a.timeout)
	defer cancel()
	within, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(p.usable, func() { end(context.Cause(p.usable)) })()
	answer, err := p.conn.Call(within, event, text, nil)
	switch {
	case err != nil && p.usable.Err() != nil:
		err = context.Cause(p.usable)
	case err != nil && caller.Err() != nil:
		return nil, caller.Err() // the program is not at fault
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("no answer within %s", a.timeout)
	case err != nil:
		err = fmt.Errorf("its program ended: %w", err)
	case answer.Error != nil:
		a.succeeded()
		return nil, errors.New("it answered with the error " + clip(rawjson.GetString(answer.Error, "message")))
	case len(bytes.TrimSpace(answer.Result)) == 0 || bytes.TrimSpace(answer.Result)[0] != '{':
		err = errors.New("its answer is not an object")
	default:
		a.succeeded()
		return answer.Result, nil
	}
	return nil, a.failed(ctx, p, err)
}

// tell sends an event to the program without waiting for an answer. If that fails, it logs the error.
func (a *Addon) tell(ctx context.Context, event string, params any) {
	p, text, err := a.prepare(ctx, params)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		defer cancel()
		err = p.conn.Notify(ctx, event, text)
	}
	if err != nil {
		a.log.Warn("an addon was not told of an event", "event", event, "err", err)
	}
}

func (a *Addon) prepare(ctx context.Context, params any) (*program, json.RawMessage, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, nil, err
	}
	p, err := a.running(ctx)
	return p, text, err
}

// running returns the running program, and starts the program if necessary.
func (a *Addon) running(ctx context.Context) (*program, error) {
	a.starting.Lock()
	defer a.starting.Unlock()
	if p := a.current; p != nil {
		select {
		case <-p.process.Done():
			a.log.Warn("the program of an addon ended", "status", p.process.ExitStatus(), "stderr", a.lastErrorLine(p))
			if err := a.stop(context.WithoutCancel(ctx)); err != nil {
				return nil, err
			}
		default:
			return p, nil
		}
	}
	switch wait := a.retry.Sub(a.now()); {
	case a.closed:
		return nil, errors.New("the addon was ended")
	case wait > 0:
		return nil, fmt.Errorf("it failed %d times; it is started again in %s", a.failures, wait.Round(100*time.Millisecond))
	}
	p, err := a.start(ctx)
	if err != nil {
		a.countFailure()
		return nil, err
	}
	a.current = p
	return p, nil
}

// start starts the program. For an addon of a project, it returns an error if the files have changed since a person
// approved them.
func (a *Addon) start(ctx context.Context) (*program, error) {
	if a.found.FromProject {
		switch now, err := digest(a.found.Dir); {
		case err != nil:
			return nil, err
		case now != a.found.Digest:
			return nil, errors.New("its files changed since they were approved (drawbridge addon approve)")
		}
	}
	command := a.found.Exec[0]
	if strings.ContainsAny(command, `/\`) && !filepath.IsAbs(command) {
		command = filepath.Join(a.found.Dir, command)
	}
	within, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	started, err := process.Start(within, process.Spec{Command: command, Args: a.found.Exec[1:], Dir: a.found.Dir,
		Env: a.environ, Grace: stopGrace})
	if err != nil {
		return nil, err
	}
	p := &program{process: started}
	p.usable, p.discard = context.WithCancelCause(context.WithoutCancel(ctx))
	p.conn = transport.NewStreamConn(ctx, transport.StreamConnOptions{
		Send: func(_ context.Context, msg []byte) error {
			_, err := started.Stdin().Write(msg)
			return err
		},
		TrySend: transport.NonblockingPipeWriter(started.Stdin()),
		Receive: mcp.NewLineReader(transport.NewPipeReader(started.Stdout()), 0).Next,
		Close:   started.Stop,
		OnJunk: func(line []byte) {
			p.discard(fmt.Errorf("its program wrote a line that is not an answer: %s", clip(string(line))))
		},
		Logger: a.log,
	})
	return p, nil
}

// failed ends a program that failed. It returns the failure together with the last line of the program's standard
// error.
func (a *Addon) failed(ctx context.Context, p *program, failure error) error {
	a.starting.Lock()
	defer a.starting.Unlock()
	if a.current == p {
		if err := a.stop(context.WithoutCancel(ctx)); err != nil {
			failure = errors.Join(failure, err)
		}
		a.countFailure()
	}
	if line := a.lastErrorLine(p); line != "" {
		return fmt.Errorf("%w (standard error: %s)", failure, line)
	}
	return failure
}

func (a *Addon) countFailure() {
	pause := min(minPause<<min(a.failures, 20), maxPause)
	a.failures, a.retry = a.failures+1, a.now().Add(pause)
}

func (a *Addon) succeeded() {
	a.starting.Lock()
	defer a.starting.Unlock()
	a.failures, a.retry = 0, time.Time{}
}

// lastErrorLine returns the last line that the program wrote to standard error.
func (a *Addon) lastErrorLine(p *program) string {
	lines := p.process.Stderr()
	if len(lines) == 0 {
		return ""
	}
	return clip(lines[len(lines)-1])
}

// clip returns a text of a program in one line of limited length.
func clip(text string) string {
	return safetext.Line(safetext.Truncate(strings.TrimSpace(text), maxReason, safetext.Bytes, "…"))
}
