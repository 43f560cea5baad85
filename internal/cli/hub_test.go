//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/cli"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/gofrs/flock"
)

// A talker is a client of "drawbridge serve", on pipes.
type talker struct {
	t     *testing.T
	in    *io.PipeWriter
	lines *bufio.Scanner
}

// talk starts "drawbridge serve", which ends with the test.
func (d *desk) talk() *talker {
	d.t.Helper()
	in, toServe := io.Pipe()
	fromServe, out := io.Pipe()
	var stderr bytes.Buffer
	served := make(chan int, 1)
	go func() {
		served <- cli.Main(context.WithoutCancel(d.t.Context()), []string{"serve"}, d.process(in, out, &stderr))
		_ = out.Close()
	}()
	d.t.Cleanup(func() {
		_ = toServe.Close()
		go func() { _, _ = io.Copy(io.Discard, fromServe) }()
		if code := <-served; code != 0 {
			d.t.Errorf("serve ended with %d: %s", code, &stderr)
		}
	})
	t := &talker{t: d.t, in: toServe, lines: bufio.NewScanner(fromServe)}
	t.lines.Buffer(nil, 1<<20)
	t.ask(1, "initialize",
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	return t
}

// ask sends a request and gives the line with its answer.
func (c *talker) ask(id int, method, params string) string {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method,
		params); err != nil {
		c.t.Fatal(err)
	}
	for c.lines.Scan() {
		if strings.Contains(c.lines.Text(), fmt.Sprintf(`"id":%d`, id)) {
			return c.lines.Text()
		}
	}
	c.t.Fatalf("no answer to %s: %v", method, c.lines.Err())
	return ""
}

// TestTheHubFromOutside has the commands that look at a hub, while one runs.
func TestTheHubFromOutside(t *testing.T) {
	d := newDesk(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.write(".config/drawbridge/mcp.json", fmt.Sprintf(
		`{"servers": {"every": {"command": "sh", "args": ["-c", "echo heard >&2; exec \"$0\"", %q], "env": {%q: "everything"}}}}`, self, mcptest.ServerVariable))
	client := d.talk()
	if answer := client.ask(2, "tools/call", `{"name":"every__echo","arguments":{"text":"hello"}}`); !strings.Contains(
		answer, "hello") {
		t.Fatal(answer)
	}

	table, _ := d.run(0, "ps")
	// the call may be answered before the list is
	for until := time.Now().Add(time.Minute); !strings.Contains(table, "every   ready") && time.Now().Before(until); {
		table, _ = d.run(0, "ps")
	}
	for _, want := range []string{
		fmt.Sprintf("hub: process %d, since ", os.Getpid()), "CLIENT  PID", "test ", "stdio", "~/project",
		"SERVER  STATE", "every   ready", "~/.config/drawbridge/mcp.json:1",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("ps does not show %q:\n%s", want, table)
		}
	}
	s := d.state()
	if len(s.Clients) != 1 || len(s.Servers) != 1 || len(s.Servers[0].PIDs) == 0 || s.Servers[0].Tokens == 0 ||
		s.Servers[0].Clients != 1 {
		t.Errorf("ps --json gives %+v", s)
	}
	if out, _ := d.run(0, "logs", "every"); !strings.HasPrefix(out, "heard\n") {
		t.Errorf("logs gives %q", out)
	}
	d.follow("every", "heard")
	if _, stderr := d.run(2, "logs", "evry"); !strings.Contains(stderr,
		`Server "evry" not found. Did you mean "every"?`) {
		t.Errorf("logs of what is not there: %s", stderr)
	}
	if out, _ := d.run(0, "doctor"); !strings.Contains(out, fmt.Sprintf("the hub is process %d ", os.Getpid())) {
		t.Errorf("doctor says nothing of the hub:\n%s", out)
	}

	d.write(".cursor/mcp.json", `{"mcpServers": {"second": {"command": "sh", "args": ["-c", "exit 3"]}}}`)
	d.run(0, "import", "--yes")
	if s := d.state(); len(s.Servers) != 2 || s.Servers[1].Server != "second" {
		t.Errorf("after an import the hub has %+v", s.Servers)
	}
}

func (d *desk) state() (s hub.State) {
	d.t.Helper()
	out, _ := d.run(0, "ps", "--json")
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		d.t.Fatal(err)
	}
	return s
}

// follow follows a server's log until the line is seen, and ends that as Ctrl-C does.
func (d *desk) follow(server, line string) {
	d.t.Helper()
	ctx, interrupt := context.WithCancel(d.t.Context())
	defer interrupt()
	out, writer := io.Pipe()
	codes := make(chan int, 1)
	go func() {
		codes <- cli.Main(ctx, []string{"logs", "-f", server}, d.process(strings.NewReader(""), writer, io.Discard))
		_ = writer.Close()
	}()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == line {
			interrupt()
		}
	}
	if code := <-codes; code != 0 || ctx.Err() == nil {
		d.t.Errorf("logs -f ended with %d, %v", code, ctx.Err())
	}
}

// TestDoctorFindsAHubThatDoesNotAnswer has the place of the hub held by somebody who is silent, and left by one who
// died.
func TestDoctorFindsAHubThatDoesNotAnswer(t *testing.T) {
	d := newDesk(t)
	place := ".local/state/drawbridge/drawbridge.db.hub"
	d.write(place, fmt.Sprintf(`{"pid":%d,"socket":"/nowhere/hub.sock"}`, os.Getpid()))
	if out, _ := d.run(0, "doctor"); !strings.Contains(out,
		fmt.Sprintf("none runs; the last one, process %d, was killed", os.Getpid())) {
		t.Errorf("doctor says nothing of the stale file:\n%s", out)
	}
	holdLock(t, d.home+"/"+place)
	want := fmt.Sprintf(
		"process %d is the hub, and does not answer\n    → end it, and the next client starts another: kill %d",
		os.Getpid(), os.Getpid())
	if out, _ := d.run(1, "doctor"); !strings.Contains(out, want) {
		t.Errorf("doctor does not say %q:\n%s", want, out)
	}
}

// holdLock holds a file's lock until the end of the test.
func holdLock(t *testing.T, path string) {
	t.Helper()
	lock := flock.New(path)
	if ok, err := lock.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	t.Cleanup(func() { _ = lock.Close() })
}
