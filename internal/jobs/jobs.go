// Package jobs runs commands, called jobs, that may continue after the call that started them has ended. A job belongs
// to a principal: every client of the principal can list it, read its output and stop it. When a job ends, or when its
// table is closed, all processes that the job started are ended too.
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

// maxRunning is the maximum number of running jobs of one principal. maxEnded is the maximum number of ended jobs of
// one principal in a table; if there are more, the oldest are removed.
const (
	maxRunning = 256
	maxEnded   = 64
)

// A Cause is the reason why a job ended.
type Cause string

// The causes. The empty Cause means that the job is running.
const (
	// Exited means that the command exited by itself. Signalled means that a signal ended the command, and that
	// Drawbridge did not send it.
	Exited    Cause = "exited"
	Signalled Cause = "signalled"
	// TimeLimit means that Drawbridge ended the command because it ran longer than Spec.TimeLimit.
	TimeLimit Cause = "time limit"
	// Stopped means that a client stopped the command with a call. Cancelled means that the call that started the
	// command was cancelled. Closed means that Drawbridge ended.
	Stopped   Cause = "stopped"
	Cancelled Cause = "cancelled"
	Closed    Cause = "closed"
)

// ErrNotFound means that the principal has no job with the given ID.
var ErrNotFound = errors.New("there is no such job")

var errEnding = errors.New("the program is ending")

// A Spec contains the parameters of a job.
type Spec struct {
	// Owner is the principal to which the job belongs. Run is the key of the run that starts the job; see deck.RunOf.
	Owner, Run string
	// Line is the command line. Dir is its working directory.
	Line, Dir string
	// Profile and Env have the same meaning as in [deck.ShellCommand].
	Profile deck.Profile
	Env     []string
	// Shell starts the command; nil means the shell that was passed to NewTable.
	Shell deck.Shell
	// TimeLimit is how long the job may run before it is stopped; 0 means no limit.
	TimeLimit time.Duration
}

// A Job is a running or ended command of a Table. Its methods may be called from several goroutines.
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
	// ExitCode is the exit code of a command that exited; -1 while the job runs, and if a signal ended the command.
	// Signal describes that signal, such as "signal: killed"; otherwise it is empty.
	ExitCode int
	Signal   string
	// Took is how long the job ran, or has run until now.
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

// String returns a text for people that describes the state, such as "exit 0" or "killed by Drawbridge after 2s (time
// limit)".
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

// stop ends the command of the job, and waits until it has ended. If the job has no cause yet, why becomes its cause.
func (j *Job) stop(ctx context.Context, why Cause) error {
	j.mu.Lock()
	if j.cause == "" {
		j.cause = why
	}
	j.mu.Unlock()
	return j.command.Stop(ctx)
}

// watch waits until the command of the job has ended, and stores the final state of the job. If the time limit is
// reached, it stops the job.
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

// A Table starts jobs, and stores the running jobs and the last ended jobs of each principal. Its methods may be called
// from several goroutines.
type Table struct {
	shell deck.Shell

	mu     sync.Mutex
	closed bool
	last   int
	jobs   []*Job // in the order of their start
	work   sync.WaitGroup
}

// NewTable returns a table without jobs. shell starts the commands of jobs that have no shell of their own.
func NewTable(shell deck.Shell) *Table { return &Table{shell: shell} }

// Start starts a job. The end of ctx cancels only the start; a job that has started continues. Start returns an error
// if the command cannot be started, if the principal has maxRunning running jobs, or if the table is closed.
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

// forgetOldest removes the oldest ended jobs of a principal from the table until at most maxEnded of them remain. The
// caller must hold mu.
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

// Find returns the job with this ID, if it belongs to the principal owner. Otherwise the error is ErrNotFound.
func (t *Table) Find(owner, id string) (*Job, error) {
	for _, job := range t.List(owner) {
		if job.ID == id {
			return job, nil
		}
	}
	return nil, ErrNotFound
}

// Stop stops a job, waits until it has ended, and removes it from the table. why becomes the cause of the job, unless
// it already has one. The processes of the job get a short time to end; when ctx ends, they are killed immediately. If
// a process remains, Stop returns an error, and the job stays in the table.
func (t *Table) Stop(ctx context.Context, job *Job, why Cause) error {
	if err := job.stop(ctx, why); err != nil {
		return err
	}
	<-job.done
	t.Forget(job)
	return nil
}

// Forget removes a job, which must have ended, from the table.
func (t *Table) Forget(job *Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(job)
}

// Close stops all jobs, and waits until they have ended. After that, Start returns an error.
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

// Shorten returns the first line of a command, truncated to width bytes, for use in a list. It adds "…" if it removed
// text.
func Shorten(line string, width int) string {
	first, _, more := strings.Cut(strings.TrimSpace(line), "\n")
	if more || len(first) > width {
		first = strings.ToValidUTF8(first[:min(len(first), width)], "") + "…"
	}
	return cmp.Or(first, "…")
}
