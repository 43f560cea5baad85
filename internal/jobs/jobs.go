// Package jobs runs commands that outlive the call that started them. A job belongs to a principal: each of its clients
// can list, read and stop it. Nothing of a job is left once it has ended or the table was closed.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/deck"
)

// These bound a table: the jobs of a principal that run, the ended ones of a principal that are kept, and how long Close
// waits for a job to end by itself.
const (
	maxRunning = 256
	maxEnded   = 64
)

// A Cause is why a job ended.
type Cause string

// The causes. The empty Cause is for a job that runs.
const (
	// Exited and Signalled are for commands that ended by themselves: the second by a signal that Drawbridge did not send.
	Exited    Cause = "exited"
	Signalled Cause = "signalled"
	// TimeLimit is for a command that ran longer than it may.
	TimeLimit Cause = "time limit"
	// Stopped is for a command that a call stopped, Cancelled for one whose call was cancelled, and Closed for one that
	// ended with Drawbridge.
	Stopped   Cause = "stopped"
	Cancelled Cause = "cancelled"
	Closed    Cause = "closed"
)

// ErrNotFound is the error for an ID that no job of the principal has.
var ErrNotFound = errors.New("there is no such job")

var errEnding = errors.New("the program is ending")

// A Spec describes a job.
type Spec struct {
	// Owner is the principal, Run the run that starts it.
	Owner, Run string
	// Line is the command line, Dir its working directory.
	Line, Dir string
	// Profile and Env are as in deck.ShellCommand.
	Profile deck.Profile
	Env     []string
	// Shell starts the command; nil is the table's.
	Shell deck.Shell
	// TimeLimit bounds the job; 0 does not.
	TimeLimit time.Duration
}

// A Job is a command that a table runs. Its methods may be called from several goroutines.
type Job struct {
	ID string
	Spec
	// Stdout and Stderr are its output.
	Stdout, Stderr Output
	// Started is when it was started.
	Started time.Time

	command deck.RunningCommand
	done    chan struct{}
	// life is the context of the start, without its end.
	life context.Context

	mu     sync.Mutex
	cause  Cause // why it was told to end, or why it ended
	ended  time.Time
	code   int
	signal string
}

// A State is how a job is.
type State struct {
	// Cause is why it ended; empty while it runs.
	Cause Cause
	// ExitCode is the exit code of a command that exited, else -1. Signal describes the signal that ended it.
	ExitCode int
	Signal   string
	// Took is how long it has run.
	Took time.Duration
}

// Done returns a channel that is closed when the job has ended and its output is complete.
func (j *Job) Done() <-chan struct{} { return j.done }

// State returns how the job is.
func (j *Job) State() State {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended.IsZero() {
		return State{ExitCode: -1, Took: time.Since(j.Started)}
	}
	return State{Cause: j.cause, ExitCode: j.code, Signal: j.signal, Took: j.ended.Sub(j.Started)}
}

// String describes the state for people: "exit 0", "killed after 2s (time limit)".
func (s State) String() string {
	took := s.Took.Round(time.Millisecond)
	switch s.Cause {
	case "":
		return fmt.Sprintf("running for %s", took)
	case Exited:
		return "exit " + strconv.Itoa(s.ExitCode)
	case Signalled:
		return "ended by a signal that Drawbridge did not send (" + strings.TrimPrefix(s.Signal, "signal: ") + ")"
	}
	return fmt.Sprintf("killed by Drawbridge after %s (%s)", took, s.Cause)
}

// stop ends the job for a cause, and waits until it has ended. The first cause counts.
func (j *Job) stop(ctx context.Context, why Cause) error {
	j.mu.Lock()
	if j.cause == "" {
		j.cause = why
	}
	j.mu.Unlock()
	return j.command.Stop(ctx)
}

// watch waits for the end of the job, and ends it at its time limit.
func (j *Job) watch() {
	var limit <-chan time.Time
	if j.TimeLimit > 0 {
		timer := time.NewTimer(j.TimeLimit)
		defer timer.Stop()
		limit = timer.C
	}
	select {
	case <-j.command.Done():
	case <-limit:
		_ = j.stop(j.life, TimeLimit) // the end is awaited below
		<-j.command.Done()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.code, j.signal = j.command.Status()
	if j.cause == "" {
		j.cause = Exited
		if j.code < 0 {
			j.cause = Signalled
		}
	}
	j.ended = time.Now()
}

// A Table runs jobs. Its methods may be called from several goroutines.
type Table struct {
	shell deck.Shell

	mu     sync.Mutex
	closed bool
	last   int
	jobs   []*Job // in the order of their start
	work   sync.WaitGroup
}

// NewTable returns a table without jobs, whose commands run in a shell.
func NewTable(shell deck.Shell) *Table { return &Table{shell: shell} }

// Start starts a job. ctx bounds the start alone. The error is for a command that cannot be started, and for a principal
// with too many jobs.
func (t *Table) Start(ctx context.Context, s Spec) (*Job, error) {
	job := &Job{Spec: s, done: make(chan struct{}), life: context.WithoutCancel(ctx)}
	t.mu.Lock()
	running := 0
	for _, other := range t.jobs {
		if other.Owner == s.Owner && other.State().Cause == "" {
			running++
		}
	}
	switch {
	case t.closed:
		t.mu.Unlock()
		return nil, errEnding
	case running >= maxRunning:
		t.mu.Unlock()
		return nil, fmt.Errorf("%d jobs are running; stop one first", running)
	}
	t.last++
	job.ID = "job-" + strconv.Itoa(t.last)
	t.work.Add(1) // Close waits for the start too
	t.mu.Unlock()

	job.Started = time.Now()
	shell := t.shell
	if s.Shell != nil {
		shell = s.Shell
	}
	var err error
	job.command, err = shell.Start(ctx, deck.ShellCommand{Line: s.Line, Dir: s.Dir, Profile: s.Profile, Env: s.Env,
		Stdout: &job.Stdout, Stderr: &job.Stderr})
	if err != nil {
		t.work.Done()
		return nil, err
	}
	go func() {
		defer t.work.Done()
		defer close(job.done)
		job.watch()
	}()
	t.mu.Lock()
	t.jobs = append(t.jobs, job)
	t.forgetOldest(s.Owner)
	closed := t.closed
	t.mu.Unlock()
	if closed {
		return nil, errors.Join(errEnding, job.stop(ctx, Closed))
	}
	return job, nil
}

// forgetOldest drops the ended jobs of a principal past their bound. It needs mu.
func (t *Table) forgetOldest(owner string) {
	ended := 0
	for _, job := range slices.Backward(slices.Clone(t.jobs)) {
		if job.Owner != owner || job.State().Cause == "" {
			continue
		}
		if ended++; ended > maxEnded {
			t.remove(job)
		}
	}
}

// remove drops a job. It needs mu.
func (t *Table) remove(job *Job) {
	t.jobs = slices.DeleteFunc(t.jobs, func(j *Job) bool { return j == job })
}

// List returns the jobs of a principal, in the order of their start.
func (t *Table) List(owner string) (jobs []*Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, job := range t.jobs {
		if job.Owner == owner {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// Find returns the job of a principal with an ID. The error is ErrNotFound.
func (t *Table) Find(owner, id string) (*Job, error) {
	for _, job := range t.List(owner) {
		if job.ID == id {
			return job, nil
		}
	}
	return nil, ErrNotFound
}

// Stop ends a job for a cause, waits until it has ended, and forgets it. When ctx ends it kills at once. The error is
// for processes that remain; the job is then kept.
func (t *Table) Stop(ctx context.Context, job *Job, why Cause) error {
	if err := job.stop(ctx, why); err != nil {
		return err
	}
	<-job.done
	t.Forget(job)
	return nil
}

// Forget drops a job that has ended from the list.
func (t *Table) Forget(job *Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(job)
}

// Close ends all jobs, and waits until they have ended.
func (t *Table) Close() error {
	t.mu.Lock()
	t.closed = true
	jobs := slices.Clone(t.jobs)
	t.mu.Unlock()
	errs := make([]error, len(jobs))
	var stops sync.WaitGroup
	for i, job := range jobs {
		stops.Go(func() { errs[i] = job.stop(job.life, Closed) })
	}
	stops.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end the jobs: %w", err)
	}
	t.work.Wait()
	return nil
}

// Shorten returns a command line as one line of a list.
func Shorten(line string, width int) string {
	first, _, more := strings.Cut(strings.TrimSpace(line), "\n")
	if more || len(first) > width {
		first = strings.ToValidUTF8(first[:min(len(first), width)], "") + "…"
	}
	return cmp.Or(first, "…")
}
