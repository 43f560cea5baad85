//go:build unix

package hub_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/mcptest"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

func TestTenServesShareFiveServers(t *testing.T) {
	names := []string{"everything-legacy_1", "everything-legacy_2", "everything-legacy_3", "everything-legacy_4", "everything-legacy_5"}
	h := newHouse(t, names...)
	var hosts []*host
	for range 10 {
		hosts = append(hosts, h.open().initialize(`{}`))
	}
	for i, x := range hosts {
		for _, name := range names {
			want := fmt.Sprintf("%d %s", i, name)
			if got := x.call(name+"__echo", fmt.Sprintf(`{"text":%q}`, want)); got != want {
				t.Errorf("host %d heard %q", i, got)
			}
		}
	}
	s := h.state(func(s hub.State) bool { return len(s.Clients) == 10 })
	if pids := pidsOf(s); len(pids) != 5 {
		t.Errorf("%d server processes for ten hosts: %v", len(pids), pids)
	}
	for _, one := range s.Servers {
		if one.Clients != 10 || one.Tokens == 0 || one.Memory == 0 {
			t.Errorf("%s: %d clients, %d tokens, %d bytes", one.Server, one.Clients, one.Tokens, one.Memory)
		}
	}
	if s.PID != hosts[0].pid() {
		t.Errorf("process %d is the hub, not the first one, %d", s.PID, hosts[0].pid())
	}
}

func TestSIGKILLOfTheHubLosesNoSession(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	first := h.open().initialize(`{}`)
	others := []*host{h.open().initialize(`{}`), h.open().initialize(`{}`), h.open().initialize(`{}`)}
	for _, x := range others {
		x.call("everything-legacy__echo", `{"text":"warm"}`)
	}
	servers := pidsOf(h.state(func(s hub.State) bool { return len(s.Clients) == 4 }))
	calls := make([]<-chan wire.Message, len(others))
	for i, x := range others {
		calls[i] = x.ask("tools/call", `{"name":"everything-legacy__slow","arguments":{"ms":600000}}`)
		x.call("everything-legacy__echo", `{"text":"the slow call is on its way"}`)
	}
	first.kill()
	for i, x := range others {
		m := x.await(calls[i])
		if !strings.Contains(textOf(m), "may have taken effect") || string(wire.Get(m.Result, "_meta", "drawbridge/fault", "ambiguous")) != "true" {
			t.Errorf("the call in flight: %s%s", m.Result, m.Error)
		}
		if got := x.call("everything-legacy__echo", `{"text":"after"}`); got != "after" {
			t.Errorf("a call after it: %q", got)
		}
	}
	gone(t, servers...)
	s := h.state(func(s hub.State) bool { return len(s.Clients) == 3 })
	if !slices.ContainsFunc(others, func(x *host) bool { return x.pid() == s.PID }) {
		t.Errorf("process %d is the hub, which is none of the shims", s.PID)
	}
	if pids := pidsOf(s); len(pids) != 1 {
		t.Errorf("server processes %v", pids)
	}
}

func TestReadsInFlightAreAskedAgain(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	first := h.open().initialize(`{}`)
	x := h.open().initialize(`{}`)
	x.call("everything-legacy__echo", `{"text":"warm"}`)
	if err := syscall.Kill(first.pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	list, read := x.ask("tools/list", `{}`), x.ask("resources/read", `{"uri":"test://greeting"}`)
	first.kill()
	if m := x.await(list); !strings.Contains(string(m.Result), "everything-legacy__echo") {
		t.Errorf("tools/list: %s%s", m.Result, m.Error)
	}
	if m := x.await(read); !strings.Contains(string(m.Result), "hello") {
		t.Errorf("resources/read: %s%s", m.Result, m.Error)
	}
}

func TestSubscriptionsOutliveTheHub(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	first := h.open().initialize(`{}`)
	x := h.open().initialize(`{}`)
	x.do("resources/subscribe", `{"uri":"test://touched"}`)
	first.kill()
	x.call("everything-legacy__touch", `{"uri":"test://touched"}`)
	for range until(t) {
		x.mu.Lock()
		told := slices.ContainsFunc(x.notes, func(m wire.Message) bool { return m.Method == wire.NoteResourceUpdated })
		x.mu.Unlock()
		if told {
			return
		}
	}
	t.Error("the new hub never said that the resource was updated")
}

func TestOneServeAfterAnotherLeavesNothing(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	hosts := []*host{h.open().initialize(`{}`), h.open().initialize(`{}`), h.open().initialize(`{}`)}
	hosts[2].call("everything-legacy__echo", `{"text":"warm"}`)
	pids := pidsOf(h.state(func(s hub.State) bool { return len(s.Clients) == 3 }))
	hosts[1].kill() // a shim
	h.state(func(s hub.State) bool { return len(s.Clients) == 2 })
	if got := hosts[2].call("everything-legacy__echo", `{"text":"still"}`); got != "still" {
		t.Errorf("after the end of another shim: %q", got)
	}
	_ = hosts[0].in.Close() // the hub's own client leaves in good order: the hub lives on for the other
	h.state(func(s hub.State) bool { return len(s.Clients) == 1 && s.PID == hosts[0].pid() })
	if got := hosts[2].call("everything-legacy__echo", `{"text":"on"}`); got != "on" {
		t.Errorf("after the end of the hub's own client: %q", got)
	}
	_ = hosts[2].in.Close()
	for _, x := range hosts {
		<-x.ended
	}
	gone(t, pids...)
	if _, err := hub.ReadState(h.options()); err != hub.ErrNone {
		t.Errorf("after the end of all: %v", err)
	}
}

func TestSIGTERMHandsOver(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	first := h.open().initialize(`{}`)
	x := h.open().initialize(`{}`)
	listen := x.ask("subscriptions/listen", `{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`)
	x.call("everything-legacy__echo", `{"text":"warm"}`)
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-first.ended
	if got := x.call("everything-legacy__echo", `{"text":"after"}`); got != "after" {
		t.Errorf("after the hub was told to end: %q", got)
	}
	select {
	case m := <-listen:
		t.Errorf("the listening request was answered: %s%s", m.Result, m.Error)
	default:
	}
	x.mu.Lock()
	delete(x.answers, "2")
	x.answers["2"] = make(chan wire.Message, 1) // its end comes with the end of input
	x.mu.Unlock()
}

func TestEachClientHasItsOwnServers(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	x := h.open().initialize(`{}`)
	other := *h
	other.dir = filepath.Join(h.home, "other")
	if err := os.MkdirAll(other.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	row := string(mcptest.Row(t, "everything-legacy"))
	own := filepath.Join(h.home, "own.json")
	if err := os.WriteFile(own, []byte(`{"servers":{"mine":`+row+`,"everything":`+row+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = own
	y := other.open().initialize(`{}`)
	for _, z := range []*host{x, y} {
		if got := z.call("everything-legacy__echo", `{"text":"hi"}`); got != "hi" {
			t.Errorf("got %q", got)
		}
	}
	s := h.state(func(s hub.State) bool { return len(s.Clients) == 2 })
	if pids := pidsOf(s); len(pids) != 1 {
		t.Errorf("two directories with nothing of their own have processes %v", pids)
	}
}

func TestQuestionsReachTheirOwnClient(t *testing.T) {
	h := newHouse(t, "talker")
	quiet := h.open().initialize(`{}`)
	var hosts []*host
	for i := range 3 {
		x := h.open()
		x.onAsk = func(wire.Message) string { return fmt.Sprintf(`{"action":"accept","content":{"answer":"%d"}}`, i) }
		hosts = append(hosts, x.initialize(`{"elicitation":{}}`))
	}
	m := quiet.do("tools/list", `{}`)
	t.Logf("%.300s", m.Result)
	_ = hosts
}
