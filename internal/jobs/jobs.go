// Package jobs runs commands that continue after the call that started them has ended. A job belongs to a principal:
// each client of the principal can list, read and stop it. When a job ends or the table is closed, no process of the
// job remains.
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

// maxRunning limits the running jobs of a principal. maxEnded limits the ended jobs of a principal that a table stores.
const (
	maxRunning = 256
	maxEnded   = 64
)

// A Cause is the reason why a job ended.
type Cause string

// The causes. The empty Cause means that the job is running.
const (
	// Exited and Signalled mean that the command ended by itself. Signalled is for a command that was ended by a signal
	// that Drawbridge did not send.
	Exited    Cause = "exited"
	Signalled Cause = "signalled"
	// TimeLimit means that Drawbridge ended the command because it ran longer than Spec.TimeLimit.
	TimeLimit Cause = "time limit"
	// Stopped means that a call stopped the command. Cancelled means that the call which started the command was
	// cancelled. Closed means that Drawbridge was closed.
	Stopped   Cause = "stopped"
	Cancelled Cause = "cancelled"
	Closed    Cause = "closed"
)

// ErrNotFound means that the principal has no job with the given ID.
var ErrNotFound = errors.New("there is no such job")

var errEnding = errors.New("the program is ending")

// A Spec describes a job.
type Spec struct {
	// Owner is the principal. Run is the run that starts the job.
	Owner, Run string
	// Line is the command line. Dir is its working directory.
	Line, Dir string
	// Profile and Env have the same meaning as in [deck.ShellCommand].
	Profile deck.Profile
	Env     []string
	// Shell starts the command; nil means the shell of the table.
	Shell deck.Shell
	// TimeLimit is how long the job may run; 0 means no limit.
	TimeLimit time.Duration
}

// A Job is a command that a table runs. Its methods may be called from several goroutines.
type Job struct {
	ID string
	Spec
	// Stdout and Stderr are the output of the command.
	Stdout, Stderr Output
	// Started is the time when the job was started.
	Started time.Time

	command deck.RunningCommand
	done    chan struct{}
	// life is the context of Start without its cancellation and deadline.
	life context.Context

	mu     sync.Mutex
	cause  Cause // the cause given to stop, or the reason why the command ended
	ended  time.Time
	code   int
	signal string
}

// A State is the state of a job.
type State struct {
	// Cause is the reason why the job ended; it is empty while the job runs.
	Cause Cause
	// ExitCode is the exit code of a command that exited, otherwise -1. Signal describes the signal that ended the
	// command.
	ExitCode int
	Signal   string
	// Took is how long the job has run.
	Took time.Duration
}

// Done returns a channel that is closed when the job has ended and its output is complete.
func (j *Job) Done() <-chan struct{} { return j.done }

// State returns the current state of the job.
func (j *Job) State() State {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended.IsZero() {
		return State{ExitCode: -1, Took: time.Since(j.Started)}
	}
	return State{Cause: j.cause, ExitCode: j.code, Signal: j.signal, Took: j.ended.Sub(j.Started)}
}

// String describes the state for people: "exit 0", "killed by Drawbridge after 2s (time limit)".
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

// stop ends the job, and waits until it has ended. why becomes the cause of the job, unless the job already has a
// cause.
func (j *Job) stop(ctx context.Context, why Cause) error {
	j.mu.Lock()
	if j.cause == "" {
		j.cause = why
	}
	j.mu.Unlock()
	return j.command.Stop(ctx)
}

// watch waits until the job has ended, and stores its final state. It stops the job at its time limit.
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
		_ = j.stop(j.life, TimeLimit) // the next line waits for the end
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

// A Table starts jobs, and stores running and ended jobs. Its methods may be called from several goroutines.
type Table struct {
	shell deck.Shell

	mu     sync.Mutex
	closed bool
	last   int
	jobs   []*Job // in the order of their start
	work   sync.WaitGroup
}

// NewTable returns a table without jobs. The shell starts the commands of its jobs.
func NewTable(shell deck.Shell) *Table { return &Table{shell: shell} }

// Start starts a job. ctx limits only the start, not the job. Start returns an error if the command cannot be started,
// if the principal has too many running jobs, or if the table is closed.
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
	t.work.Add(1) // Close also waits for this start
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

// forgetOldest removes the oldest ended jobs of a principal until at most maxEnded remain. The caller must hold mu.
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

// remove removes a job from the table. The caller must hold mu.
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

// Find returns the job of a principal with this ID, or ErrNotFound.
func (t *Table) Find(owner, id string) (*Job, error) {
	for _, job := range t.List(owner) {
		if job.ID == id {
			return job, nil
		}
	}
	return nil, ErrNotFound
}

// Stop stops a job, waits until it has ended, and removes it from the table. why becomes the cause of the job. When ctx
// ends, Stop kills the command immediately. Stop returns an error if a process of the job remains; then the job stays
// in the table.
func (t *Table) Stop(ctx context.Context, job *Job, why Cause) error {
	if err := job.stop(ctx, why); err != nil {
		return err
	}
	<-job.done
	t.Forget(job)
	return nil
}

// Forget removes an ended job from the table.
func (t *Table) Forget(job *Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(job)
}

// Close stops all jobs, and waits until they have ended.
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

// Shorten returns the first line of a command line, for use in a list. It ends with "…" if it is longer than width
// bytes or if more lines follow.
func Shorten(line string, width int) string {
	first, _, more := strings.Cut(strings.TrimSpace(line), "\n")
	if more || len(first) > width {
		first = strings.ToValidUTF8(first[:min(len(first), width)], "") + "…"
	}
	return cmp.Or(first, "…")
}
