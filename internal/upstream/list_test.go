package upstream

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// greeting gives an answer to initialize with these capabilities.
func greeting(capabilities string) func(*fakeConn, mcp.Message) string {
	return always(`{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `}`)
}

func names(l drawbridge.Listing) string {
	var all []string
	for _, item := range slices.Concat(l.Tools, l.Prompts, l.Resources, l.Templates) {
		all = append(all, rawjson.GetString(item, "name"))
	}
	return strings.Join(all, " ")
}

func TestLists(t *testing.T) {
	for _, tt := range []struct {
		name, capabilities string
		change             func(f *fake)
		want               string // names
		trouble            string
	}{
		{"what is not declared is not asked for", `{"tools":{}}`, func(f *fake) {
			f.on(mcp.MethodPromptsList, always(`{"prompts":[{"name":"undeclared"}]}`))
		}, "echo", ""},
		{"declared, and not there", `{"tools":{},"resources":{}}`, func(*fake) {}, "echo", ""},
		{"all four", `{"tools":{},"resources":{},"prompts":{}}`, func(f *fake) {
			f.on(mcp.MethodPromptsList, always(`{"prompts":[{"name":"p"}]}`))
			f.on(mcp.MethodResourcesList, always(`{"resources":[{"name":"r"}]}`))
			f.on(mcp.MethodTemplatesList, always(`{"resourceTemplates":[{"name":"t"}]}`))
		}, "echo p r t", ""},
		{"an error for one list", `{"tools":{},"prompts":{}}`, func(f *fake) {
			f.on(mcp.MethodPromptsList, func(c *fakeConn, m mcp.Message) string {
				c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(-32603, "oh", nil)})
				return ""
			})
		}, "echo", "list prompts: the server answered with error -32603: oh"},
		{"silence on one list", `{"tools":{},"prompts":{}}`, func(f *fake) {
			f.on(mcp.MethodPromptsList, always(""))
		}, "echo", "list prompts: timeout: no answer within 1m0s ([mcp] connect_timeout)"},
		{"what is no object", `{"tools":{}}`, func(f *fake) {
			f.on(mcp.MethodToolsList, always(`{"tools":[null,{"name":"a"},"b",[],{"name":"c"}]}`))
		}, "a c", "list tools: 3 items were not objects and were left out"},
		{"pages", `{"tools":{}}`, func(f *fake) {
			f.on(mcp.MethodToolsList, pages("one", "two", "three"))
		}, "one two three", ""},
		{"the same page for ever", `{"tools":{}}`, func(f *fake) {
			f.on(mcp.MethodToolsList, always(`{"tools":[{"name":"a"}],"nextCursor":"x"}`))
		}, "a a", "list tools: the server repeated a cursor"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.on(mcp.MethodInitialize, greeting(tt.capabilities))
				tt.change(f)
				r := newRig(t, f, Options{})
				l, err := r.Mount(t.Context(), "fake")
				if err != nil {
					t.Fatal(err)
				}
				if s := r.Status()[0]; names(l) != tt.want || s.Fault != tt.trouble || s.Phase != drawbridge.Ready {
					t.Errorf("got %q, %+v; want %q, %q", names(l), s, tt.want, tt.trouble)
				}
			})
		})
	}
}

// pages lists one tool a page. The cursor is no string, as nothing says that it must be one here.
func pages(tools ...string) func(*fakeConn, mcp.Message) string {
	return func(_ *fakeConn, m mcp.Message) string {
		at := 0
		_, _ = fmt.Sscan(string(rawjson.Get(m.Params, "cursor")), &at)
		next := ""
		if at+1 < len(tools) {
			next = fmt.Sprintf(`,"nextCursor":%d`, at+1)
		}
		return fmt.Sprintf(`{"tools":[{"name":%q}]%s}`, tools[at], next)
	}
}

func TestToolsThatAreNotKnownFailAMountButNoRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		list := f.answers[mcp.MethodToolsList]
		f.on(mcp.MethodToolsList, always(""))
		r := newRig(t, f, Options{})
		if _, err := r.Mount(t.Context(), "fake"); err == nil ||
			err.Error() != "mount fake: list: tools: timeout: no answer within 1m0s ([mcp] connect_timeout)" {
			t.Errorf("got %v", err)
		}
		r.fake.on(mcp.MethodToolsList, list)
		if _, err := r.Mount(t.Context(), "fake"); err != nil {
			t.Fatal(err)
		}
		r.fake.on(mcp.MethodToolsList, always(""))
		r.fake.last().note(mcp.NoteToolsChanged, "{}")
		r.later(time.Minute)
		if s := r.Status()[0]; s.Cards != 1 || s.Phase != drawbridge.Ready ||
			s.Fault != "list tools: timeout: no answer within 1m0s ([mcp] connect_timeout)" {
			t.Errorf("%+v", s)
		}
	})
}

// TestAListThatKeepsChangingIsAskedForLessOften has a server announce a change each second: of its whole large list,
// of a small one, and of nothing. Each change is kept for ever, so that large ones have their time; the last one is
// never missed.
func TestAListThatKeepsChangingIsAskedForLessOften(t *testing.T) {
	const hour = int(time.Hour / DefaultRefreshEvery)
	large := strings.Repeat("x", 1<<20)
	for _, tt := range []struct {
		name        string
		tool        func(n int64) string
		least, most int // listings in the first hour
	}{
		{"a megabyte under names that change",
			func(n int64) string { return fmt.Sprintf(`{"name":"n%d","description":"%s"}`, n, large) }, 8, 12},
		{"a small tool", func(n int64) string { return fmt.Sprintf(`{"name":"n%d"}`, n) }, hour - 1, hour + 1},
		{"a large tool that stays", func(int64) string {
			return fmt.Sprintf(`{"name":"n","description":"%s"}`,
				large[:32<<10])
		}, hour - 1, hour + 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newFake(), Options{IdleStop: -1})
				if _, err := r.Mount(t.Context(), "fake"); err != nil {
					t.Fatal(err)
				}
				var n atomic.Int64
				r.fake.on(mcp.MethodToolsList, func(*fakeConn, mcp.Message) string {
					return `{"tools":[` +
						tt.tool(n.Load()) + `]}`
				})
				change := func(announced int) {
					for range announced {
						n.Add(1)
						r.fake.last().note(mcp.NoteToolsChanged, `{}`)
						r.later(time.Second)
					}
				}
				before := r.mem.listCount()
				change(int(time.Hour / time.Second))
				if got := r.mem.listCount() - before; got < tt.least || got > tt.most {
					t.Errorf("%d listings in an hour, want %d to %d", got, tt.least, tt.most)
				}
				r.later(time.Hour)
				if got, want := names(r.mem.last()), rawjson.GetString([]byte(tt.tool(n.Load())), "name"); got != want {
					t.Errorf("the last listing has %s, want %s", got, want)
				}
				change(10) // all is as before once a server has been quiet
				if got := r.mem.listCount() - before; got < tt.least+1 {
					t.Errorf("%d listings", got)
				}
			})
		})
	}
}

func TestHintsAndBytesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		const tool = `{ "name" : "a", "x":1e400, "inputSchema":{} }`
		f.on(mcp.MethodToolsList, func(_ *fakeConn, m mcp.Message) string {
			if rawjson.Get(m.Params, "cursor") == nil {
				return `{"tools":[` + tool + `],"ttlMs":9000,"cacheScope":"public","nextCursor":"2"}`
			}
			return `{"tools":[],"ttlMs":5000,"cacheScope":"private"}`
		})
		r := newRig(t, f, Options{})
		l, err := r.Mount(t.Context(), "fake")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]drawbridge.CacheHint{mcp.MethodToolsList: {TTL: 5 * time.Second}}
		if diff := cmp.Diff(want, l.CacheHints); diff != "" || string(l.Tools[0]) != tool {
			t.Errorf("%s\n%s", diff, l.Tools[0])
		}
	})
}

func TestOverHTTPToolsWithBadMarksAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newModernFake(onlyModern)
		f.on(mcp.MethodToolsList, always(`{"tools":[
			{"name":"bad","inputSchema":{"properties":{"a":{"type":"array","x-mcp-header":"A"}}}},
			{"name":"good","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}]}`))
		r := newRig(t, f, Options{}, func(row *config.Server) {
			row.Command, row.Type, row.URL = "", "http",
				"http://fake"
		})
		l, err := r.Mount(t.Context(), "fake")
		if err != nil {
			t.Fatal(err)
		}
		if s := r.Status()[0]; names(l) != "good" || !strings.Contains(s.Fault, `tool "bad" was left out`) {
			t.Errorf("%q, %+v", names(l), s)
		}
		if m := r.byName["fake"].listing.headerParams("good"); len(m) != 1 || m[0].Header != "Mcp-Param-A" {
			t.Errorf("%+v", m)
		}
	})
}

func TestWatchLegacy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{IdleStop: -1})
		watch := func(uris ...string) {
			t.Helper()
			if err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: uris}); err != nil {
				t.Fatal(err)
			}
		}
		said := func() string {
			var all []string
			r.fake.mu.Lock()
			defer r.fake.mu.Unlock()
			for _, m := range r.fake.heard {
				if m.Method == mcp.MethodSubscribe || m.Method == mcp.MethodUnsubscribe {
					all = append(all, strings.TrimPrefix(m.Method, "resources/")+" "+rawjson.GetString(m.Params, "uri"))
				}
			}
			r.fake.heard = nil
			return strings.Join(all, ", ")
		}
		watch("a:1", "a:2")
		if got, want := said(), "subscribe a:1, subscribe a:2"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		watch("a:2", "a:3")
		if got, want := said(), "unsubscribe a:1, subscribe a:3"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		r.fake.last().die()
		r.later(time.Second)
		if got, want := said(), "subscribe a:2, subscribe a:3"; got != want {
			t.Errorf("after a reconnect got %q, want %q", got, want)
		}
		r.fake.on(mcp.MethodSubscribe, func(c *fakeConn, m mcp.Message) string {
			c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(-32002, "no such resource", nil)})
			return ""
		})
		err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: []string{"a:9"}})
		if want := "watch fake: the server answered with error -32002: no such resource"; err == nil ||
			err.Error() != want {
			t.Errorf("got %v", err)
		}
		watch()
	})
}

// TestARefusalOfWhatWasWatchedConcernsNobodyElse: a server comes back without a resource.
func TestARefusalOfWhatWasWatchedConcernsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{IdleStop: -1})
		watch := func(uris ...string) error {
			return r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: uris})
		}
		if err := watch("a:1"); err != nil {
			t.Fatal(err)
		}
		r.fake.on(mcp.MethodSubscribe, func(c *fakeConn, m mcp.Message) string {
			if rawjson.GetString(m.Params, "uri") != "a:1" {
				return `{}`
			}
			c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(-32002, "no such resource", nil)})
			return ""
		})
		r.fake.last().die()
		r.later(time.Minute)
		if err := watch("a:1", "b:2"); err != nil {
			t.Errorf("b:2 is refused for a:1: %v", err)
		}
		if err := watch("b:2"); err != nil {
			t.Error(err)
		}
		if err := watch("a:1", "b:2"); err == nil {
			t.Error("a:1 is watched again, and nobody said that it is not")
		}
	})
}

// TestACallersOwnProcessIsWatchedToo: what a caller changes in a process of its own, the home does not see.
func TestACallersOwnProcessIsWatchedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notices := make(chan drawbridge.ServerNotification, 1)
		r := newRig(t, newFake(),
			Options{FleetOptions: FleetOptions{OnNotification: func(n drawbridge.ServerNotification) { notices <- n }}})
		var said []string // on the newest connection
		for _, method := range []string{mcp.MethodSubscribe, mcp.MethodUnsubscribe, mcp.MethodToolsCall} {
			r.fake.on(method, func(c *fakeConn, m mcp.Message) string {
				if c == r.fake.last() {
					said = append(said, strings.TrimPrefix(m.Method, "resources/")+" "+
						rawjson.GetString(m.Params, "uri"))
				}
				if m.Method == mcp.MethodToolsCall {
					c.note(mcp.NoteResourceUpdated, `{"uri":"a:1"}`)
				}
				return `{}`
			})
		}
		watch := func(uris ...string) {
			t.Helper()
			if err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: uris}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		watch("a:1")
		said = nil
		r.call(echo(talker("s")))
		if n := <-notices; n.Session != "s" || rawjson.GetString(n.Params, "uri") != "a:1" {
			t.Errorf("the update is %+v", n)
		}
		watch("a:1", "a:2")
		watch("a:2")
		if diff := cmp.Diff([]string{"subscribe a:1", "tools/call ", "subscribe a:2", "unsubscribe a:1"},
			said); diff != "" {
			t.Errorf("the caller's process heard (-want +got):\n%s", diff)
		}
		lists := r.mem.listCount()
		r.fake.last().note(mcp.NoteToolsChanged, `{}`)
		r.later(DefaultRefreshEvery)
		if n := r.mem.listCount(); n != lists+1 {
			t.Errorf("%d listings after a change in the caller's process, want %d", n, lists+1)
		}
	})
}

// TestAProcessThatDoesNotAnswerASubscriptionTakesCalls all the same, and ends.
func TestAProcessThatDoesNotAnswerASubscriptionTakesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{})
		if err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: []string{"a:1"}}); err != nil {
			t.Fatal(err)
		}
		r.fake.on(mcp.MethodSubscribe, always(""))
		began := time.Now()
		r.call(echo(talker("s")))
		if d := time.Since(began); d != firstAckTimeout {
			t.Errorf("the call took %v", d)
		}
		r.EndSession("s")
		synctest.Wait()
		if n := r.fake.open(); n != 1 {
			t.Errorf("%d processes run", n)
		}
	})
}

func TestListening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notices := make(chan drawbridge.ServerNotification, 10)
		r := newRig(t, newModernFake(onlyModern),
			Options{IdleStop: -1,
				FleetOptions: FleetOptions{OnNotification: func(n drawbridge.ServerNotification) { notices <- n }}})
		listens := func() []string {
			var all []string
			for _, p := range r.fake.params(mcp.MethodListen) {
				all = append(all, string(rawjson.Get(p, "notifications")))
			}
			return all
		}
		const kinds = `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true`
		if err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: []string{"a:1"}}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{kinds + `}`, kinds + `,"resourceSubscriptions":["a:1"]}`}, listens()); diff != "" {
			t.Fatal(diff)
		}
		r.fake.last().note(mcp.NoteResourceUpdated, `{"uri":"a:1"}`)
		if n := <-notices; string(n.Params) != `{"uri":"a:1"}` {
			t.Errorf("%+v", n)
		}
		synctest.Wait()
		if n := r.mem.listCount(); n != 2 {
			t.Errorf("%d listings after another listening request", n)
		}
		r.fake.last().note(mcp.NoteToolsChanged, `{}`)
		r.later(DefaultRefreshEvery)
		if n := r.mem.listCount(); n != 3 {
			t.Errorf("%d listings after a change", n)
		}

		// The server ends the listening: it is begun again, and the lists are asked for again.
		ends := r.fake.answers[mcp.MethodListen]
		r.fake.on(mcp.MethodListen, func(c *fakeConn, m mcp.Message) string {
			r.fake.on(mcp.MethodListen, ends)
			ends(c, m)
			return `{"resultType":"complete"}`
		})
		if err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: []string{"a:1", "a:2"}}); err != nil {
			t.Fatal(err)
		}
		r.later(10 * time.Second)
		if got := listens(); len(got) != 4 || got[3] != kinds+`,"resourceSubscriptions":["a:1","a:2"]}` {
			t.Errorf("%q", got)
		}
		if n := r.mem.listCount(); n != 4 {
			t.Errorf("%d listings after a drop", n)
		}
		for _, want := range []string{"a:1", "a:1", "a:2"} { // when the request gave way, and after the drop
			if n := <-notices; rawjson.GetString(n.Params, "uri") != want {
				t.Errorf("got %+v, want an update of %s", n, want)
			}
		}
		r.fake.last().die()
		r.later(time.Second)
		if got := listens(); len(got) != 5 {
			t.Errorf("%d listening requests after a reconnect", len(got))
		}
	})
}

func TestAServerThatCannotListenIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newModernFake(onlyModern)
		f.on(mcp.MethodListen, nil)
		r := newRig(t, f, Options{IdleStop: -1})
		r.later(time.Hour)
		if n := r.fake.count(mcp.MethodListen); n != 1 {
			t.Errorf("it was asked %d times", n)
		}
		if err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: []string{"a:1"}}); err == nil {
			t.Error("nobody watches, and nobody said so")
		}
	})
}

func TestAServerThatLetsNothingBeWatchedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.on(mcp.MethodInitialize, greeting(`{"tools":{},"resources":{}}`))
		r := newRig(t, f, Options{})
		err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{URIs: []string{"a:1"}})
		if fault := drawbridge.AsFault(err); err == nil || fault.Code != drawbridge.NotFound {
			t.Errorf("got %v", err)
		}
		if err := r.Watch(t.Context(), "fake", drawbridge.WatchSet{}); err != nil {
			t.Errorf("to watch nothing: %v", err)
		}
	})
}

// TestAListThatKeepsChangingIsNotAskedForByReconnecting has a server go away after each call and come back with
// another large list: the calls go on, and its lists have their time all the same.
func TestAListThatKeepsChangingIsNotAskedForByReconnecting(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{IdleStop: -1})
		var n atomic.Int64
		r.fake.on(mcp.MethodToolsList, func(*fakeConn, mcp.Message) string {
			return fmt.Sprintf(`{"tools":[{"name":"echo"},{"name":"n%d","description":"%s"}]}`, n.Add(1), large)
		})
		if _, err := r.Mount(t.Context(), "fake"); err != nil {
			t.Fatal(err)
		}
		const minute = 60
		saved := 0
		for range 10 * minute {
			r.fake.last().die()
			r.later(time.Second)
			r.call(echo(caller(drawbridge.Legacy)))
			synctest.Wait() // a list that is on its way is taken in
		}
		asked := r.fake.count(mcp.MethodToolsList)
		if asked > 16 { // of a megabyte each, and 16 may change at once
			t.Errorf("it was asked for %d lists in ten minutes", asked)
		}
		for _, e := range r.mem.all() {
			if e == "listing" {
				saved++
			}
		}
		if saved > 30+10 {
			t.Errorf("its listing was saved %d times in ten minutes", saved)
		}
		r.later(3 * time.Hour)
		if got, want := names(r.mem.last()), fmt.Sprintf("echo n%d", n.Load()); got != want ||
			r.fake.count(mcp.MethodToolsList) != asked+1 {
			t.Errorf("the last of %d lists is %s, and there was %s", n.Load(), want, got)
		}
	})
}

// TestWhatAServerSaysOfItselfIsCut has a server explain at great length, and each time in other words, why it does not
// list: neither the log nor what is kept of it grows by that.
func TestWhatAServerSaysOfItselfIsCut(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(t, newFake(), Options{IdleStop: -1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if _, err := r.Mount(t.Context(), "fake"); err != nil {
			t.Fatal(err)
		}
		r.fake.on(mcp.MethodToolsList, func(c *fakeConn, m mcp.Message) string {
			c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(mcp.CodeInternal, time.Now().String()+large, nil)})
			return ""
		})
		for range 60 {
			r.fake.last().note(mcp.NoteToolsChanged, `{}`)
			r.later(time.Second)
		}
		if fault := r.Status()[0].Fault; log.Len() > 64<<10 || len(fault) > 4<<10 || !strings.Contains(fault,
			"error -32603: 20") {
			t.Errorf("the log has %d bytes, the status %d: %.100s", log.Len(), len(fault), fault)
		}
	})
}
