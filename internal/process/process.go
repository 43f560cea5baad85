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
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
)

// DefaultGrace is how long each step of a stop waits if Spec has no Grace.
const DefaultGrace = time.Second

// drainTimeout is how long output that a descendant still holds open is read after the program has ended.
const drainTimeout = 500 * time.Millisecond

// killTimeout is how long killed processes may take to disappear: on a busy machine the kill of a tree takes a while.
const killTimeout = 5 * time.Second

// A Spec describes the program to start.
type Spec struct {
	// Command is a path, or a name that is searched for in the PATH of Env.
	Command string
	Args    []string
	// ResolveProgram, if set, returns the path of the file to start in place of Command, or the reason why it must not
	// start.
	ResolveProgram func() (path string, err error)
	// Dir is the program's directory; empty means ours.
	Dir string
	// Env is the program's whole environment as "name=value"; see Environ.
	Env []string
	// Grace is how long the program may take to end after its standard input was closed, and again after SIGTERM; 0
	// means DefaultGrace.
	Grace time.Duration
	// Confinement restricts the program, as far as the system supports it; nil means no restriction.
	Confinement *confine.Profile
	// Stdout and Stderr receive the output as it is written, until Stop returns. Without Stdout the output is that of
	// Process.Stdout; without Stderr the last lines are kept, see Process.Stderr.
	Stdout, Stderr io.Writer
	// NoInput leaves standard input empty. Stop then sends SIGTERM at once.
	NoInput bool
	// RedactLine is applied to each line of standard error before it is kept; nil keeps the line as it is.
	RedactLine func(line string) string
}

// A Process is a running program with everything it started. Its methods may be called from several goroutines. Stop
// must be called in the end, even if the program has ended by itself: it releases the resources of the Process.
type Process struct {
	pid           int
	grace         time.Duration
	noInput       bool
	copiesStdout  bool
	stdin, stdout *os.File
	stderr        *lineTail
	stderrEnd     *os.File
	tree          *processTree
	// confinement describes the restrictions that are in effect, cage is the profile; both are empty for an unconfined
	// program.
	confinement string
	profile     *confine.Profile

	work sync.WaitGroup // the goroutines that read stderr and wait for the program
	done chan struct{}
	err  error // set before done is closed
}

// Start starts the program. The error names the command, and the PATH in which it was searched for. ctx bounds the
// start alone.
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
	p := &Process{grace: spec.Grace, noInput: spec.NoInput, copiesStdout: spec.Stdout != nil,
		stderr: newLineTail(), done: make(chan struct{})}
	argv, err := p.confineCommand(&path, &spec)
	if err == nil {
		err = p.start(ctx, path, argv, spec)
	}
	if err != nil {
		p.cleanUp()
		return nil, fmt.Errorf("start %s: %w", spec.Command, err)
	}
	if spec.NoInput {
		_ = p.stdin.Close()
	}
	if spec.Stderr == nil {
		p.work.Go(func() { p.stderr.readFrom(p.stderrEnd, spec.RedactLine) })
	} else {
		p.work.Go(func() { copyOutput(spec.Stderr, p.stderrEnd) })
	}
	if spec.Stdout != nil {
		p.work.Go(func() { copyOutput(spec.Stdout, p.stdout) })
	}
	p.work.Go(p.wait)
	return p, nil
}

// findProgram returns the path of the program.
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

// start creates the pipes and launches the program with their far ends.
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

// wait waits until the program and everything it started have ended.
func (p *Process) wait() {
	p.err = p.tree.wait()
	_ = p.stdin.Close()
	// A descendant that escaped may hold these open for ever.
	p.cleanUp()
	_ = p.stdout.SetReadDeadline(time.Now().Add(drainTimeout))
	_ = p.stderrEnd.SetReadDeadline(time.Now().Add(drainTimeout))
	close(p.done)
}

// Stdin returns the program's standard input. It supports deadlines.
func (p *Process) Stdin() *os.File { return p.stdin }

// Stdout returns the program's standard output. It ends soon after the program, and Stop closes it.
func (p *Process) Stdout() *os.File { return p.stdout }

// Stderr returns the last lines that the program wrote to standard error, oldest first: at most 200, each cut at 8 KiB.
func (p *Process) Stderr() []string { return p.stderr.allLines() }

// StderrFrom returns the lines of standard error from the one numbered first on, counted from 0, as far as they are
// kept; the number of the next one; and a channel that is closed when that arrives.
func (p *Process) StderrFrom(first int) (lines []string, next int, more <-chan struct{}) {
	return p.stderr.linesFrom(first)
}

// Confinement describes the restrictions in effect, such as "files, sockets, signals", or "nothing" and why. It is
// empty for an unconfined program.
func (p *Process) Confinement() string { return p.confinement }

// PID returns the program's process ID.
func (p *Process) PID() int { return p.pid }

// Done returns a channel that is closed when the program has ended and, as far as this system reports it, everything
// it started.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program ended: "exit status 1". It is nil for a program that ended with status 0, and before Done
// is closed.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// errSurvivedKill is the error for a process that even SIGKILL does not end, such as one that waits for a dead network
// disk.
var errSurvivedKill = errors.New("still running after SIGKILL")

// Stop ends the program and everything it started: it closes standard input, waits, sends SIGTERM, waits, and sends
// SIGKILL. When ctx ends, it skips the waits and kills at once. It returns an error if a process remains.
func (p *Process) Stop(ctx context.Context) error {
	_ = p.stdin.Close()
	if p.noInput || !p.waitEnded(ctx, p.grace) {
		p.tree.terminate()
		if !p.waitEnded(ctx, p.grace+p.grace/2) {
			p.tree.kill()
			if !p.waitEnded(context.WithoutCancel(ctx), killTimeout) {
				return errSurvivedKill
			}
		}
	}
	if !p.copiesStdout {
		_ = p.stdout.Close()
	}
	p.work.Wait()
	return nil
}

// copyOutput copies the output of a program until it ends, which is soon after the program, and closes it.
func copyOutput(to io.Writer, from *os.File) {
	_, _ = io.Copy(to, from)
	_ = from.Close()
}

// waitEnded waits for the end, at most for d and until ctx ends.
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
