//go:build !nomcp

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	RunReaperProcess()
	mcptest.RunIfNamedServer()
	_ = os.Setenv(KeychainVariable, "off") // the machine's own is not ours to try
	goleak.VerifyTestMain(m)
}

// row is a server of the tests, as a program writes it.
func row(t testing.TB, id drawbridge.ServerID, name string, args ...string) config.Server {
	command, args, env := mcptest.ServerCommand(t, name, args...)
	// A child of a test with the race detector would sleep for a second before it ends.
	out := config.Server{ID: id, Command: command, Args: args,
		Env: []config.NameValue{{Name: "GORACE", Value: "atexit_sleep_ms=0"}}}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		out.Env = append(out.Env, config.NameValue{Name: name, Value: value})
	}
	return out
}

// open makes a gateway and runs it until the test ends.
func open(t testing.TB, c Config) *Gateway {
	t.Helper()
	g := openOnly(t, c)
	run(t, g)
	return g
}

func openOnly(t testing.TB, c Config) *Gateway {
	t.Helper()
	if c.Store == "" {
		c.Store = MemoryStore
	}
	g, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeIt(t, g) })
	return g
}

func closeIt(t testing.TB, g *Gateway) {
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// run runs the gateway in the background and returns when Run has begun; Close ends it.
func run(t testing.TB, g *Gateway) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := g.Run(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		closeIt(t, g)
		<-ended
	})
	select {
	case <-g.fleet.Running():
	case <-ended:
	}
}

func loaded(t testing.TB, g *Gateway) map[drawbridge.ServerID]error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, faults := g.MountAll(ctx)
	return faults
}

// names returns what the owner sees of the servers' tools.
func names(t testing.TB, g *Gateway) []string {
	t.Helper()
	list, err := g.Deck().List(t.Context(), g.Owner(), mcp.MethodToolsList)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, raw := range list.Items {
		if name := rawjson.GetString(raw, "name"); !strings.HasPrefix(name, "drawbridge_") {
			out = append(out, name)
		}
	}
	return out
}

// say calls a card and returns the text of its answer.
func say(t testing.TB, g *Gateway, name, arguments string) (string, error) {
	t.Helper()
	params := fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments)
	result, err := g.Deck().Call(t.Context(), drawbridge.Call{Caller: g.Owner(), Params: json.RawMessage(params)})
	for block := range rawjson.Elements(rawjson.Get(result.Raw, "content")) {
		return rawjson.GetString(block, "text"), err
	}
	return "", err
}

func want(t testing.TB, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), append([]string{}, got...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTwoServersBecomeOneDeck(t *testing.T) {
	g := open(t, Config{Servers: []config.Server{row(t, "red", "legacy"), row(t, "blue", "everything")}})
	if faults := loaded(t, g); len(faults) > 0 {
		t.Fatal(faults)
	}
	all := names(t, g)
	if all[0] != "red__echo" || !slices.Contains(all, "blue__echo") {
		t.Errorf("the deck has %v", all)
	}
	for _, name := range []string{"red__echo", "blue__echo"} {
		if got, err := say(t, g, name, `{"text":"hello"}`); got != "hello" || err != nil {
			t.Errorf("%s says %q, %v", name, got, err)
		}
	}
	text, err := say(t, g, "drawbridge_tools", `{"server":"red"}`)
	if err != nil || text != "red__echo (red): Says the text again.\n" {
		t.Errorf("drawbridge_tools says %q, %v", text, err)
	}
	for _, s := range g.Status() {
		if s.Phase != drawbridge.Ready || s.Cards == 0 || s.Source != "the program" {
			t.Errorf("status %+v", s)
		}
	}
}

func TestABadServerCostsTheOthersNothing(t *testing.T) {
	g := open(t, Config{Servers: []config.Server{row(t, "bad", "exit-at-once"), row(t, "good", "legacy")}})
	faults := loaded(t, g)
	if len(faults) != 1 || faults["bad"] == nil {
		t.Errorf("faults %v, want one of bad", faults)
	}
	want(t, names(t, g), "good__echo")
}

// TestTheFirstListIsRemembered opens the same configuration twice; the second time nothing runs while the list is
// answered, and the ledger has nothing new.
func TestTheFirstListIsRemembered(t *testing.T) {
	dir := t.TempDir()
	record := filepath.Join(dir, "record")
	script := mcptest.WriteScript(t,
		`{"tools/list":{"tools":[{"name":"b","inputSchema":{}},{"name":"a","inputSchema":{}}]},"tools/call":{"content":[{"type":"text","text":"done"}]}}`)
	c := Config{Store: filepath.Join(dir, "x.db"), Servers: []config.Server{row(t, "raw", "raw", script, record)}}
	first := open(t, c)
	if faults := loaded(t, first); len(faults) > 0 {
		t.Fatal(faults)
	}
	closeIt(t, first)
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}

	again := openOnly(t, c)
	want(t, names(t, again), "raw__b", "raw__a")
	if _, err := os.Stat(record); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the server was started for a list: %v", err)
	}
	s := again.Status()[0]
	if s.Phase != drawbridge.Idle || s.Cards != 2 || s.Listed.IsZero() {
		t.Errorf("status %+v", s)
	}
	run(t, again)
	if got, err := say(t, again, "raw__a", `{}`); got != "done" || err != nil {
		t.Errorf("the call returns %q, %v", got, err)
	}
	entries, err := again.shared.db.Replay(t.Context(), configStream(c, config.Configuration{}))
	if err != nil || len(entries) != 2 {
		t.Errorf("the journal has %d entries, %v; want 2", len(entries), err)
	}
}

func TestAServerThatComesLateIsToldOf(t *testing.T) {
	g := openOnly(t, Config{Servers: []config.Server{row(t, "slow", "slow-start", "400"), row(t, "quick", "legacy")}})
	told := make(chan struct{}, 10)
	t.Cleanup(g.Deck().OnEvent(func(e deck.Event) {
		if e.Kind == deck.ToolsChanged {
			told <- struct{}{}
		}
	}))
	run(t, g)
	for len(names(t, g)) < 2 {
		select {
		case <-told:
		case <-time.After(time.Minute):
			t.Fatal("the slow server never came")
		}
	}
	want(t, names(t, g), "slow__echo", "quick__echo")
}

// TestACallOfAServerThatStillStartsWaitsForIt: its names are not unknown before its first attempt has ended.
func TestACallOfAServerThatStillStartsWaitsForIt(t *testing.T) {
	for _, naming := range []deck.NamingStyle{deck.QualifiedNames, deck.BareNames} {
		g := open(t, Config{Naming: naming, Servers: []config.Server{row(t, "slow", "slow-start", "600")}})
		name := map[deck.NamingStyle]string{deck.QualifiedNames: "slow__echo", deck.BareNames: "echo"}[naming]
		if got, err := say(t, g, name, `{"text":"hello"}`); got != "hello" || err != nil {
			t.Errorf("%s: %s says %q, %v", naming, name, got, err)
		}
		if _, err := say(t, g, "slow__nothing", `{}`); err == nil || err.Error() != "unknown tool slow__nothing" {
			t.Errorf("%s: a name that it does not have: %v", naming, err)
		}
	}
}

func TestStatusNotesNamesThatAreTaken(t *testing.T) {
	g := open(t, Config{Naming: deck.BareNames, Servers: []config.Server{row(t, "a", "legacy"), row(t, "b", "legacy")}})
	loaded(t, g)
	got := map[drawbridge.ServerID][]string{}
	for _, s := range g.Status() {
		got[s.Server] = s.Notes
	}
	want := map[drawbridge.ServerID][]string{"a": nil,
		"b": {"tool echo: the name is taken by server a; listed as b__echo"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestAttachAndDetach(t *testing.T) {
	g := open(t, Config{Servers: []config.Server{row(t, "one", "legacy")}})
	if err := g.AddServer(t.Context(), row(t, "two", "legacy")); err != nil {
		t.Fatal(err)
	}
	if err := g.AddServer(t.Context(), row(t, "one", "legacy")); err == nil {
		t.Error("a name is taken twice")
	}
	loaded(t, g)
	want(t, names(t, g), "one__echo", "two__echo")
	if err := g.RemoveServer(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	want(t, names(t, g), "two__echo")
	if _, err := say(t, g, "one__echo", `{"text":"x"}`); err == nil {
		t.Error("a detached server answers")
	}
	if err := g.RemoveServer(t.Context(), "one"); err == nil {
		t.Error("a server is detached twice")
	}
	if len(g.Status()) != 1 || len(g.Config().Servers) != 1 {
		t.Errorf("status %v", g.Status())
	}
}

func TestStatusShowsRowsThatStayOff(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "home", ".config", "drawbridge", "mcp.json"), `{"servers":{
		"off":{"command":"x","enabled":false}, "bad":{"command":"x","url":"http://x"}, "good":`+string(mcptest.ServerRow(t, "legacy"))+`}}`)
	write(t, filepath.Join(dir, "project", ".drawbridge", "mcp.json"), `{"servers":{"stranger":{"command":"x"}}}`)
	g := open(t, Config{Dir: filepath.Join(dir, "project"), LookupEnv: func(name string) (string, bool) {
		switch name {
		case "HOME":
			return filepath.Join(dir, "home"), true
		case KeychainVariable:
			return "off", true
		}
		return "", false
	}})
	faults := loaded(t, g)
	var got []string
	for _, s := range g.Status() {
		got = append(got, fmt.Sprintf("%s %s", s.Server, s.Phase))
		if s.Source == "" || s.Transport == "" || (s.Phase != drawbridge.Ready) != (s.Reason != "") {
			t.Errorf("status %+v", s)
		}
	}
	want(t, got, "stranger needs-approval", "off disabled", "bad refused", "good ready")
	if len(faults) != 2 || faults["stranger"] == nil || faults["bad"] == nil {
		t.Errorf("faults %v", faults)
	}
	_, err := g.Mount(t.Context(), "stranger")
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.PolicyBlocked {
		t.Errorf("mounting a stranger: %v", err)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOnDemandNothingStartsByItself(t *testing.T) {
	g := open(t, Config{OnDemand: true, Servers: []config.Server{row(t, "a", "legacy"), row(t, "b", "legacy")}})
	want(t, names(t, g))
	if l, err := g.Mount(t.Context(), "b"); err != nil || len(l.Tools) != 1 {
		t.Fatalf("mount: %+v, %v", l, err)
	}
	want(t, names(t, g), "b__echo")
	g.MountNew(t.Context())
	want(t, names(t, g), "a__echo", "b__echo")
}

func TestAStoreThatCannotBeUsedIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "this is not a store")
	_, err := Open(t.Context(), Config{Store: path, Servers: []config.Server{row(t, "a", "legacy")}})
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Kind != drawbridge.Backend || !strings.Contains(err.Error(), path) ||
		!strings.Contains(f.Next, "--store") {
		t.Errorf("error is %v", err)
	}
}

func TestAGatewayRunsOnceAndClosesOnce(t *testing.T) {
	g := open(t, Config{Servers: []config.Server{row(t, "a", "legacy")}})
	loaded(t, g)
	if err := g.Run(t.Context()); err == nil {
		t.Error("it runs twice")
	}
	closeIt(t, g)
	closeIt(t, g)
	if err := g.Run(t.Context()); err == nil {
		t.Error("it runs after its end")
	}
}

// TestTwoGatewaysOnOneStore has two processes' worth of gateways on one file and one configuration.
func TestTwoGatewaysOnOneStore(t *testing.T) {
	c := Config{Store: filepath.Join(t.TempDir(), "x.db"), Servers: []config.Server{row(t, "a", "legacy"),
		row(t, "b", "many-tools", "30")}}
	one, two := open(t, c), open(t, c)
	var wg sync.WaitGroup
	for _, g := range []*Gateway{one, two} {
		wg.Go(func() { loaded(t, g) })
	}
	wg.Wait()
	if diff := cmp.Diff(names(t, one), names(t, two)); diff != "" || len(names(t, one)) != 31 {
		t.Errorf("the decks differ:\n%s", diff)
	}
	closeIt(t, one)
	closeIt(t, two)
	third := openOnly(t, c)
	if got := names(t, third); len(got) != 31 {
		t.Errorf("afterwards the deck has %d cards", len(got))
	}
}
