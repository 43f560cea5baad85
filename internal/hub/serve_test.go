//go:build unix

package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"go.uber.org/goleak"
)

// role has what a process of the tests is to do: "stdio", "through", which is that on pipes that cannot be lent, or
// "http".
const role = "HUBTEST_ROLE"

func TestMain(m *testing.M) {
	gateway.RunReaperProcess()
	mcptest.RunIfNamedServer()
	_ = os.Setenv(gateway.KeychainVariable, "off") // the machine's own is not ours to try
	if door := os.Getenv(role); door != "" {
		os.Exit(serve(door, os.Args[1], os.Args[2], os.Args[3:]))
	}
	goleak.VerifyTestMain(m)
}

// options are those of a "serve" on a store and a directory.
func options(store, dir string) hub.Options {
	return hub.Options{Config: gateway.Config{Store: store, Dir: dir, Version: "test"}, Host: "test"}
}

// serve is what "drawbridge serve" does.
func serve(door, store, dir string, more []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o := options(store, dir)
	if len(more) == 2 {
		o.Config.Paths = more[1:]
	}
	var err error
	switch door {
	case "http":
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			err = hub.ServeHTTP(ctx, o, l.(*net.TCPListener), func() { fmt.Println(l.Addr()) })
		}
	case "through":
		err = hub.ServeStdio(ctx, o, struct{ io.Reader }{os.Stdin}, struct{ io.Writer }{os.Stdout})
	default:
		err = hub.ServeStdio(ctx, o, os.Stdin, os.Stdout)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A house is a home with a configuration, a project in it, and a store.
type house struct {
	t          *testing.T
	home, file string
	store, dir string
	door       string // of its hosts
	hosts      *[]*host
}

// onBothDoors runs a test with clients that are lent to the hub, and with clients whose messages pass through the shim.
func onBothDoors(t *testing.T, test func(t *testing.T, door string)) {
	for _, door := range []string{"stdio", "through"} {
		t.Run(door, func(t *testing.T) { test(t, door) })
	}
}

func newHouse(t *testing.T, servers ...string) *house {
	t.Helper()
	home := t.TempDir()
	h := &house{t: t, home: home, file: filepath.Join(home, ".config", "drawbridge", "mcp.json"),
		store: filepath.Join(home, "s", "drawbridge.db"), dir: filepath.Join(home, "work"), door: "stdio",
		hosts: &[]*host{}}
	t.Cleanup(func() {
		for _, x := range *h.hosts { // all at once: a hub stays for those who are attached
			_ = x.in.Close()
		}
		for _, x := range *h.hosts {
			<-x.ended
			if t.Failed() && x.errs.Len() > 0 {
				t.Logf("stderr of %d: %s", x.cmd.Process.Pid, x.errs)
			}
		}
	})
	for _, dir := range []string{filepath.Dir(h.file), h.dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.write(servers...)
	return h
}

// write configures servers, each the test server that its name begins with.
func (h *house) write(names ...string) {
	h.t.Helper()
	rows := map[string]json.RawMessage{}
	for _, name := range names {
		kind, _, _ := strings.Cut(name, "_")
		rows[name] = mcptest.ServerRow(h.t, kind)
	}
	text, err := json.Marshal(map[string]any{"mcpServers": rows})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(h.file, text, 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) options() hub.Options {
	o := options(h.store, h.dir)
	o.Config.LookupEnv = func(name string) (string, bool) {
		if name == "HOME" {
			return h.home, true
		}
		return "", false
	}
	return o
}

// state asks the hub how it is until it says what is wanted.
func (h *house) state(wanted func(hub.State) bool) hub.State {
	h.t.Helper()
	var s hub.State
	var err error
	for range until(h.t) {
		if s, err = hub.ReadState(h.options()); err == nil && wanted(s) {
			return s
		}
	}
	h.t.Fatalf("the hub never was as wanted: %+v, %v", s, err)
	return s
}

// until goes on until the test has waited too long.
func until(t *testing.T) func(func(int) bool) {
	return func(yield func(int) bool) {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		end := time.After(30 * time.Second)
		for i := 0; yield(i); i++ {
			select {
			case <-tick.C:
			case <-end:
				return
			case <-t.Context().Done():
				return
			}
		}
	}
}

// A host is an MCP client with a "serve" of its own.
type host struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{}
	errs  *strings.Builder
	cut   int // how many messages may be cut off in the middle

	mu      sync.Mutex
	next    int
	answers map[string]chan mcp.Message
	heard   map[string]string // the answers, by their ids
	notes   []mcp.Message
	asked   []mcp.Message
	onAsk   func(mcp.Message) string
}

// in is the same home, and another directory in it.
func (h *house) in(name string) *house {
	h.t.Helper()
	other := *h
	other.dir = filepath.Join(h.home, name)
	if err := os.MkdirAll(other.dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	return &other
}

// approve approves a row of the house's directory.
func (h *house) approve(id drawbridge.ServerID) {
	h.t.Helper()
	o := h.options().Config
	set, err := config.Load(config.Options{Dir: o.Dir, LookupEnv: o.LookupEnv})
	if err != nil {
		h.t.Fatal(err)
	}
	row, ok := set.Lookup(id)
	if !ok || row.Phase != drawbridge.NeedsApproval {
		h.t.Fatalf("the row is %+v", row)
	}
	if row.Program, err = gateway.ResolveProgram(row, os.Environ()); err != nil {
		h.t.Fatal(err)
	}
	db, err := store.Open(h.t.Context(), h.store, store.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer db.Close()
	if err := db.SaveRowApproval(h.t.Context(), store.RowApproval{By: gateway.CurrentApprover(),
		Path: row.Origin.Path, Server: id, Hash: row.Hash,
		Shown: row.ApprovalFacts(), Approved: true}); err != nil {
		h.t.Fatal(err)
	}
}

// A web is a serve on HTTP.
type web struct {
	t   *testing.T
	cmd *exec.Cmd
	url string
}

func (h *house) listen() *web {
	h.t.Helper()
	w := &web{t: h.t, cmd: h.start("http")}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = w.cmd.Process.Signal(syscall.SIGTERM)
		_ = w.cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.t.Fatal(err)
	}
	w.url = "http://" + strings.TrimSpace(addr) + "/mcp"
	return w
}

// echo calls the tool echo without a session, and gives its text, or what went wrong.
func (w *web) echo(text string) string { return w.call("everything-legacy__echo", text) }

// call calls a tool like echo.
func (w *web) call(name, text string) string {
	body := fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"text":%q},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, name, text)
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method":           "tools/call", "Mcp-Name": name,
	} {
		req.Header.Set(name, value)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	m, err := mcp.ParseMessage(answer)
	if err != nil {
		return string(answer)
	}
	return textOf(m)
}

func (h *house) start(door string, more ...string) *exec.Cmd {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{h.store, h.dir}, more...)...)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), role+"="+door, "HOME="+h.home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=",
		"GORACE=atexit_sleep_ms=0")
	return cmd
}

// open starts a host, which has not said anything yet.
func (h *house) open(more ...string) *host {
	h.t.Helper()
	x := &host{t: h.t, cmd: h.start(h.door, more...), ended: make(chan struct{}),
		answers: map[string]chan mcp.Message{}, heard: map[string]string{}, errs: &strings.Builder{}}
	var err error
	if x.in, err = x.cmd.StdinPipe(); err != nil {
		h.t.Fatal(err)
	}
	out, err := x.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	x.cmd.Stderr = x.errs
	if err := x.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() {
		defer close(x.ended)
		x.read(out)
		_ = x.cmd.Wait()
	}()
	*h.hosts = append(*h.hosts, x)
	return x
}

func (x *host) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		m, err := mcp.ParseMessage(slices.Clone(lines.Bytes()))
		if err != nil {
			if x.cut--; x.cut < 0 {
				x.t.Errorf("not JSON-RPC on stdout: %.200q", lines.Text())
			}
			continue
		}
		x.mu.Lock()
		switch {
		case m.IsResponse():
			c := x.answers[string(m.ID)]
			delete(x.answers, string(m.ID))
			switch {
			case c != nil:
				x.heard[string(m.ID)] = lines.Text()
				c <- m
			// a hub that died in the instant of its answers leaves open whether they were heard
			case lines.Text() != x.heard[string(m.ID)]:
				x.t.Errorf("an answer that nobody waits for: %.300s\nit was %.300s", lines.Text(),
					x.heard[string(m.ID)])
			}
		case m.IsRequest():
			x.asked = append(x.asked, m)
			if x.onAsk != nil {
				_, _ = fmt.Fprintf(x.in, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, x.onAsk(m))
			}
		default:
			x.notes = append(x.notes, m)
		}
		x.mu.Unlock()
	}
}

func (x *host) say(text string) {
	if _, err := io.WriteString(x.in, text+"\n"); err != nil {
		x.t.Errorf("write to the serve: %v", err)
	}
}

// ask sends a request and gives what its answer comes on.
func (x *host) ask(method, params string) <-chan mcp.Message {
	c := make(chan mcp.Message, 1)
	x.mu.Lock()
	x.next++
	id := x.next
	x.answers[fmt.Sprint(id)] = c
	x.mu.Unlock()
	x.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	return c
}

func (x *host) await(c <-chan mcp.Message) mcp.Message {
	x.t.Helper()
	select {
	case m := <-c:
		return m
	case <-x.ended:
		x.t.Fatalf("the serve ended: %s", x.errs)
	case <-time.After(30 * time.Second):
		x.t.Fatal("no answer")
	}
	return mcp.Message{}
}

func (x *host) do(method, params string) mcp.Message {
	x.t.Helper()
	return x.await(x.ask(method, params))
}

// initialize opens a session.
func (x *host) initialize(capabilities string) *host {
	x.t.Helper()
	m := x.do("initialize", `{"protocolVersion":"2025-06-18","capabilities":`+capabilities+
		`,"clientInfo":{"name":"host","version":"1"}}`)
	if m.Error != nil {
		x.t.Fatalf("initialize: %s", m.Error)
	}
	x.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return x
}

// call calls a tool and gives the text of its answer.
func (x *host) call(name, arguments string) string {
	x.t.Helper()
	return textOf(x.do("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments)))
}

func textOf(m mcp.Message) string {
	if m.Error != nil {
		return "error: " + rawjson.GetString(m.Error, "message")
	}
	for block := range rawjson.Elements(rawjson.Get(m.Result, "content")) {
		return rawjson.GetString(block, "text")
	}
	return string(m.Result)
}

// told says whether the client heard a notification.
func (x *host) told(method string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.ContainsFunc(x.notes, func(m mcp.Message) bool { return m.Method == method })
}

// forget forgets what the client was told.
func (x *host) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notes = nil
}

func (x *host) pid() int { return x.cmd.Process.Pid }

// kill ends a serve as a crash would.
func (x *host) kill() {
	x.t.Helper()
	if err := x.cmd.Process.Kill(); err != nil {
		x.t.Fatal(err)
	}
	<-x.ended
}

// gone waits for the end of processes.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for range until(t) {
		pids = slices.DeleteFunc(pids, func(pid int) bool { return syscall.Kill(pid, 0) != nil })
		if len(pids) == 0 {
			return
		}
	}
	t.Errorf("processes %v are still there", pids)
}

func pidsOf(s hub.State) (pids []int) {
	for _, one := range s.Servers {
		pids = append(pids, one.PIDs...)
	}
	return pids
}
