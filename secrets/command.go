// Package secrets finds the values that a configuration only refers to, and keeps those that have to outlive us: see Vault.
//
// A value may be what a file holds, what a person keeps in a keychain, or what a command prints: the ways to keep it out of
// the configuration. Each command runs once for as long as the process lives, however many servers want its value; one that
// did not work is run again when it is next wanted. No value, and nothing that a command printed, is in an error.
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

// CommandTime is how long a command may take.
const CommandTime = 10 * time.Second

// maxValue is the most bytes that a command may print, or a file hold.
const maxValue = 1 << 20

// Commands runs commands and keeps what they printed. The zero value is ready; its methods may be called from several
// goroutines.
type Commands struct {
	mu   sync.Mutex
	runs map[string]*run
}

// A run is one command, going on or done well.
type run struct {
	done  chan struct{}
	value string
	err   error
}

// Value gives what a shell's command prints, without the blanks around it. Environ is its environment, as os.Environ gives
// it; of two that want the same command at once, or later, the first one's counts. The error says why there is no value: the
// command ended badly, printed nothing, or took too long.
func (c *Commands) Value(ctx context.Context, command string, environ []string) (string, error) {
	c.mu.Lock()
	r := c.runs[command]
	if r == nil {
		r = &run{done: make(chan struct{})}
		if c.runs == nil {
			c.runs = map[string]*run{}
		}
		c.runs[command] = r
		c.mu.Unlock()
		c.carryOut(context.WithoutCancel(ctx), r, command, environ)
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

// carryOut runs a command for all who wait for it. It goes on when the first of them does not wait any more.
func (c *Commands) carryOut(ctx context.Context, r *run, command string, environ []string) {
	defer close(r.done)
	ctx, cancel := context.WithTimeout(ctx, CommandTime)
	defer cancel()
	r.value, r.err = output(ctx, command, environ)
	if r.err != nil {
		c.mu.Lock()
		delete(c.runs, command)
		c.mu.Unlock()
	}
}

// output is what a shell's command prints.
func output(ctx context.Context, command string, environ []string) (string, error) {
	cmd := shell(ctx, command)
	cmd.Env = append([]string{}, environ...) // nil would mean ours
	cmd.WaitDelay = time.Second
	out := &bounded{}
	cmd.Stdout = out
	err := cmd.Run()
	value := strings.TrimSpace(out.text.String())
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("the command took longer than %v", CommandTime)
	case ended:
		return "", fmt.Errorf("the command ended with %s", exit.ProcessState)
	case err != nil:
		return "", errors.New("the command could not be run")
	case out.over:
		return "", fmt.Errorf("the command printed more than %d bytes", maxValue)
	case value == "":
		return "", errors.New("the command printed nothing")
	}
	return value, nil
}

// A bounded keeps what is written to it, up to maxValue bytes.
type bounded struct {
	text strings.Builder
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.over = b.over || b.text.Len()+len(p) > maxValue; !b.over {
		b.text.Write(p)
	}
	return len(p), nil
}
