package upstream

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

const (
	onlyModern = `"2026-07-28"`
	bothEras   = `"2026-07-28","2025-11-25"`
)

// bothFake speaks both generations.
func bothFake() *fake {
	f := newModernFake(bothEras)
	f.on(mcp.MethodInitialize, newFake().answers[mcp.MethodInitialize])
	return f
}

func TestEras(t *testing.T) {
	silent, exits, stale := newFake(), newFake(), newFake()
	silent.on(mcp.MethodDiscover, always(""))
	exits.on(mcp.MethodDiscover, func(c *fakeConn, _ mcp.Message) string { c.die(); return "" })
	stale.on(mcp.MethodDiscover, always(`{"supportedVersions":["2025-11-25"]}`))
	lateModern := newModernFake(onlyModern)
	wedged := newFake() // the probe makes it deaf to all that follows on that process
	wedged.on(mcp.MethodDiscover, always(""))
	greet := wedged.answers[mcp.MethodInitialize]
	wedged.on(mcp.MethodInitialize, func(c *fakeConn, m mcp.Message) string {
		if len(wedged.dialled()) == 1 {
			return ""
		}
		return greet(c, m)
	})
	answer, deaf := lateModern.answers[mcp.MethodDiscover], true
	lateModern.on(mcp.MethodDiscover, func(c *fakeConn, m mcp.Message) string {
		if deaf {
			deaf = false
			return ""
		}
		return answer(c, m)
	})
	for _, tt := range []struct {
		name  string
		fake  *fake
		era   drawbridge.ProtocolEra
		dials int
		took  time.Duration
	}{
		{"modern", newModernFake(onlyModern), drawbridge.Modern, 1, 0},
		{"both", bothFake(), drawbridge.Modern | drawbridge.Legacy, 1, 0},
		{"legacy, says no to the probe", newFake(), drawbridge.Legacy, 1, 0},
		{"legacy, knows the probe and only old revisions", stale, drawbridge.Legacy, 1, 0},
		{"legacy, silent on the probe", silent, drawbridge.Legacy, 1, 3 * time.Second},
		{"legacy, wedged by the probe", wedged, drawbridge.Legacy, 2, 3*time.Second + 57*time.Second/2},
		{"legacy, exits on the probe", exits, drawbridge.Legacy, 2, 0},
		{"modern, and slow to start", lateModern, drawbridge.Modern, 1, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r := newRig(t, tt.fake, Options{})
				l, err := r.Mount(t.Context(), "fake")
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); l.Era != tt.era || took != tt.took || len(r.fake.dialled()) != tt.dials ||
					r.fake.open() != 1 {
					t.Errorf("era %v after %v and %d dials, %d are open; want %v, %v, %d", l.Era, took,
						len(r.fake.dialled()), r.fake.open(), tt.era, tt.took, tt.dials)
				}
				r.call(echo(caller(drawbridge.Legacy)))
			})
		})
	}
}

func TestARememberedEraIsNotAskedFor(t *testing.T) {
	for _, tt := range []struct {
		name     string
		fake     *fake
		known    drawbridge.ProtocolEra
		era      drawbridge.ProtocolEra
		discover int
		dials    int
	}{
		{"legacy", newFake(), drawbridge.Legacy, drawbridge.Legacy, 0, 1},
		{"modern", newModernFake(onlyModern), drawbridge.Modern, drawbridge.Modern, 1, 1},
		{"modern, but now it is legacy", newFake(), drawbridge.Modern, drawbridge.Legacy, 2, 2},
		{"legacy, but now it is modern", newModernFake(onlyModern), drawbridge.Legacy, drawbridge.Modern, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				known := map[string]drawbridge.Listing{"hash": {Server: "fake", ConfigHash: "hash", Era: tt.known}}
				r := newRig(t, tt.fake, Options{FleetOptions: FleetOptions{KnownListings: known}})
				l, err := r.Mount(t.Context(), "fake")
				if err != nil {
					t.Fatal(err)
				}
				if n := r.fake.count(mcp.MethodDiscover); l.Era != tt.era || n != tt.discover ||
					len(r.fake.dialled()) != tt.dials {
					t.Errorf("era %v, %d times asked, %d dials", l.Era, n, len(r.fake.dialled()))
				}
			})
		})
	}
}

func TestGreetingsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newModernFake(onlyModern), Options{Version: "1.2"})
		l, err := r.Mount(t.Context(), "fake")
		if err != nil {
			t.Fatal(err)
		}
		want := drawbridge.Listing{
			Server: "fake", ConfigHash: "hash", Era: drawbridge.Modern,
			Info:         []byte(`{"name":"fake","version":"2"}`),
			Capabilities: []byte(`{"tools":{"listChanged":true},"resources":{}}`),
			Instructions: "be kind",
			Tools:        l.Tools[:1],
			CacheHints:   map[string]drawbridge.CacheHint{mcp.MethodDiscover: {TTL: time.Second, Public: true}},
			ListedAt:     l.ListedAt,
		}
		if diff := cmp.Diff(want, l); diff != "" || string(l.Tools[0]) != echoDefinition {
			t.Error(diff)
		}
		meta := mcp.MetaOf(r.fake.params(mcp.MethodDiscover)[0])
		if got := string(rawjson.Get(meta,
			mcp.MetaClientInfo)); got != `{"name":"drawbridge","title":"Drawbridge","version":"1.2"}` {
			t.Error(got)
		}
	})
}

func TestCallersOfBothErasShareTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, bothFake(), neverAsked())
		modern := caller(drawbridge.Modern)
		modern.Capabilities = []byte(`{"sampling":{"x":1.0}}`)
		call := echo(modern)
		call.Params = []byte(
			`{"name":"echo","_meta":{"a":1e3,"io.modelcontextprotocol/clientInfo":{"name":"them"},"io.modelcontextprotocol/logLevel":"info"}}`)
		r.call(call)
		if n := r.fake.open(); n != 1 {
			t.Errorf("a modern caller has another connection than the home: %d", n)
		}
		want := `{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"drawbridge","title":"Drawbridge","version":"dev"},` +
			`"io.modelcontextprotocol/clientCapabilities":{"sampling":{"x":1.0}},"a":1e3,"io.modelcontextprotocol/logLevel":"info"`
		if got := string(mcp.MetaOf(r.fake.params(mcp.MethodToolsCall)[0])); !strings.HasPrefix(got, want+
			`,"progressToken":`) {
			t.Errorf("_meta is\n%s, want\n%s", got, want)
		}
		legacy := talker("one")
		legacy.Capabilities = []byte(`{"roots":{"listChanged":true},"tasks":{}}`)
		r.call(echo(legacy))
		if n := r.fake.open(); n != 1 || r.fake.count(mcp.MethodInitialize) > 0 {
			t.Errorf("a legacy caller has another connection than the home: %d", n)
		}
		legacyCall := echo(legacy)
		legacyCall.Peer = &peer{}
		r.call(legacyCall)
		for i, want := range []string{`{}`, `{"roots":{"listChanged":true}}`} { // without a peer, nothing can be asked
			meta := mcp.MetaOf(r.fake.params(mcp.MethodToolsCall)[1+i])
			if got := string(rawjson.Get(meta, mcp.MetaClientCapabilities)); got != want {
				t.Errorf("the server is told of the capabilities %s, want %s", got, want)
			}
		}
	})
}

func TestWhatBelongsToOneHopIsTranslated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newModernFake(onlyModern), Options{})
		if err := r.SetLogLevel(t.Context(), "s", "warning"); err != nil {
			t.Fatal(err)
		}
		c := talker("s")
		c.Capabilities = []byte(`{"elicitation":{},"x":1e2,"tasks":{}}`)
		call := echo(c)
		r.call(call)
		call.Peer = &peer{}
		r.call(call)
		for i, want := range []string{`{}`, `{"elicitation":{},"x":1e2}`} {
			meta := mcp.MetaOf(r.fake.params(mcp.MethodToolsCall)[i])
			if string(rawjson.Get(meta, mcp.MetaClientCapabilities)) != want || rawjson.GetString(meta,
				mcp.MetaLogLevel) != "warning" {
				t.Errorf("a legacy caller at a modern server: %s, want %s", meta, want)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		call := echo(caller(drawbridge.Modern))
		call.Params = []byte(
			`{"name":"echo","_meta":{"io.modelcontextprotocol\/clientInfo":{},"io.modelcontextprotocol/protocolVersion":"2026-07-28","keep":null}}`)
		r.call(call)
		if got := string(mcp.MetaOf(r.fake.params(mcp.MethodToolsCall)[0])); !strings.HasPrefix(got,
			`{"keep":null,"progressToken":`) {
			t.Errorf("a modern caller at a legacy server: %s", got)
		}
	})
}

func TestCallersThatCanBeAskedHaveSessionsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.call(echo(caller(drawbridge.Legacy)))
		if n := r.fake.open(); n != 1 {
			t.Fatalf("%d connections for the home", n)
		}
		r.call(echo(talker("one")))
		r.call(echo(talker("two")))
		r.call(echo(talker("one")))
		if n := r.fake.open(); n != 3 {
			t.Errorf("%d connections, want the home and one each", n)
		}
		hello := string(r.fake.params(mcp.MethodInitialize)[1])
		if !strings.HasPrefix(hello,
			`{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{},"x":1e2},"clientInfo":{"name":"drawbridge"`) {
			t.Error(hello)
		}
		r.EndSession("one")
		synctest.Wait()
		if n := r.fake.open(); n != 2 {
			t.Errorf("%d connections after the end of one", n)
		}
		r.call(echo(talker("two")))
		if n := len(r.fake.dialled()); n != 3 {
			t.Errorf("%d dials", n)
		}
	})
}

func TestPrincipalsDoNotShare(t *testing.T) {
	stranger := func(era drawbridge.ProtocolEra, principal string) drawbridge.Call {
		c := caller(era)
		c.Principal = principal
		return echo(c)
	}
	for _, tt := range []struct {
		name   string
		change func(*config.Server)
		want   int
	}{
		{"by default", func(*config.Server) {}, 3},
		{`share = "all"`, func(row *config.Server) { row.Share = "all" }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newModernFake(onlyModern), Options{}, tt.change)
				for _, principal := range []string{owner, "alice", "bob", "alice", owner} {
					r.call(stranger(drawbridge.Modern, principal))
				}
				if n := r.fake.open(); n != tt.want {
					t.Errorf("%d connections, want %d", n, tt.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{}, func(row *config.Server) { row.Isolate = "session" })
		for _, session := range []string{"one", "two", "one"} {
			c := caller(drawbridge.Legacy)
			c.Session = session
			r.call(echo(c))
		}
		if n := r.fake.open(); n != 3 {
			t.Errorf("%d connections where each session has its own, want 3 with the home", n)
		}
	})
}

func TestASessionThatEndsWhileItOpensIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		r.fake.on(mcp.MethodInitialize, always(""))
		fault := make(chan error, 1)
		go func() {
			_, err := r.Do(t.Context(), "fake", echo(talker("one")))
			fault <- err
		}()
		synctest.Wait()
		r.EndSession("one")
		if err := <-fault; !errors.Is(err, errCallerGone) {
			t.Errorf("got %v", err)
		}
		if n := r.fake.open(); n != 1 {
			t.Errorf("%d connections are open", n)
		}
	})
}

func TestNothingIsKeptOfSessionsThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		for i := range 300 {
			session := fmt.Sprint(i)
			r.call(echo(talker(session)))
			if err := r.SetLogLevel(t.Context(), session, "info"); err != nil {
				t.Fatal(err)
			}
			r.EndSession(session)
		}
		synctest.Wait()
		e := r.byName["fake"]
		if len(e.sessions.live) != 1 || len(e.sessions.openings) != 0 ||
			r.pool.callerSessions.mostVerboseLevel() != "" ||
			r.fake.open() != 1 {
			t.Errorf("%d sessions, %d openings, level %q, %d connections", len(e.sessions.live),
				len(e.sessions.openings),
				r.pool.callerSessions.mostVerboseLevel(), r.fake.open())
		}
	})
}

// TestARefusedVersionIsChosenFromTheList is a server that refuses the first request it gets, whatever that names, and
// says in the same breath that it speaks this version: it is asked again, and never greeted in the legacy way.
func TestARefusedVersionIsChosenFromTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newModernFake(onlyModern)
		answer := f.answers[mcp.MethodDiscover]
		f.on(mcp.MethodDiscover, func(c *fakeConn, m mcp.Message) string {
			if f.count(mcp.MethodDiscover) == 1 {
				c.say(mcp.Message{ID: m.ID,
					Error: []byte(`{"code":-32022,"message":"not that one","data":{"supported":["2026-07-28"]}}`)})
				return ""
			}
			return answer(c, m)
		})
		r := newRig(t, f, Options{})
		if _, err := r.Mount(t.Context(), "fake"); err != nil {
			t.Fatal(err)
		}
		if asked, greeted := f.count(mcp.MethodDiscover), f.count(mcp.MethodInitialize); asked != 2 || greeted != 0 {
			t.Errorf("asked %d times and greeted %d times, want 2 and 0", asked, greeted)
		}
	})
}
