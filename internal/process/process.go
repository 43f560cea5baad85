// Package process starts the program of a stdio server so that nothing of it outlives us.
//
// On Linux the program is started through our own executable, run again as a reaper: a subreaper that holds one end of
// a pipe whose other end dies with us. When the program ends, when it is told to, or when we die of whatever cause, the
// reaper ends every descendant, those that left the process group or called setsid too, and then exits with the
// program's status. If the reaper itself is killed, the program is killed with it. The program has the reaper's
// standard streams: no byte is copied on the way. On other Unix systems the reaper ends the program's process group;
// on Windows a job object does. A host program that does not call [Reap] has no reaper: a process group and, on Linux,
// the parent-death signal, so that after a SIGKILL of the host the program itself dies, but what it started may stay.
//
// The package knows nothing of MCP, reads no configuration and writes no log.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
)

// DefaultGrace is how long each step of a stop waits where nobody says otherwise.
const DefaultGrace = time.Second

// drainTimeout is how long output that somebody still holds open is read after the program has ended.
const drainTimeout = 500 * time.Millisecond

// killTimeout is how long what was killed may take to be gone: on a machine with much to do, the kill of a tree takes
// a while.
const killTimeout = 5 * time.Second

// A Spec says what to start.
type Spec struct {
	// Command is a path, or a name that is looked up in the PATH of Env.
	Command string
	Args    []string
	// ResolveProgram gives the path of the very file to start, whatever Command means, or says why none may be; nil
	// means what Command means.
	ResolveProgram func() (path string, err error)
	// Dir is the program's directory; empty means ours.
	Dir string
	// Env is the program's whole environment as "name=value"; see Environ.
	Env []string
	// Grace is how long the program has to end after its standard input was closed, and again after SIGTERM; 0 means
	// DefaultGrace.
	Grace time.Duration
	// Confinement is what the program is kept to, as far as the system lets us; nil keeps it to nothing.
	Confinement *confine.Profile
	// RedactLine is laid over each line of standard error that is kept; nil leaves it as it is.
	RedactLine func(line string) string
}

// A Process is a running program with everything it started. Its methods may be called from several goroutines. Stop
// must be called in the end, also for one that has ended by itself: it gives back what the Process holds.
type Process struct {
	pid           int
	grace         time.Duration
	stdin, stdout *os.File
	stderr        *lineTail
	stderrEnd     *os.File
	tree          *processTree
	// confinement says what the program is kept from, cage is the one that it is in; both are empty for one without.
	confinement string
	profile     *confine.Profile

	work sync.WaitGroup // the goroutines that read stderr and wait for the program
	done chan struct{}
	err  error // set before done is closed
}

// Start starts the program. The error says what is wrong with the command: it names the command, and the PATH it was
// looked for in. ctx bounds the start alone.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := checkDir(spec.Dir); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Command, err)
	}
	path, err := spec.findProgram()
	if err != nil {
		return nil, err
	}
	if spec.Grace <= 0 {
		spec.Grace = DefaultGrace
	}
	p := &Process{grace: spec.Grace, stderr: newLineTail(), done: make(chan struct{})}
	argv, err := p.confineCommand(&path, &spec)
	if err == nil {
		err = p.start(ctx, path, argv, spec)
	}
	if err != nil {
		p.cleanUp()
		return nil, fmt.Errorf("start %s: %w", spec.Command, err)
	}
	p.work.Go(func() { p.stderr.readFrom(p.stderrEnd, spec.RedactLine) })
	p.work.Go(p.wait)
	return p, nil
}

// findProgram gives the path of the program.
func (s Spec) findProgram() (path string, err error) {
	if s.ResolveProgram != nil {
		if path, err = s.ResolveProgram(); err == nil {
			return path, nil
		}
	}
	found, missing := FindProgram(s.Command, s.Dir, s.Env)
	if missing != nil || err == nil {
		return found, missing
	}
	return "", err
}

// start makes the pipes and launches the program with their far ends.
func (p *Process) start(ctx context.Context, path string, argv []string, spec Spec) (err error) {
	var near, far [3]*os.File
	defer func() {
		closeAll(far[:]) // the program has its own copies
		if err != nil {
			closeAll(near[:])
		}
	}()
	for i := range near {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		if near[i], far[i] = r, w; i == 0 {
			near[i], far[i] = w, r
		}
	}
	p.stdin, p.stdout, p.stderrEnd = near[0], near[1], near[2]
	cmd := &exec.Cmd{Path: path, Args: argv, Dir: spec.Dir, Env: spec.Env}
	if len(cmd.Env) == 0 {
		cmd.Env = []string{} // nil would mean ours
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far[0], far[1], far[2]
	p.tree, p.pid, err = launchTree(ctx, cmd, spec.Grace)
	return err
}

// wait waits for the end of the program and of what it started.
func (p *Process) wait() {
	p.err = p.tree.wait()
	_ = p.stdin.Close()
	// Where a descendant could escape it may hold these open for ever.
	p.cleanUp()
	_ = p.stdout.SetReadDeadline(time.Now().Add(drainTimeout))
	_ = p.stderrEnd.SetReadDeadline(time.Now().Add(drainTimeout))
	close(p.done)
}

// Stdin is the program's standard input. It takes deadlines.
func (p *Process) Stdin() *os.File { return p.stdin }

// Stdout is the program's standard output. It ends soon after the program, and is closed by Stop.
func (p *Process) Stdout() *os.File { return p.stdout }

// Stderr gives the last lines that the program wrote to standard error, oldest first: at most 200, each cut at 8 KiB.
func (p *Process) Stderr() []string { return p.stderr.allLines() }

// StderrFrom gives the lines of standard error from the one numbered first on, counted from 0, as far as they are
// kept; the number of the next one; and a channel that is closed when that comes.
func (p *Process) StderrFrom(first int) (lines []string, next int, more <-chan struct{}) {
	return p.stderr.linesFrom(first)
}

// Confinement says in words what the program is kept from, such as "files, sockets, signals", or "nothing" and why; it
// is empty for one without a cage.
func (p *Process) Confinement() string { return p.confinement }

// PID is the program's process id.
func (p *Process) PID() int { return p.pid }

// Done is closed when the program has ended and, as far as this system lets us know, everything it started.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the program ended, for people: "exit status 1". It is nil for a program that ended with status 0, and
// before Done is closed.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// errSurvivedKill is for a process that even SIGKILL does not end, such as one that waits for a dead network disk.
var errSurvivedKill = errors.New("still there after it was killed")

// Stop ends the program and everything it started: it closes standard input, waits, sends SIGTERM, waits, sends
// SIGKILL. When ctx ends the waiting is cut short and the killing comes at once. It returns when nothing is left; the
// error is for something that stays.
func (p *Process) Stop(ctx context.Context) error {
	_ = p.stdin.Close()
	if !p.waitEnded(ctx, p.grace) {
		p.tree.terminate()
		if !p.waitEnded(ctx, p.grace+p.grace/2) {
			p.tree.kill()
			if !p.waitEnded(context.WithoutCancel(ctx), killTimeout) {
				return errSurvivedKill
			}
		}
	}
	_ = p.stdout.Close()
	p.work.Wait()
	return nil
}

// waitEnded waits for the end, no longer than d and ctx.
func (p *Process) waitEnded(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
