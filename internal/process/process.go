// Package process starts the program of a stdio server, and ends all processes that the program has started.
//
// On Unix, a supervisor starts the program and remains its parent. Drawbridge and the supervisor share a pipe, whose end
// shows the supervisor that Drawbridge has died. The supervisor ends the remaining processes when the program ends, when
// Drawbridge orders it, and when Drawbridge dies for any reason. The program gets its standard streams from Drawbridge,
// so that no data is copied.
//
// On Linux, supervisors are subreapers and end every descendant, also processes that left the process group or called
// setsid. They are copies of one small program, whose source and build are in the directory supervisor: this package
// contains it, and runs it from memory. The first copy is the top supervisor. It starts a supervisor for each program,
// and ends the processes of a supervisor that was killed. If the top supervisor is killed, the other ones go on, and the
// next program gets a new one. No supervisor keeps the environment of a program. A confined program and its processes
// are in a PID namespace, if the system allows one: they cannot outlive their supervisor.
//
// Where the small program cannot run, and on other Unix systems, Drawbridge's own executable is run again as the
// supervisor, called reaper. If main does not call [RunIfReaper] there, no supervisor is used: each program is then
// started in a process group and, on Linux, with the parent-death signal. If Drawbridge is killed, that signal ends the
// program, but the processes that the program started may remain. Other Unix systems than Linux have no subreapers: the
// reaper ends the program's process group. On Windows, a job object ends the processes.
//
// Not promised: if Drawbridge, the top supervisor and the supervisor of a program that is not confined are all killed,
// the kernel kills the program, but processes that left the program may remain.
//
// The package does not know MCP, reads no configuration and writes no log.
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

// DefaultGrace is the default of Spec.Grace.
const DefaultGrace = time.Second

// drainTimeout is how long output is read after the program has ended, if a descendant still has the stream open.
const drainTimeout = 500 * time.Millisecond

// killTimeout is how long Stop waits until killed processes have ended. On a busy machine that takes some time.
const killTimeout = 5 * time.Second

// A Spec describes the program to start.
type Spec struct {
	// Command is a path, or a name that is searched in the PATH of Env.
	Command string
	Args    []string
	// ResolveProgram, if not nil, returns the path of the file to start instead of Command, or an error if the program
	// must not start.
	ResolveProgram func() (path string, err error)
	// Dir is the program's working directory; "" means Drawbridge's working directory.
	Dir string
	// Env is the program's complete environment as "name=value" strings; see Environ.
	Env []string
	// Grace is how long the program may take to end after its standard input was closed, and again after SIGTERM. 0
	// means DefaultGrace.
	Grace time.Duration
	// Confinement restricts the program, as far as the system supports it; nil means no restriction.
	Confinement *confine.Profile
	// Stdout and Stderr receive the program's output as it is written, until Stop returns. If Stdout is nil, the output
	// can be read from Process.Stdout. If Stderr is nil, the last lines are stored, see Process.Stderr.
	Stdout, Stderr io.Writer
	// NoInput closes standard input at the start. Stop then sends SIGTERM at once.
	NoInput bool
	// RedactLine is applied to each line of standard error before the line is stored; nil stores the line unchanged.
	RedactLine func(line string) string
}

// A Process is a running program with all processes that it has started. Its methods may be called from several
// goroutines. Stop must be called even if the program has ended by itself, since Stop releases the resources of the
// Process.
type Process struct {
	pid           int
	grace         time.Duration
	noInput       bool
	copiesStdout  bool
	stdin, stdout *os.File
	stderr        *lineTail
	stderrEnd     *os.File
	tree          *processTree
	// confinement describes the restrictions in effect. profile is the profile of a confined program. Both are empty if
	// Spec.Confinement is nil; only profile is nil if the system does not support confinement.
	confinement string
	profile     *confine.Profile

	work sync.WaitGroup // the goroutines that read stderr and wait for the program
	done chan struct{}
	err  error // set before done is closed
}

// Start starts the program. The error names the command. ctx bounds only the start.
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
	err = p.prepareConfinement(&spec)
	if err == nil {
		err = p.start(ctx, path, spec)
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

// A launch is a program that is to be started. profile is the profile of a confined program, otherwise nil.
type launch struct {
	cmd     *exec.Cmd
	grace   time.Duration
	profile *confine.Profile
}

// findProgram returns the path of the program to start. If ResolveProgram returns an error and Command is not found
// either, findProgram returns the error about Command.
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

// start creates pipes for the standard streams and launches the program with their other ends.
func (p *Process) start(ctx context.Context, path string, spec Spec) (err error) {
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
	cmd := &exec.Cmd{Path: path, Args: append([]string{spec.Command}, spec.Args...), Dir: spec.Dir, Env: spec.Env}
	if len(cmd.Env) == 0 {
		cmd.Env = []string{} // nil would mean this process's environment
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far[0], far[1], far[2]
	p.tree, p.pid, err = launchTree(ctx, launch{cmd, spec.Grace, p.profile})
	return err
}

// wait waits until the program and all processes it started have ended, and closes done.
func (p *Process) wait() {
	p.err = p.tree.wait()
	_ = p.stdin.Close()
	// The deadlines end the reading of the outputs, which a remaining descendant may keep open.
	p.cleanUp()
	_ = p.stdout.SetReadDeadline(time.Now().Add(drainTimeout))
	_ = p.stderrEnd.SetReadDeadline(time.Now().Add(drainTimeout))
	close(p.done)
}

// Stdin returns the program's standard input. It supports deadlines.
func (p *Process) Stdin() *os.File { return p.stdin }

// Stdout returns the program's standard output. It ends shortly after the program has ended, and Stop closes it.
func (p *Process) Stdout() *os.File { return p.stdout }

// Stderr returns the last lines that the program wrote to standard error, oldest first: at most 200, each cut at 8 KiB.
func (p *Process) Stderr() []string { return p.stderr.allLines() }

// StderrFrom returns the stored lines of standard error from number first on, the number of the next line, and a
// channel. The channel is closed when the next line is written. Lines are numbered from 0.
func (p *Process) StderrFrom(first int) (lines []string, next int, more <-chan struct{}) {
	return p.stderr.linesFrom(first)
}

// Confinement returns a description of the restrictions in effect, such as "files, sockets, signals". If the system
// does not support confinement, it returns "nothing" with the reason. It returns "" if Spec.Confinement is nil.
func (p *Process) Confinement() string { return p.confinement }

// PID returns the program's process ID.
func (p *Process) PID() int { return p.pid }

// Done returns a channel that is closed when the program has ended. The processes that the program started have then
// ended too, as far as this system can report that.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program ended, such as "exit status 1". It returns nil if the program ended with status 0, and
// before Done is closed.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// errSurvivedKill is the error of Stop if a process remains after SIGKILL, for example because it waits for an
// unreachable network disk.
var errSurvivedKill = errors.New("still running after SIGKILL")

// Stop ends the program and all processes that it started. It closes standard input, waits, sends SIGTERM, waits, and
// sends SIGKILL. When ctx ends, Stop skips the waits. It returns an error if a process remains.
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

// copyOutput copies an output of the program until the output ends, and closes from.
func copyOutput(to io.Writer, from *os.File) {
	_, _ = io.Copy(to, from)
	_ = from.Close()
}

// waitEnded waits until the process has ended, for at most d and until ctx ends. It reports whether the process has
// ended.
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
