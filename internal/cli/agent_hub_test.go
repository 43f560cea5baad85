//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/cli"
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
