package deck

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

func TestAServerHearsOfAWatchedResourceOnce(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{}, library("a", []string{"r://1", "r://2"}, nil), library("b", []string{"r://1"}, nil))
	session := func(name string) drawbridge.Caller {
		c := ada
		c.Session = name
		return c
	}
	one, two, none := session("1"), session("2"), ada
	type step struct {
		do   func() error
		want []string
	}
	subscribe := func(c drawbridge.Caller, uri string) func() error {
		return func() error { return d.Subscribe(t.Context(), c, uri) }
	}
	unsubscribe := func(c drawbridge.Caller, uri string) func() error {
		return func() error { return d.Unsubscribe(t.Context(), c, uri) }
	}
	for i, s := range []step{
		{subscribe(one, "r://1"), []string{"watch a [r://1]"}},
		{subscribe(one, "r://1"), nil},
		{subscribe(two, "r://1"), nil},
		{subscribe(two, "r://2"), []string{"watch a [r://1 r://2]"}},
		{subscribe(two, "drawbridge+b:r://1"), []string{"watch b [r://1]"}},
		{subscribe(none, "r://2"), nil},
		{subscribe(none, "r://2"), nil},
		{unsubscribe(one, "r://2"), nil},
		{unsubscribe(none, "r://2"), nil},
		{func() error { d.EndSession(two); return nil }, []string{"watch b []", `end "2"`}},
		{unsubscribe(none, "r://2"), []string{"watch a [r://1]"}},
		{unsubscribe(none, "r://2"), nil},
		{unsubscribe(one, "r://1"), []string{"watch a []"}},
		{func() error { d.EndSession(none); return nil }, nil},
		{func() error { d.ForwardNotification(t.Context(), two, mcp.NoteRootsChanged, nil); return nil },
			[]string{`tell "2" notifications/roots/list_changed`}},
		{func() error { d.ForwardNotification(t.Context(), none, mcp.NoteRootsChanged, nil); return nil }, nil},
	} {
		if err := s.do(); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		if diff := cmp.Diff(s.want, up.told()); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestASubscriptionThatComesAfterItsSession has a session end while its client subscribes: nothing is watched for it.
func TestASubscriptionThatComesAfterItsSession(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{}, library("a", []string{"r://1", "r://2"}, nil))
	gone, other := ada, ada
	gone.Session, other.Session = "gone", "other"
	for range 20 { // anyone who waits for a turn and its end at once may get either
		if err := d.Subscribe(t.Context(), other, "r://1"); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		end()
		d.EndSession(gone)
		if err := d.Subscribe(ctx, gone, "r://1", "r://2"); !errors.Is(err, context.Canceled) {
			t.Errorf("subscribe: %v", err)
		}
		up.told()
		if err := d.Unsubscribe(t.Context(), other, "r://1"); err != nil {
			t.Fatal(err)
		}
		wantList(t, up.told(), "watch a []")
		if t.Failed() {
			return
		}
	}
}

// TestARefusedSubscriptionLeavesTheOthers: each server hears of all that is new in one go, and of what is left.
func TestARefusedSubscriptionLeavesTheOthers(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{}, library("a", []string{"r://1", "r://2", "r://3"}, nil),
		library("b", []string{"r://1"}, nil))
	subscribe := func(refused error, uris ...string) (not []string) {
		t.Helper()
		up.refuse = refused
		err := d.Subscribe(t.Context(), ada, uris...)
		if some, ok := errors.AsType[*drawbridge.UnwatchedError](err); ok {
			return some.Unwatched.URIs
		} else if err != nil {
			t.Error(err)
		}
		return nil
	}
	no := func(uris ...string) error {
		return &drawbridge.UnwatchedError{Unwatched: drawbridge.WatchSet{URIs: uris}, Err: errors.New("no")}
	}
	wantList(t, subscribe(nil, "r://1", "x://gone", "drawbridge+b:r://1"), "x://gone")
	wantList(t, up.told(), "watch a [r://1]", "watch b [r://1]")
	// r://1 is another subscription's business
	wantList(t, subscribe(no("r://1", "r://3"), "r://1", "r://2", "r://3"), "r://3")
	wantList(t, up.told(), "watch a [r://1 r://2 r://3]", "watch a [r://1 r://2]")
	wantList(t, subscribe(errors.New("away"), "r://2", "r://3"), "r://3")
	wantList(t, up.told(), "watch a [r://1 r://2 r://3]", "watch a [r://1 r://2]")
	wantList(t, subscribe(nil, "r://3"))
	wantList(t, up.told(), "watch a [r://1 r://2 r://3]")
}

func TestAnUpdateReachesCallersUnderTheURITheyKnow(t *testing.T) {
	d := open(t, &fake{}, Options{}, library("a", []string{"r://1"}, nil), library("b", []string{"r://1"},
		[]string{"t://{x}"}))
	events := listen(t, d)
	update := func(server drawbridge.ServerID, uri string) drawbridge.ServerNotification {
		return drawbridge.ServerNotification{Server: server, Method: mcp.NoteResourceUpdated,
			Params: objects("uri", uri)[0]}
	}
	if err := d.Subscribe(t.Context(), ada, "drawbridge+b:t://7"); err != nil {
		t.Fatal(err)
	}
	d.HandleNotification(update("a", "r://1"))
	d.HandleNotification(update("b", "r://1"))
	d.HandleNotification(update("b", "t://7"))
	d.HandleNotification(update("b", "t://8"))
	d.HandleNotification(update("gone", "r://1"))
	var got []string
	for _, e := range *events {
		if e.Kind != ResourceUpdated || rawjson.GetString(e.Notification.Params, "uri") != e.URI {
			t.Errorf("event %+v", e)
		}
		got = append(got, string(e.Notification.Server)+" "+e.URI)
	}
	wantList(t, got, "a r://1", "b drawbridge+b:r://1", "b drawbridge+b:t://7", "b t://8")
}

func TestNoticesAreForThoseTheyConcern(t *testing.T) {
	d := open(t, &fake{}, Options{}, listing("a", "x"))
	events := listen(t, d)
	note := drawbridge.ServerNotification{Server: "a", Session: "1", Method: mcp.NoteMessage,
		Params: json.RawMessage(`{"data":1}`)}
	d.HandleNotification(note)
	d.HandleNotification(drawbridge.ServerNotification{Server: "a", Method: mcp.NoteToolsChanged}) // the listing tells
	if diff := cmp.Diff([]Event{{Kind: ServerNotified, Notification: note}}, *events); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	e := (*events)[0]
	mine, other := ada, ada
	mine.Session, other.Session = "1", "2"
	stranger := bob
	stranger.Session = "1"
	if !e.VisibleTo(mine) || e.VisibleTo(other) || e.VisibleTo(stranger) {
		t.Error("a notice of one session concerns that session of a caller with the scope, and no one else")
	}
	if all := (Event{Kind: ToolsChanged}); !all.VisibleTo(stranger) {
		t.Error("a change of the deck concerns everyone")
	}
}

func TestWhatOnePrincipalsProcessSaysIsForThatPrincipal(t *testing.T) {
	d := open(t, &fake{}, Options{Owner: ada.Principal}, library("a", []string{"r://1"}, nil),
		library("met", []string{"m://1"}, nil))
	if err := d.Configure(t.Context(), []Server{{ID: "a", ConfigHash: "row-a", PerPrincipal: true},
		{ID: "met", ConfigHash: "row-met"}}); err != nil {
		t.Fatal(err)
	}
	events := listen(t, d)
	d.HandleNotification(drawbridge.ServerNotification{Server: "a", Principal: ada.Principal, Method: mcp.NoteMessage})
	d.HandleNotification(drawbridge.ServerNotification{Server: "met", Method: mcp.NoteMessage})
	carl := ada
	carl.Principal = "carl"
	for i, want := range []bool{false, true} {
		if e := (*events)[i]; !e.VisibleTo(ada) || e.VisibleTo(carl) != want {
			t.Errorf("%+v concerns carl: %t", e, !want)
		}
	}
	wantFault(t, d.Subscribe(t.Context(), carl, "r://1"), drawbridge.PolicyBlocked,
		"watch r://1: each principal has its own process of this server, and only the owner's is watched")
	for _, err := range []error{d.Subscribe(t.Context(), ada, "r://1"), d.Subscribe(t.Context(), carl, "m://1")} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestALogLevelIsTheSessionsOwn(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{}, listing("a", "x"))
	one := ada
	one.Session = "1"
	if err := d.SetLogLevel(t.Context(), one, "warning"); err != nil {
		t.Fatal(err)
	}
	wantList(t, up.told(), `level "1" warning`)
	wantFault(t, d.SetLogLevel(t.Context(), one, "loud"), drawbridge.InvalidInput,
		`logging/setLevel: no such log level "loud"`)
	wantList(t, up.told())
}

func TestInstructionsNameTheirServerAndAreCapped(t *testing.T) {
	a, b, c := listing("a"), listing("b"), listing("c")
	a.Instructions, b.Instructions, c.Instructions = "Use me.\n", " ", strings.Repeat("é", 2000)
	d := open(t, &fake{}, Options{}, a, b, c)
	want := "## a\nUse me.\n\n## c\n" + strings.Repeat("é", 1022) + "…\n"
	if diff := cmp.Diff(want, d.Instructions(ada)); diff != "" {
		t.Errorf("instructions (-want +got):\n%s", diff)
	}
	if got := d.Instructions(bob); got != "" {
		t.Errorf("bob reads %q", got)
	}
	var many []drawbridge.Listing
	for _, name := range strings.Fields("a b c d e f g h i j") {
		l := listing(name)
		l.Instructions = strings.Repeat("x", 3000)
		many = append(many, l)
	}
	all := open(t, &fake{}, Options{}, many...).Instructions(ada)
	if len(all) != maxInstructions || !strings.HasSuffix(all, "x…") {
		t.Errorf("all instructions have %d bytes and end in %q", len(all), all[len(all)-10:])
	}
}

func TestCapabilitiesAreWhatTheServersOfferTogether(t *testing.T) {
	a, b := listing("a"), listing("b")
	a.Capabilities = json.RawMessage(`{"tools":{},"prompts":{},"logging":{},"tasks":{},"experimental":{"x":1}}`)
	b.Capabilities = json.RawMessage(`{"resources":{"listChanged":true},"completions":{}}`)
	d := open(t, &fake{}, Options{}, a, b)
	for _, tt := range []struct {
		caller drawbridge.Caller
		want   string
	}{
		{ada, `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":false},"completions":{},"logging":{}}`},
		{bob, `{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":false},"completions":{}}`},
	} {
		if got := string(d.Capabilities(tt.caller)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.caller.Principal, got, tt.want)
		}
	}
	// A server that was never listed may yet offer anything.
	if err := d.Configure(t.Context(), []Server{{ID: "b", ConfigHash: "new"}}); err != nil {
		t.Fatal(err)
	}
	want := `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}}`
	if got := string(d.Capabilities(bob)); got != want {
		t.Errorf("before the first listing: %s, want %s", got, want)
	}
}

func TestHintsAreTheStrictestOfThoseWhoContribute(t *testing.T) {
	hinted := func(name string, ttl time.Duration, public bool) drawbridge.Listing {
		l := listing(name, "x")
		hint := drawbridge.CacheHint{TTL: ttl, Public: public}
		l.CacheHints = map[string]drawbridge.CacheHint{mcp.MethodToolsList: hint, mcp.MethodDiscover: hint}
		return l
	}
	silent := listing("silent") // contributes no tools
	empty := hinted("empty", time.Second, false)
	empty.Tools = nil // yet, for a second
	for _, tt := range []struct {
		name           string
		listings       []drawbridge.Listing
		caller         drawbridge.Caller
		list, discover drawbridge.CacheHint
	}{
		{"none", nil, ada, drawbridge.CacheHint{}, drawbridge.CacheHint{}},
		{"one", []drawbridge.Listing{hinted("a", time.Minute, true)}, ada, drawbridge.CacheHint{TTL: time.Minute,
			Public: true}, drawbridge.CacheHint{TTL: time.Minute, Public: true}},
		{"two", []drawbridge.Listing{hinted("a", time.Minute, true), hinted("b", time.Hour, false)}, ada,
			drawbridge.CacheHint{TTL: time.Minute}, drawbridge.CacheHint{TTL: time.Minute}},
		{"one without hints", []drawbridge.Listing{hinted("a", time.Minute, true), listing("b", "y")}, ada,
			drawbridge.CacheHint{}, drawbridge.CacheHint{}},
		{"one without tools", []drawbridge.Listing{hinted("a", time.Minute, true), silent}, ada,
			drawbridge.CacheHint{TTL: time.Minute, Public: true}, drawbridge.CacheHint{}},
		{"one with an empty list", []drawbridge.Listing{hinted("a", time.Minute, true), empty}, ada,
			drawbridge.CacheHint{TTL: time.Second}, drawbridge.CacheHint{TTL: time.Second}},
		{"a part of the deck", []drawbridge.Listing{hinted("a", time.Minute, true), hinted("b", time.Hour, true)}, bob,
			drawbridge.CacheHint{TTL: time.Hour}, drawbridge.CacheHint{TTL: time.Hour}},
	} {
		d := open(t, &fake{}, Options{}, tt.listings...)
		list, _ := d.List(t.Context(), tt.caller, mcp.MethodToolsList)
		if list.CacheHint != tt.list || d.CacheHint(tt.caller, mcp.MethodToolsList) != tt.list {
			t.Errorf("%s: list %+v, want %+v", tt.name, list.CacheHint, tt.list)
		}
		if got := d.CacheHint(tt.caller, mcp.MethodDiscover); got != tt.discover {
			t.Errorf("%s: discover %+v, want %+v", tt.name, got, tt.discover)
		}
	}
	// As long as a server may yet appear, no list is to be kept.
	d := open(t, &fake{}, Options{}, hinted("a", time.Minute, true))
	if err := d.Configure(t.Context(), []Server{{ID: "a", ConfigHash: "row-a"},
		{ID: "late", ConfigHash: "row"}}); err != nil {
		t.Fatal(err)
	}
	if got := d.CacheHint(ada, mcp.MethodToolsList); got != (drawbridge.CacheHint{}) {
		t.Errorf("with a server that was never listed: %+v", got)
	}
}
