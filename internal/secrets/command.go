// Package secrets resolves the references to secret values in a configuration. It also contains the Vault, which stores
// secrets that are needed after the process ends.
//
// A reference names a file, an entry of a keychain, or a command that prints the value. A command runs once in the
// lifetime of the process, for all servers that refer to it. If it fails, it runs again on the next use. No error
// contains a value or the output of a command.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// CommandTimeout is the time limit of a command.
const CommandTimeout = 10 * time.Second

// maxValue is the maximum size of a command's output or of a file, in bytes.
const maxValue = 1 << 20

// A CommandRunner runs commands and caches their output. The zero value is ready to use, and is safe for concurrent
// use.
type CommandRunner struct {
	mu   sync.Mutex
	runs map[string]*commandRun
}

// A commandRun is a command that is running or has succeeded.
type commandRun struct {
	done  chan struct{}
	value string
	err   error
}

// Value returns the output of a shell command, without surrounding white space. environ is the environment of the
// command, as os.Environ returns it. Concurrent callers with the same command share one run; later callers get the
// result of the first successful run. The error reports that the command failed, took too long, printed nothing or
// printed more than maxValue bytes. A caller that waits for another caller's run may also get the error of its ctx.
func (c *CommandRunner) Value(ctx context.Context, command string, environ []string) (string, error) {
	c.mu.Lock()
	r := c.runs[command]
	if r == nil {
		r = &commandRun{done: make(chan struct{})}
		if c.runs == nil {
			c.runs = map[string]*commandRun{}
		}
		c.runs[command] = r
		c.mu.Unlock()
		c.runShared(context.WithoutCancel(ctx), r, command, environ)
		return r.value, r.err
	}
	c.mu.Unlock()
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// runShared runs a command for all callers that wait for its result. ctx must not be cancelled if the first caller
// gives up, because other callers may still wait.
func (c *CommandRunner) runShared(ctx context.Context, r *commandRun, command string, environ []string) {
	defer close(r.done)
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	r.value, r.err = runShell(ctx, command, environ)
	if r.err != nil {
		c.mu.Lock()
		delete(c.runs, command)
		c.mu.Unlock()
	}
}

// runShell runs a shell command and returns its output.
func runShell(ctx context.Context, command string, environ []string) (string, error) {
	cmd := shell(ctx, command)
	cmd.Env = append([]string{}, environ...) // nil would mean the environment of the current process
	cmd.WaitDelay = time.Second
	out := &limitedBuffer{}
	cmd.Stdout = out
	err := cmd.Run()
	value := strings.TrimSpace(out.text.String())
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("the command took longer than %v", CommandTimeout)
	case ended:
		return "", fmt.Errorf("the command ended with %s", exit.ProcessState)
	case err != nil:
		return "", errors.New("the command could not be run")
	case out.exceeded:
		return "", fmt.Errorf("the command printed more than %d bytes", maxValue)
	case value == "":
		return "", errors.New("the command printed nothing")
	}
	return value, nil
}

// A limitedBuffer stores the data written to it, up to maxValue bytes. If more is written, exceeded is set and further
// data is dropped.
type limitedBuffer struct {
	text     strings.Builder
	exceeded bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.exceeded = b.exceeded || b.text.Len()+len(p) > maxValue; !b.exceeded {
		b.text.Write(p)
	}
	return len(p), nil
}
