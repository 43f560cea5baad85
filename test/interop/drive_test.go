//go:build peers

package interop

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
// in its place; where the scenario is about signing in, a client of ours, since that one would sign in at the gateway.
// The suite gives a scenario 30 s; this ends before, and with it all that it started.
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
	task, err := taskOf(os.Getenv)
	if err != nil {
		return err
	}
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
	if err := configure(home, []row{task.row(upstream)}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	g, err := raise(ctx, home)
	if err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel()
		g.readers.Wait()
		_ = g.Wait()
	}()
	var url string
	select {
	case url = <-g.url:
	case <-ctx.Done():
		return errors.New("the gateway told no URL")
	}
	if task.signsIn() {
		if err := signIn(ctx, g.phases, g.list); err != nil {
			return err
		}
		return callAll(ctx, url)
	}
	// What the gateway says while it mounts the server is what some scenarios judge.
	for phase := ""; phase != "ready" && phase != "faulted"; {
		select {
		case phase = <-g.phases:
		case <-ctx.Done():
			return errors.New("the gateway did not come to an end with its server")
		}
	}
	client := ending(ctx, home, os.Getenv("PEERS_DRIVEN"), url)
	client.Stdout, client.Stderr = os.Stdout, os.Stderr
	return client.Run()
}

// A gatehouse is a gateway that runs.
type gatehouse struct {
	*exec.Cmd
	home    string
	url     <-chan string // its URL
	phases  <-chan string // each that its server enters
	readers sync.WaitGroup
}

// raise starts a gateway over the configuration of a home, which ends with ctx.
func raise(ctx context.Context, home string) (*gatehouse, error) {
	g := &gatehouse{home: home, Cmd: ending(ctx, home, os.Getenv("PEERS_DRAWBRIDGE"),
		commandLine(home, "serve", "-v", "--naming", "bare", "--http", "127.0.0.1:0")...)}
	out, outErr := g.StdoutPipe()
	said, errErr := g.StderrPipe()
	if err := errors.Join(outErr, errErr, g.Start()); err != nil {
		return nil, err
	}
	named, url := first(func(line string) (string, bool) { return line, strings.HasPrefix(line, loopback) })
	phases := make(chan string, 1000)
	g.url, g.phases = url, phases
	g.readers.Go(func() {
		eachLine(io.TeeReader(said, os.Stderr), func(line string) {
			if _, phase, ok := strings.Cut(line, "a server changed its state\""); ok {
				phases <- phase[strings.LastIndexByte(phase, '=')+1:]
			}
		})
	})
	g.readers.Go(func() { eachLine(out, named) })
	return g, nil
}

// list is what "drawbridge mcp list" says of the gateway's server.
func (g *gatehouse) list(ctx context.Context) ([]byte, error) {
	return ending(ctx, g.home, g.Path, commandLine(g.home, "mcp", "list", "--json")...).Output()
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
