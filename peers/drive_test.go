//go:build peers

package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// suiteClient is the part of the command that the suite's client leg runs for each scenario.
const suiteClient = "suite-client"

// playSuiteClient mounts the server whose URL the suite appended, and lets the SDK's conformance client use the gateway
// in its place. The suite gives a scenario 30 s; this ends before, and with it all that it started.
func playSuiteClient(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "peers: want the URL of a server")
		return 2
	}
	if err := drive(ctx, args[0]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		return 1
	}
	return 0
}

func drive(ctx context.Context, upstream string) (err error) {
	release, err := turn(os.Getenv("PEERS_TURNS"))
	if err != nil {
		return err
	}
	defer release()
	home, err := os.MkdirTemp("", "drawbridge-suite-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	if err := configure(home, []row{{Name: "upstream", Type: "http", URL: upstream}}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	gateway := ending(ctx, home, os.Getenv("PEERS_DRAWBRIDGE"), commandLine(home, "serve", "-v", "--naming", "bare", "--http", "127.0.0.1:0")...)
	out, outErr := gateway.StdoutPipe()
	said, errErr := gateway.StderrPipe()
	if err := errors.Join(outErr, errErr, gateway.Start()); err != nil {
		cancel()
		return err
	}
	var readers sync.WaitGroup
	heard, settled := first(func(line string) (string, bool) {
		return line, strings.Contains(line, "phase=ready") || strings.Contains(line, "phase=faulted")
	})
	named, url := first(func(line string) (string, bool) { return line, strings.HasPrefix(line, loopback) })
	readers.Go(func() { eachLine(io.TeeReader(said, os.Stderr), heard) })
	readers.Go(func() { eachLine(out, named) })
	defer func() {
		cancel()
		readers.Wait()
		_ = gateway.Wait()
	}()
	// What the gateway says while it mounts the server is what some scenarios judge.
	for _, sign := range []<-chan string{settled, url} {
		select {
		case line := <-sign:
			upstream = line
		case <-ctx.Done():
			return errors.New("the gateway told no URL, or did not come to an end with its server")
		}
	}
	client := ending(ctx, home, os.Getenv("PEERS_DRIVEN"), upstream)
	client.Stdout, client.Stderr = os.Stdout, os.Stderr
	return client.Run()
}

// turn waits for a place: the suite runs all scenarios at once, and with some forty gateways on a small machine their
// servers would be silent for longer than they may be.
func turn(dir string) (release func(), err error) {
	place, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(os.Getpid()%turns)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(place.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	return func() { place.Close() }, nil
}

// turns is how many gateways there are at a time.
const turns = 4

// ending is a program in a home that ends with ctx, in good order if it can.
func ending(ctx context.Context, home, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = homely(home)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	return cmd
}
