//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/cli"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestSubAgentAtTheHub has a sub-agent with tools at the hub: it may call less than its parent, its calls are on record
// under its ID, and the end of the run reaches its tools.
func TestSubAgentAtTheHub(t *testing.T) {
	d := newDesk(t)
	m := agentHome(t, d.home)
	began := filepath.Join(d.project, "began")
	m.answersWith(func(role, text string) (answer, tool, arguments string) {
		switch {
		case role == "user" && strings.HasPrefix(text, "delegate"):
			return "", "task", `{"objective":"sub","tools":["ba*"]}`
		case role == "user":
			return "", "every__echo", `{"text":"ping"}`
		}
		return "", "bash", `{"command":"echo $$ > began.new; mv began.new began; sleep 600"}` // after the refusal
	})
	d.startHub()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, writer := io.Pipe()
	codes := make(chan int, 1)
	go func() {
		codes <- cli.Main(ctx, []string{"-p", "--output-format", "stream-json", "--permission-mode", "bypass", "delegate"},
			d.process(strings.NewReader(""), writer, io.Discard))
		_ = writer.Close()
	}()
	refused, cancelled, session := "", "", ""
	lines := bufio.NewScanner(out)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var e agent.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		session = e.Session
		switch {
		case e.Kind == agent.ToolFinished && e.Agent == "1" && e.Call.Name == "every__echo":
			refused = e.Result.Text
		case e.Kind == agent.ToolFinished && e.Agent == "1":
			cancelled = e.Result.Text
		case e.Kind == agent.ToolStarted && e.Agent == "1":
			d.until("the command runs", func() bool { _, err := os.Stat(began); return err == nil })
			interrupt()
		}
	}
	if code := <-codes; code == 0 || !strings.Contains(refused, `exposes no tool called "every__echo"`) || !strings.HasPrefix(cancelled, "This call was cancelled") {
		t.Errorf("code %d, %q, %q", code, refused, cancelled)
	}
	text, err := os.ReadFile(began)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	d.until("the command has ended", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	var records []struct {
		Card   string
		Caller struct{ Thread, Run, Rights string }
	}
	d.until("the records of both calls", func() bool {
		out, _ := d.run(0, "audit", "log", "--json")
		if err := json.Unmarshal([]byte(out), &records); err != nil {
			t.Fatal(err)
		}
		return len(records) > 1
	})
	for _, r := range records {
		want, rights := session, `{"mode":"bypass"}`
		if r.Card == "bash" {
			want, rights = session+"/1", `{"mode":"bypass","tools":[["ba*"]]}`
		}
		if r.Caller.Thread != session || r.Caller.Run != want || r.Caller.Rights != rights {
			t.Errorf("the record of %s has %+v", r.Card, r.Caller)
		}
	}
	if len(records) != 2 {
		t.Errorf("the records are %+v", records)
	}
}

// A stopped is a request to the model that waits for the test, with the names of its tools.
type stopped struct {
	tools []string
	last  string
	goOn  chan<- [2]string // a call and its arguments, or a text
}

// stopsAt makes each request to the model wait for the test.
func stopsAt(m *fakeModel) <-chan stopped {
	requests := make(chan stopped)
	m.answersWith(func(_, text string) (answer, tool, arguments string) {
		var request struct {
			Tools []struct{ Function struct{ Name string } }
		}
		all := m.seen()
		_ = json.Unmarshal([]byte(all[len(all)-1]), &request) // the test compares the names
		next := make(chan [2]string)
		s := stopped{last: text, goOn: next}
		for _, t := range request.Tools {
			s.tools = append(s.tools, t.Function.Name)
		}
		requests <- s
		if a := <-next; a[1] != "" {
			return "", a[0], a[1]
		} else {
			return a[0], "", ""
		}
	})
	return requests
}

// TestReloadDuringASession has the hub reload its configuration while a session runs: the next turn has the tools of the
// new server after those that the model knows, and they can be called.
func TestReloadDuringASession(t *testing.T) {
	d := newDesk(t)
	requests := stopsAt(agentHome(t, d.home))
	d.startHub()
	run := d.begin("-p", "--permission-mode", "bypass", "append lines to the file: one, two, reloaded")
	first := <-requests
	first.goOn <- [2]string{"every__echo", `{"text":"one"}`}
	second := <-requests
	config, err := os.ReadFile(filepath.Join(d.home, ".config/drawbridge/mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows struct {
		Servers map[string]json.RawMessage `json:"servers"`
	}
	if err := json.Unmarshal(config, &rows); err != nil {
		t.Fatal(err)
	}
	rows.Servers["later"] = mcptest.ServerRow(t, "notes", filepath.Join(d.home, "notes"))
	d.writeJSON(".config/drawbridge/mcp.json", rows)
	d.run(0, "mcp", "reload")
	d.until("the new server is listed", func() bool {
		out, _ := d.run(0, "tools", "list")
		return strings.Contains(out, "later__note")
	})
	second.goOn <- [2]string{"every__echo", `{"text":"two"}`}
	third := <-requests
	if n := len(first.tools); !slices.Equal(second.tools, first.tools) || !slices.Equal(third.tools, append(slices.Clone(first.tools), "later__note")) {
		t.Errorf("the turns have %d, %d and %d tools: %q", n, len(second.tools), len(third.tools), third.tools)
	}
	third.goOn <- [2]string{"later__note", `{"text":"reloaded"}`}
	fourth := <-requests
	fourth.goOn <- [2]string{"done"}
	if f := <-run; f.code != 0 || !strings.Contains(f.out.String(), "done") {
		t.Errorf("code %d: %s%s", f.code, &f.out, &f.stderr)
	}
	wantNotes(t, filepath.Join(d.home, "notes"), "reloaded")
}

// TestTheHubEndsDuringASession kills the hub, while a call runs and before one: the outcome of the first is unknown, the
// run ends with an error that says what to do, and the session goes on afterwards.
func TestTheHubEndsDuringASession(t *testing.T) {
	for _, during := range []bool{false, true} {
		t.Run(fmt.Sprint("during a call ", during), func(t *testing.T) {
			d := newDesk(t)
			requests := stopsAt(agentHome(t, d.home))
			kill := d.startHub()
			run := d.begin("-p", "--permission-mode", "bypass", "--output-format", "stream-json", "go")
			first := <-requests
			want := "reach the hub: the hub has ended"
			if during {
				want = "The outcome of this call is unknown"
				first.goOn <- [2]string{"bash", `{"command":"touch began; sleep 600"}`}
				d.until("the command runs", func() bool { _, err := os.Stat(filepath.Join(d.project, "began")); return err == nil })
				kill()
			} else {
				kill()
				first.goOn <- [2]string{"every__echo", `{"text":"one"}`}
			}
			f := <-run
			if out := f.out.String(); f.code != 1 || !strings.Contains(out, want) || !strings.Contains(f.stderr.String(), "start the session again") {
				t.Errorf("code %d: %s%s", f.code, out, &f.stderr)
			}
			again := d.begin("-p", "-c", "--permission-mode", "bypass", "once more")
			next := <-requests
			next.goOn <- [2]string{"every__echo", `{"text":"two"}`}
			last := <-requests
			if !strings.Contains(last.last, "two") {
				t.Errorf("the result is %s", last.last)
			}
			last.goOn <- [2]string{"done"}
			if f := <-again; f.code != 0 {
				t.Errorf("code %d: %s", f.code, &f.stderr)
			}
		})
	}
}
