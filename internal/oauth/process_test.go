//go:build unix

package oauth

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// many asks the server in many goroutines at once, and says how many were let in.
func many(ctx context.Context, c *Credential) error {
	const calls = 34
	in := make(chan error, calls)
	var work sync.WaitGroup
	for range calls {
		work.Go(func() {
			status, err := ask(ctx, c, "whoami")
			if err == nil && (status == 401 || status == 403) {
				err = fmt.Errorf("status %d", status)
			}
			in <- err
		})
	}
	work.Wait()
	for range calls {
		if err := <-in; err != nil {
			return err
		}
	}
	fmt.Println("all in")
	return nil
}

// one asks the server once.
func one(ctx context.Context, c *Credential) error {
	status, err := ask(ctx, c, "whoami")
	fmt.Println(status, err)
	return err
}

// An other is a process of a test's own kind.
type other struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// start starts a process that is there, and has not begun.
func start(t *testing.T, role, address, dir string) *other {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, address, dir)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	o := &other{cmd: cmd}
	if o.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := o.out.ReadString('\n'); line != "here\n" {
		t.Fatalf("the process said %q, %v", line, err)
	}
	return o
}

// end gives the rest of what the process said.
func (o *other) end() (string, error) {
	rest, err := io.ReadAll(o.out)
	if err2 := o.cmd.Wait(); err == nil {
		err = err2
	}
	return string(rest), err
}

func inFiles(t *testing.T, o oauthtest.Options) (*party, string) {
	t.Helper()
	dir := t.TempDir()
	v, err := realVault(dir)
	if err != nil {
		t.Fatal(err)
	}
	y := &party{t: t, p: oauthtest.New(t, o), vault: v, log: &logged{}}
	y.again(nil)
	return y, dir
}

// TestRefreshOnceForAllProcesses is row OA-11: a hundred calls of three processes that hear 401 at once bring about one
// refresh, and are all answered.
func TestRefreshOnceForAllProcesses(t *testing.T) {
	y, dir := inFiles(t, oauthtest.Options{})
	y.signIn()
	y.p.ExpireAccess()
	var all []*other
	for range 3 {
		all = append(all, start(t, "many", y.p.ResourceURL, dir))
	}
	for _, o := range all {
		_ = o.in.Close()
	}
	for _, o := range all {
		if said, err := o.end(); err != nil || !strings.Contains(said, "all in") {
			t.Errorf("%s, %v", said, err)
		}
	}
	if c := y.p.Counts(); c.Refreshes != 1 || c.Reuses != 0 || c.Calls < 100 {
		t.Errorf("%+v", c)
	}
	y.in()
}

// TestKilledBeforeItKept is row OA-11 too: a process dies when its refresh was granted, and has not kept what it got.
// Where the provider honours the old token the next one goes on, else it says what became of it.
func TestKilledBeforeItKept(t *testing.T) {
	for name, k := range map[string]oauthtest.Tokens{"rotates": {}, "rotates with grace": {Grace: time.Minute},
		"keeps": {Rotation: "same"}} {
		t.Run(name, func(t *testing.T) {
			y, dir := inFiles(t, tokens(k))
			y.signIn()
			y.p.ExpireAccess()
			gate := y.p.Hold(oauthtest.TokenByRefresh, oauthtest.AfterHandling)
			o := start(t, "one", y.p.ResourceURL, dir)
			_ = o.in.Close()
			<-gate.Arrived
			if err := o.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_, _ = o.end()
			gate.Open()
			y.again(nil)
			if name == "rotates" {
				n := y.needed()
				wants(t, n, "an earlier renewal of the sign-in was interrupted")
				if !n.HasURL() {
					t.Errorf("%+v", n)
				}
				return
			}
			y.in()
			if c := y.p.Counts(); c.Refreshes != 2 || c.Reuses != 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestSignedInElsewhere has a person sign in in one process: another that waits for that goes on within two seconds.
func TestSignedInElsewhere(t *testing.T) {
	y, dir := inFiles(t, oauthtest.Options{})
	y.needed()
	waited := make(chan error, 1)
	began := time.Now()
	go func() { waited <- y.c.WaitForNewToken(t.Context(), &SignInRequiredError{usedToken: hashToken("")}) }()
	v, err := realVault(dir)
	if err != nil {
		t.Fatal(err)
	}
	theirs := &party{t: t, p: y.p, vault: v, log: &logged{}}
	theirs.again(nil)
	theirs.signIn()
	if err := <-waited; err != nil || time.Since(began) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	y.in()
}

// TestBegunElsewhere brings back by hand what another process began.
func TestBegunElsewhere(t *testing.T) {
	y, _ := inFiles(t, oauthtest.Options{})
	f := y.begin()
	callback, err := y.p.SignInRedirect(t.Context(), f.url)
	if err != nil {
		t.Fatal(err)
	}
	y.desk.Close()
	y.again(nil)
	if err := y.c.CompleteWithURL(t.Context(), callback); err != nil {
		t.Fatal(err)
	}
	y.in()
}
