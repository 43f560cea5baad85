package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"
)

// TestSIGKILLStorm kills gateways while four callers call, over stdio and over HTTP in turn. One of their servers kills its
// supervisor, and leaves a process that began a session of its own. Each answer is that of its call and on record with its
// outcome, both hash chains are whole, and after each round no process is left.
func TestSIGKILLStorm(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, store := filepath.Join(dir, "mcp.json"), filepath.Join(dir, "store.db")
	text := fmt.Sprintf(`{"servers":{
		"every": {"command": %q, "env": {"MCPTEST_SERVER": "everything"}},
		"kills": {"command": "sh", "args": ["-c", "setsid sleep 600 & kill -9 $PPID; exec sleep 600"]}}}`, self)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Args, cmd.Dir = args, dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir,
			"DRAWBRIDGE_KEYCHAIN=off", "GORACE="+quickExit)
		cmd.Stderr = os.Stderr
		return cmd
	}
	storm := command("storm", config, store, strconv.Itoa(stormRounds))
	out, err := storm.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	answered := map[string]bool{}
	for _, text := range strings.Fields(string(out)) {
		answered[text] = true
	}
	total := len(answered)
	logged, err := command("drawbridge", "audit", "log", "--json", "--mcp", config, "--store", store).Output()
	if err != nil {
		t.Fatal(err)
	}
	var records []audit.Record
	if err := json.Unmarshal(logged, &records); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		var said struct{ Text string }
		if json.Unmarshal(r.Arguments, &said) == nil && r.Outcome == audit.OK {
			delete(answered, said.Text)
		}
	}
	if len(answered) > 0 || total < stormRounds {
		t.Errorf("of %d answered calls %d are not on record: %v", total, len(answered), answered)
	}
	for _, chain := range []string{"audit", "ledger"} {
		if out, err := command("drawbridge", chain, "verify", "--mcp", config, "--store", store).Output(); err != nil {
			t.Errorf("%s verify: %v\n%s", chain, err, out)
		}
	}
	t.Logf("%d rounds: %d records, %d answered calls", stormRounds, len(records), total)
}

// storm is a process that starts and kills gateways. It is the subreaper of whatever they leave: that it has no child after
// a round is the proof that nothing is left. It prints the texts of the calls that were answered.
func storm() {
	config, store := os.Args[1], os.Args[2]
	rounds, err := strconv.Atoi(os.Args[3])
	err = errors.Join(err, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	for round := 0; round < rounds && err == nil; round++ {
		if err = stormRound(round, "--mcp", config, "--store", store); err != nil {
			err = fmt.Errorf("round %d: %w", round, err)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// stormRound has callers call one gateway, and kills it.
func stormRound(round int, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	serve := exec.Command(self)
	serve.Args = append([]string{"drawbridge", "serve"}, args...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var to mcp.Transport = &mcp.CommandTransport{Command: serve}
	if round%2 == 1 {
		if to, err = serveForStorm(serve); err != nil {
			return err
		}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "storm", Version: "1"}, nil).Connect(ctx, to, nil)
	if err != nil {
		return err
	}
	var callers sync.WaitGroup
	wrong := make(chan error, 4)
	first := make(chan struct{}, 4)
	for caller := range 4 {
		callers.Go(func() {
			for n := 0; ; n++ {
				text := fmt.Sprintf("%d-%d-%d", round, caller, n)
				result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "every__echo", Arguments: map[string]any{"text": text}})
				if err != nil {
					return // the gateway was killed
				}
				if got, ok := result.Content[0].(*mcp.TextContent); !ok || !result.IsError && got.Text != text {
					wrong <- fmt.Errorf("the call %s got the answer %v", text, result.Content[0])
					return
				}
				if !result.IsError {
					fmt.Println(text)
				}
				if n == 0 {
					first <- struct{}{}
				}
			}
		})
	}
	<-first
	<-time.After(time.Duration(rand.IntN(60)) * time.Millisecond)
	err = serve.Process.Kill()
	callers.Wait()
	cancel()
	_ = session.Close() // it was killed
	_ = serve.Wait()
	select {
	case said := <-wrong:
		err = errors.Join(err, said)
	default:
	}
	return errors.Join(err, awaitNoChildren())
}

// serveForStorm starts a gateway that serves HTTP, and returns the transport to it.
func serveForStorm(serve *exec.Cmd) (mcp.Transport, error) {
	serve.Args = append(serve.Args, "--http", "127.0.0.1:0")
	out, err := serve.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := serve.Start(); err != nil {
		return nil, err
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	return &mcp.StreamableClientTransport{Endpoint: strings.TrimSpace(url), MaxRetries: -1, DisableStandaloneSSE: true}, err
}
