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

	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

func TestTenServesShareFiveServers(t *testing.T) {
	names := []string{"everything-legacy_1", "everything-legacy_2", "everything-legacy_3", "everything-legacy_4",
		"everything-legacy_5"}
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

func TestSIGKILLOfTheHubLosesNoSession(t *testing.T) { onBothDoors(t, sIGKILLOfTheHubLosesNoSession) }

func sIGKILLOfTheHubLosesNoSession(t *testing.T, door string) {
	h := newHouse(t, "everything-legacy")
	h.door = door
	first := h.open().initialize(`{}`)
	others := []*host{h.open().initialize(`{}`), h.open().initialize(`{}`), h.open().initialize(`{}`)}
	for _, x := range others {
		x.call("everything-legacy__echo", `{"text":"warm"}`)
	}
	servers := pidsOf(h.state(func(s hub.State) bool { return len(s.Clients) == 4 }))
	calls := make([]<-chan mcp.Message, len(others))
	for i, x := range others {
		calls[i] = x.ask("tools/call", `{"name":"everything-legacy__slow","arguments":{"ms":600000}}`)
		x.call("everything-legacy__echo", `{"text":"the slow call is on its way"}`)
	}
	first.kill()
	for i, x := range others {
		m := x.await(calls[i])
		if !strings.Contains(textOf(m), "may have taken effect") ||
			string(rawjson.Get(m.Result, "_meta", "drawbridge/fault", "ambiguous")) != "true" {
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

func TestReadsInFlightAreAskedAgain(t *testing.T) { onBothDoors(t, readsInFlightAreAskedAgain) }

func readsInFlightAreAskedAgain(t *testing.T, door string) {
	h := newHouse(t, "everything-legacy")
	h.door = door
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

func TestSubscriptionsOutliveTheHub(t *testing.T) { onBothDoors(t, subscriptionsOutliveTheHub) }

func subscriptionsOutliveTheHub(t *testing.T, door string) {
	h := newHouse(t, "everything-legacy")
	h.door = door
	first := h.open().initialize(`{}`)
	x := h.open().initialize(`{}`)
	x.do("resources/subscribe", `{"uri":"test://touched"}`)
	first.kill()
	h.state(func(s hub.State) bool { return len(s.Clients) == 1 }) // else the call may be in the dead hub's hands
	x.call("everything-legacy__touch", `{"uri":"test://touched"}`)
	for range until(t) {
		x.mu.Lock()
		told := slices.ContainsFunc(x.notes, func(m mcp.Message) bool { return m.Method == mcp.NoteResourceUpdated })
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
	if _, err := hub.ReadState(h.options()); err != hub.ErrNoHub {
		t.Errorf("after the end of all: %v", err)
	}
}

func TestSIGTERMHandsOver(t *testing.T) { onBothDoors(t, sIGTERMHandsOver) }

func sIGTERMHandsOver(t *testing.T, door string) {
	h := newHouse(t, "everything-legacy")
	h.door = door
	first := h.open().initialize(`{}`)
	x := h.open().initialize(`{}`)
	listen := x.ask("subscriptions/listen",
		`{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`)
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
	x.answers["2"] = make(chan mcp.Message, 1) // its end comes with the end of input
	x.mu.Unlock()
}

func TestEachClientHasItsOwnServers(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	x := h.open().initialize(`{}`)
	other := h.in("other")
	named := filepath.Join(h.home, "named.json")
	row := string(mcptest.ServerRow(t, "everything-legacy"))
	if err := os.WriteFile(named, []byte(`{"servers":{"mine":`+row+`,"everything-legacy":`+row+`}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	y := other.open().initialize(`{}`)
	z := other.open("--mcp", named).initialize(`{}`)
	for _, one := range []*host{x, y, z} {
		if got := one.call("everything-legacy__echo", `{"text":"hi"}`); got != "hi" {
			t.Errorf("got %q", got)
		}
	}
	if got := z.call("mine__echo", `{"text":"mine"}`); got != "mine" {
		t.Errorf("the client that has the server: %q", got)
	}
	if m := x.do("tools/call", `{"name":"mine__echo","arguments":{"text":"theirs"}}`); m.Error == nil {
		t.Errorf("a client that does not have the server: %s", m.Result)
	}
	s := h.state(func(s hub.State) bool { return len(s.Clients) == 3 })
	if pids := pidsOf(s); len(pids) != 3 {
		t.Errorf("processes %v; want one for the two that share, and two for the one with rows of its own", pids)
	}
}

func TestQuestionsReachTheirOwnClient(t *testing.T) { onBothDoors(t, questionsReachTheirOwnClient) }

func questionsReachTheirOwnClient(t *testing.T, door string) {
	h := newHouse(t, "everything-legacy")
	h.door = door
	quiet := h.open().initialize(`{}`)
	var hosts []*host
	for i := range 3 {
		x := h.open()
		x.onAsk = func(mcp.Message) string {
			return fmt.Sprintf(`{"action":"accept","content":{"name":"client %d"}}`,
				i)
		}
		hosts = append(hosts, x.initialize(`{"elicitation":{}}`))
	}
	askAll := func() {
		t.Helper()
		for i, x := range hosts {
			if got, want := x.call("everything-legacy__ask-elicitation", `{"message":"who?"}`), fmt.Sprintf("client %d",
				i); !strings.Contains(got, want) {
				t.Errorf("client %d heard %q", i, got)
			}
		}
	}
	askAll()
	if quiet.call("everything-legacy__echo", `{"text":"x"}`); len(quiet.asked) > 0 {
		t.Errorf("a client that declares nothing was asked %d times", len(quiet.asked))
	}
	// It declares nothing and is the hub: after its end the next one is, whose questions go by other ids.
	// A call that is made before its shim has noticed may be in the dead one's hands.
	quiet.kill()
	h.state(func(s hub.State) bool { return len(s.Clients) == len(hosts) })
	askAll()
}

func TestAnApprovedRowOfOneDirectoryIsForItsClientsOnly(t *testing.T) {
	onBothDoors(t, anApprovedRowOfOneDirectoryIsForItsClientsOnly)
}

func anApprovedRowOfOneDirectoryIsForItsClientsOnly(t *testing.T, door string) {
	h := newHouse(t, "everything-legacy")
	h.door = door
	x := h.open().initialize(`{}`)
	project := h.in("project")
	// The file is there before the hub watches the directory: else the hub could read the approval before it is asked to.
	file := filepath.Join(project.dir, ".mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"extra":`+string(mcptest.ServerRow(t, "everything-legacy"))+
		`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	y := project.open().initialize(`{}`)
	for _, one := range []*host{x, y} {
		one.call("everything-legacy__echo", `{"text":"warm"}`)
	}
	if r, err := hub.Reload(h.options()); err != nil || !r.IsEmpty() || r.MovedClients > 0 {
		t.Errorf("a row that nobody approved: %+v, %v", r, err)
	}
	project.approve("extra")
	slow := y.ask("tools/call", `{"name":"everything-legacy__slow","arguments":{"ms":300}}`)
	r, err := hub.Reload(h.options())
	if err != nil || r.MovedClients != 1 {
		t.Errorf("after the approval: %+v, %v", r, err)
	}
	if got := textOf(y.await(slow)); got != "waited 300 ms" {
		t.Errorf("the call in flight: %q", got)
	}
	for range until(t) {
		if got := y.call("extra__echo", `{"text":"new"}`); got == "new" {
			break
		}
	}
	if !y.told(mcp.NoteToolsChanged) {
		t.Error("the client was not told that its tools changed")
	}
	if m := x.do("tools/call", `{"name":"extra__echo","arguments":{"text":"theirs"}}`); m.Error == nil {
		t.Errorf("a client in another directory: %s", m.Result)
	}
}

// TestLiveChanges changes the configuration under a client with 32 calls in flight.
func TestLiveChanges(t *testing.T) { onBothDoors(t, liveChanges) }

func liveChanges(t *testing.T, door string) {
	h := newHouse(t, "everything-legacy_stays", "everything-legacy_goes")
	h.door = door
	for name, x := range map[string]*host{"the hub's own client": h.open().initialize(`{}`),
		"a shim's": h.open().initialize(`{}`)} {
		t.Run(name, func(t *testing.T) {
			h.write("everything-legacy_stays", "everything-legacy_goes")
			for range until(t) {
				if x.call("everything-legacy_goes__echo", `{"text":"warm"}`) == "warm" {
					break
				}
			}
			x.call("everything-legacy_stays__echo", `{"text":"warm"}`)
			pids := map[string][]int{}
			for _, one := range h.state(func(hub.State) bool { return true }).Servers {
				pids[string(one.Server)] = one.PIDs
			}
			x.forget()
			// While another client is active, a client's calls begin one by one: see server.CallPacer. When the second call
			// has ended, the first one has begun.
			going := x.ask("tools/call", `{"name":"everything-legacy_goes__slow","arguments":{"ms":400}}`)
			x.call("everything-legacy_stays__echo", `{"text":"it is on its way"}`)
			var calls []<-chan mcp.Message
			for range 32 {
				calls = append(calls,
					x.ask("tools/call", `{"name":"everything-legacy_stays__slow","arguments":{"ms":400}}`))
			}
			h.write("everything-legacy_stays", "everything-legacy_comes")
			for range until(t) {
				if x.told(mcp.NoteToolsChanged) && x.call("everything-legacy_comes__echo",
					`{"text":"here"}`) == "here" {
					break
				}
			}
			for _, c := range append(calls, going) {
				if got := textOf(x.await(c)); got != "waited 400 ms" {
					t.Errorf("a call in flight: %q", got)
				}
			}
			if m := x.do("tools/call",
				`{"name":"everything-legacy_goes__echo","arguments":{"text":"x"}}`); m.Error == nil {
				t.Errorf("a server that was taken out answers %s", m.Result)
			}
			// the server that did not change is not started anew; who had it before may be about to end
			h.state(func(s hub.State) bool {
				return !slices.ContainsFunc(s.Servers, func(one hub.Server) bool {
					return one.Server == "everything-legacy_stays" && !slices.Equal(one.PIDs, pids[string(one.Server)])
				})
			})
			gone(t, pids["everything-legacy_goes"]...)
		})
	}
}

func TestHTTPThroughTheHub(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	first := h.open().initialize(`{}`)
	web := h.listen()
	if got := web.echo("one"); got != "one" {
		t.Errorf("through the hub: %q", got)
	}
	s := h.state(func(s hub.State) bool { return len(s.Clients) == 2 })
	if s.PID != first.pid() || s.Clients[1].Door != "http" {
		t.Errorf("%+v", s)
	}
	first.kill()
	for range until(t) {
		if web.echo("two") == "two" {
			break
		}
	}
	if s := h.state(func(s hub.State) bool { return len(s.Clients) == 1 }); s.PID != web.cmd.Process.Pid {
		t.Errorf("process %d is the hub", s.PID)
	}
}

func TestTwoHubsNeverRunOnOneStore(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	var hosts []*host
	for range 8 { // all at once, on a store that nobody has made yet
		hosts = append(hosts, h.open())
	}
	for range 3 {
		for _, x := range hosts {
			if m := x.do("ping", `{}`); m.Error != nil {
				t.Fatalf("ping: %s", m.Error)
			}
		}
		s := h.state(func(s hub.State) bool { return len(s.Clients) == len(hosts) })
		i := slices.IndexFunc(hosts, func(x *host) bool { return x.pid() == s.PID })
		if i < 0 {
			t.Fatalf("process %d is the hub", s.PID)
		}
		hosts[i].kill()
		hosts = slices.Delete(hosts, i, i+1)
	}
}

// TestEveryRequestIsAnswered kills one hub after another under a client that never stops asking, with small messages
// and with large ones: each request has an answer, which is the right one or says that nobody knows.
func TestEveryRequestIsAnswered(t *testing.T) { onBothDoors(t, everyRequestIsAnswered) }

func everyRequestIsAnswered(t *testing.T, door string) {
	h := newHouse(t, "everything-legacy")
	h.door = door
	var hubs []*host
	for range 4 {
		hubs = append(hubs, h.open().initialize(`{}`))
	}
	x := h.open().initialize(`{}`)
	x.call("everything-legacy__echo", `{"text":"warm"}`)
	x.cut = len(hubs)
	type sent struct {
		text string
		c    <-chan mcp.Message
	}
	asked := make(chan sent, 4096)
	go func() {
		defer close(asked)
		for i := range 1200 {
			text := fmt.Sprintf("%d ", i) + strings.Repeat("x", []int{10, 100, 6000, 90_000}[i%4])
			asked <- sent{text,
				x.ask("tools/call", fmt.Sprintf(`{"name":"everything-legacy__echo","arguments":{"text":%q}}`, text))}
			if i%300 == 299 {
				hubs[i/300].kill()
			}
		}
	}()
	unknown, away := 0, 0
	for one := range asked {
		switch got := textOf(x.await(one.c)); {
		case strings.Contains(got, "may have taken effect"):
			unknown++
		case strings.Contains(got, "retry"):
			if away++; away == 1 {
				t.Log(got)
			}
		case got != one.text:
			t.Errorf("got %.60q, want %.60q", got, one.text)
		}
	}
	t.Logf("of 1200 calls %d were in the hands of a hub that died, and %d were not made", unknown, away)
}

// TestAnHTTPDoorMoves has the configuration of one directory change, in which somebody serves over HTTP.
func TestAnHTTPDoorMoves(t *testing.T) {
	h := newHouse(t, "everything-legacy")
	first := h.listen()
	project := h.in("project")
	second := project.listen()
	for _, w := range []*web{first, second} {
		for range until(t) {
			if w.echo("warm") == "warm" {
				break
			}
		}
	}
	for _, c := range h.state(func(s hub.State) bool { return len(s.Clients) == 2 }).Clients {
		if c.Door != "http" {
			t.Errorf("%+v", c)
		}
	}
	file := filepath.Join(project.dir, ".mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"extra":`+string(mcptest.ServerRow(t, "everything-legacy"))+
		`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	project.approve("extra")
	// The hub reads a changed file by itself after 100 ms, and then has moved the client before this reload.
	if r, err := hub.Reload(h.options()); err != nil || r.MovedClients > 1 {
		t.Errorf("after the approval: %+v, %v", r, err)
	}
	if r, err := hub.Reload(h.options()); err != nil || r.MovedClients != 0 {
		t.Errorf("the client is moved again: %+v, %v", r, err)
	}
	for range until(t) {
		if second.call("extra__echo", "there") == "there" {
			break
		}
	}
	if got := second.call("extra__echo", "there"); got != "there" {
		t.Errorf("in the directory: %q", got)
	}
	if got := first.call("extra__echo", "there"); got == "there" {
		t.Error("a door of another directory has the server")
	}
}
