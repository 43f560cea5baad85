package upstream

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

func TestWhatCallersDeclare(t *testing.T) {
	type said struct{ Asked, Itself bool }
	for _, tt := range []struct {
		era          drawbridge.ProtocolEra
		session      string
		capabilities string
		want         said
	}{
		{drawbridge.Modern, "", ``, said{}},
		{drawbridge.Modern, "", `{}`, said{}},
		{drawbridge.Modern, "", `{"sampling":{}}`, said{Asked: true}},
		{drawbridge.Modern, "", `{"elicitation":{"form":{}}}`, said{Asked: true}},
		{drawbridge.Modern, "", `{"roots":{}}`, said{Asked: true}},
		{drawbridge.Modern, "", `{"roots":null}`, said{}},
		{drawbridge.Legacy, "s", `{"roots":{}}`, said{Asked: true}},
		{drawbridge.Legacy, "", `{"roots":{}}`, said{}},
		{drawbridge.Modern, "", `{"extensions":{"` + mcp.ExtensionApps + `":{}}}`, said{Itself: true}},
		{drawbridge.Modern, "", `{"extensions":{"a.b/c":{}}}`, said{true, true}},
		{drawbridge.Legacy, "s", `{"experimental":{},"sampling":{}}`, said{true, true}},
		{drawbridge.Legacy, "s", `{"tasks":{"list":{}}}`, said{Itself: true}},
		{drawbridge.Modern, "", `{"newcomer":{}}`, said{}},
	} {
		c := drawbridge.Caller{Era: tt.era, Session: tt.session, Capabilities: json.RawMessage(tt.capabilities)}
		var cache clientTraitsCache
		got := said{cache.canBeAsked(c), cache.traits(c).declaresExtensions}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v %q %s: %s", tt.era, tt.session, tt.capabilities, diff)
		}
	}
}

func TestKind(t *testing.T) {
	kind := func(client, capabilities string) string {
		return clientKind(json.RawMessage(client), json.RawMessage(capabilities))
	}
	one := kind(`{"name":"a","version":"1"}`, `{"roots":{},"sampling":{}}`)
	if other := kind(`{ "version":"1", "name":"a" }`, `{"sampling":{}, "roots":{}}`); one != other {
		t.Error("two ways to write one kind are two kinds")
	}
	for name, other := range map[string]string{
		"another version":       kind(`{"name":"a","version":"2"}`, `{"roots":{},"sampling":{}}`),
		"other capabilities":    kind(`{"name":"a","version":"1"}`, `{"roots":{}}`),
		"one said as the other": kind(`{"roots":{},"sampling":{}}`, `{"name":"a","version":"1"}`),
		"nothing said":          kind(``, ``),
	} {
		if other == one || other == "" {
			t.Errorf("%s: the kind is %x", name, other)
		}
	}
}

func TestCallersLevels(t *testing.T) {
	for params, want := range map[string]string{
		``:                     "",
		`{"_meta":{}}`:         "",
		`{"logLevel":"debug"}`: "",
		`{"_meta":{"io.modelcontextprotocol/logLevel":"info"}}`: "info",
		`{"_meta":{"io.modelcontextprotocol/logLevel":7}}`:      "",
	} {
		if got := requestedLogLevel(json.RawMessage(params)); got != want {
			t.Errorf("%s asks for %q, want %q", params, got, want)
		}
	}
	for _, tt := range []struct {
		level, than string
		want        bool
	}{
		{"debug", "info", true}, {"info", "debug", false}, {"info", "info", false}, {"emergency", "", true},
		{"", "", false},
		{"", "info", false}, {"loud", "info", false}, {"alert", "loud", true},
	} {
		if got := isMoreVerbose(tt.level, tt.than); got != tt.want {
			t.Errorf("%q is talkier than %q: %v", tt.level, tt.than, got)
		}
	}
	for level, want := range map[string]bool{"debug": true, "emergency": true, "": false, "loud": false} {
		if got := isLogLevel(level); got != want {
			t.Errorf("%q is a level: %v", level, got)
		}
	}
}

func TestRegister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r callerSessionRegistry
		check := func(when, most string, levels map[string]string) {
			t.Helper()
			got := map[string]string{}
			for session := range levels {
				got[session] = r.logLevel(session)
			}
			if diff := cmp.Diff(levels, got); diff != "" || r.mostVerboseLevel() != most {
				t.Errorf("%s: the most is %q, want %q; %s", when, r.mostVerboseLevel(), most, diff)
			}
		}
		check("at first", "", map[string]string{"": "", "a": ""})
		r.setLogLevel("", "error")
		r.setLogLevel("a", "warning")
		r.setLogLevel("b", "debug")
		check("all want some", "debug", map[string]string{"": "error", "a": "warning", "b": "debug", "c": ""})
		r.setLogLevel("b", "alert")
		check("one changed its mind", "warning", map[string]string{"b": "alert"})
		r.endSession("a")
		r.setLogLevel("a", "debug") // it was on its way
		check("one has ended", "error", map[string]string{"": "error", "a": "", "b": "alert"})
		if !r.hasEnded("a") || r.hasEnded("b") {
			t.Errorf("ended: a %v, b %v", r.hasEnded("a"), r.hasEnded("b"))
		}
		<-time.After(endedSessionMemory + 1)
		r.endSession("b")
		if r.hasEnded("a") || !r.hasEnded("b") {
			t.Errorf("a minute later: a %v, b %v", r.hasEnded("a"), r.hasEnded("b"))
		}
	})
}

// TestSessionsThatEndAreForgotten ends a thousand of them a second: each end may look at none of the others.
func TestSessionsThatEndAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r callerSessionRegistry
		name := func(second, i int) string { return fmt.Sprint(second, "-", i) }
		most := 0
		for second := range 300 {
			for i := range 1000 {
				r.endSession(name(second, i))
			}
			most = max(most, len(r.ended)+len(r.endedBefore))
			<-time.After(time.Second)
			for ago, want := range map[int]bool{0: true, 58: true, 62: false, 121: false} {
				if ago <= second && r.hasEnded(name(second-ago, 7)) != want {
					t.Fatalf("after %d seconds, one that ended %d seconds ago has ended: %v", second+1, ago+1, !want)
				}
			}
		}
		if limit := 2 * 62 * 1000; most > limit {
			t.Errorf("%d are remembered, more than %d", most, limit)
		}
	})
}
