//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/cli"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// noteScript writes one note without a question and two that are asked for.
const noteScript = `import random, time
first = random.random(), time.time_ns()
free = tools.notes.note(text="free")
asked = [tools.notes.note(text="asked %d" % i) for i in (1, 2)]
print(free["lines"], [a["lines"] for a in asked], first == first)
`

// noteRules ask for the notes that begin with "asked".
const noteRules = `[mcp.tool_discovery]
mode = "code"

[[tools.policy.rules]]
effect = "ask"
tools = "notes__note"
args.text = "asked*"
`

// noteDesk returns a desk with the server "notes", and the file to which it writes.
func noteDesk(t *testing.T) (d *desk, file string) {
	t.Helper()
	d = newDesk(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(d.home, "notes.txt")
	d.write(".config/drawbridge/mcp.json", fmt.Sprintf(`{"servers": {"notes": {"command": %q, "args": [%q], "env": {%q: "notes"}}}}`,
		self, file, mcptest.ServerVariable))
	d.write(".config/drawbridge/drawbridge.toml", noteRules)
	d.write("project/notes.py", noteScript)
	cache, err := os.UserCacheDir() // the interpreter is compiled once for all tests
	if err != nil {
		t.Fatal(err)
	}
	d.env["XDG_CACHE_HOME"] = cache
	return d, file
}

// until waits for the time of the test until f returns true.
func (d *desk) until(what string, f func() bool) {
	d.t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !f() {
		select {
		case <-poll.C:
		case <-time.After(20 * time.Second):
			d.t.Fatalf("waited for %s", what)
		}
	}
}

// startHub starts a hub in a process of its own. The function that it returns ends it with SIGKILL.
func (d *desk) startHub() (kill func()) {
	d.t.Helper()
	self, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args, cmd.Dir, cmd.Env = []string{"drawbridge", "serve"}, d.project, d.process(nil, nil, nil).Environ
	in, err := cmd.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = in.Close()
		_ = cmd.Wait() // it was killed
	})
	d.t.Cleanup(kill)
	// Its answer shows that it is the hub.
	if _, err := fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); err != nil {
		d.t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		d.t.Fatal(err)
	}
	return kill
}

func wantNotes(t *testing.T, file string, want ...string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSpace(string(text)), "\n"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the notes are %q, want %q", got, want)
	}
}

// A finished is how a command ended.
type finished struct {
	code        int
	out, stderr bytes.Buffer
}

// begin starts a command; the channel gets its end.
func (d *desk) begin(args ...string) <-chan *finished {
	done := make(chan *finished, 1)
	go func() {
		f := &finished{}
		f.code = cli.Main(d.t.Context(), args, d.process(strings.NewReader(""), &f.out, &f.stderr))
		done <- f
	}()
	return done
}

// TestAKilledRunIsResumed kills the hub while a person is asked about the calls of a script, and resumes the run: what was
// done before is not done again.
func TestAKilledRunIsResumed(t *testing.T) {
	d, file := noteDesk(t)
	kill := d.startHub()
	run := d.begin("run", filepath.Join(d.project, "notes.py"))
	asked := d.waiting()
	wantNotes(t, file, "free")
	kill()
	f := <-run
	id := regexp.MustCompile(`drawbridge run --resume ([a-z0-9]+)`).FindStringSubmatch(f.stderr.String())
	if f.code != 1 || id == nil {
		t.Fatalf("the interrupted command: %d, %s%s", f.code, &f.out, &f.stderr)
	}
	d.run(1, "run", "--resume", "unknown")
	run = d.begin("run", "--resume", id[1])
	d.run(0, "ask", "allow", asked) // the person is not asked twice
	if f = <-run; f.code != 0 || f.out.String() != "1 [2, 3] True\n" {
		t.Errorf("the resumed command: %d, %s%s", f.code, &f.out, &f.stderr)
	}
	wantNotes(t, file, "free", "asked 1", "asked 2")
	if _, stderr := d.run(1, "run", "--resume", id[1]); !strings.Contains(stderr, "no interrupted run "+id[1]) {
		t.Errorf("a run that has ended is resumed: %s", stderr)
	}
}

// TestAClientGetsTheResultOfAKilledRun does the same with a client of "serve": the call that it made goes on at the next
// hub, and is answered.
func TestAClientGetsTheResultOfAKilledRun(t *testing.T) {
	d, file := noteDesk(t)
	kill := d.startHub()
	client := d.talk()
	arguments, err := json.Marshal(map[string]string{"code": noteScript})
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan string, 1)
	go func() {
		answer <- client.ask(7, "tools/call", fmt.Sprintf(`{"name":"run_python","arguments":%s}`, arguments))
	}()
	asked := d.waiting()
	wantNotes(t, file, "free")
	kill()
	d.run(0, "ask", "allow", asked) // the person is not asked twice
	if text := <-answer; !strings.Contains(text, `1 [2, 3] True\n`) {
		t.Error(text)
	}
	wantNotes(t, file, "free", "asked 1", "asked 2")
}

// TestAKilledCallThatDidNotWaitIsNotRepeated kills the hub during a call of a script that no person was asked about: the
// client is told that the outcome is unknown.
func TestAKilledCallThatDidNotWaitIsNotRepeated(t *testing.T) {
	d, file := noteDesk(t)
	kill := d.startHub()
	client := d.talk()
	answer := make(chan string, 1)
	go func() {
		answer <- client.ask(7, "tools/call",
			`{"name":"run_python","arguments":{"code":"tools.notes.note(text='free')\nwhile True: pass"}}`)
	}()
	d.until("the note", func() bool { _, err := os.Stat(file); return err == nil })
	kill()
	if text := <-answer; !strings.Contains(text, "may have taken effect") || !strings.Contains(text, `"ambiguous":true`) {
		t.Error(text)
	}
	wantNotes(t, file, "free")
}

// TestATaskOfAKilledRunIsResumed does the same with a client that is connected by HTTP alone, and polls the task of its
// call.
func TestATaskOfAKilledRunIsResumed(t *testing.T) {
	d, file := noteDesk(t)
	post, kill := d.serveHTTP()
	arguments, err := json.Marshal(map[string]string{"code": noteScript})
	if err != nil {
		t.Fatal(err)
	}
	created := post("tools/call", fmt.Sprintf(`"name":"run_python","arguments":%s`, arguments))
	id := rawjson.GetString(created, "result", "taskId")
	if rawjson.GetString(created, "result", "resultType") != "task" || id == "" {
		t.Fatalf("%s", created)
	}
	asked := d.waiting()
	wantNotes(t, file, "free")
	kill()
	post, _ = d.serveHTTP()
	task := post("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
	if rawjson.GetString(task, "result", "status") != "working" {
		t.Fatalf("after the restart: %s", task)
	}
	d.run(0, "ask", "allow", asked) // the person is not asked twice
	d.until("the end of the task", func() bool {
		task = post("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
		return rawjson.GetString(task, "result", "status") != "working"
	})
	if out := rawjson.GetString(task, "result", "result", "structuredContent", "stdout"); out != "1 [2, 3] True\n" {
		t.Errorf("%s", task)
	}
	wantNotes(t, file, "free", "asked 1", "asked 2")
}

// serveHTTP starts "serve --http" in a process of its own. post sends a request of a stateless client that knows tasks,
// with these members of params, and returns the response. kill ends the process with SIGKILL.
func (d *desk) serveHTTP() (post func(method, params string) json.RawMessage, kill func()) {
	d.t.Helper()
	self, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args, cmd.Dir = []string{"drawbridge", "serve", "--http", "127.0.0.1:0"}, d.project
	cmd.Env = d.process(nil, nil, nil).Environ
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed
	})
	d.t.Cleanup(kill)
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		d.t.Fatal(err)
	}
	address = strings.TrimSpace(address)
	return func(method, params string) json.RawMessage {
		d.t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":`+
			`"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
			`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, method, params)
		r, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			d.t.Fatal(err)
		}
		name := rawjson.GetString(json.RawMessage(body), "params", "name")
		if name == "" {
			name = rawjson.GetString(json.RawMessage(body), "params", "taskId")
		}
		for key, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			mcp.HeaderVersion: mcp.Version20260728, mcp.HeaderMethod: method, "Mcp-Name": name} {
			r.Header.Set(key, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			d.t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			d.t.Fatal(err)
		}
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			for events := mcp.NewSSEReader(bytes.NewReader(text), 0); ; {
				e, err := events.Next()
				if err != nil {
					d.t.Fatalf("no response in %s: %v", text, err)
				}
				if rawjson.Get(e.Data, "id") != nil {
					return e.Data
				}
			}
		}
		return text
	}, kill
}
