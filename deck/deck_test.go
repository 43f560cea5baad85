package deck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an upstream that writes down what it is told and answers as it was taught.
type fake struct {
	mu     sync.Mutex
	heard  []string
	refuse error // what Watch returns, once
	answer func(id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error)
}

func (f *fake) hear(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, fmt.Sprintf(format, args...))
}

// told returns what was heard since it was last asked.
func (f *fake) told() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.heard
	f.heard = nil
	return out
}

func (f *fake) Do(_ context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
	f.hear("%s %s %s", id, call.Method, call.Params)
	if f.answer != nil {
		return f.answer(id, call)
	}
	return drawbridge.Result{Raw: json.RawMessage(`{}`)}, nil
}

func (f *fake) Watch(_ context.Context, id drawbridge.ServerID, w drawbridge.WatchSet) error {
	if len(w.Tasks) > 0 {
		f.hear("watch %s %v, tasks %v", id, w.URIs, w.Tasks)
		return nil
	}
	f.hear("watch %s %v", id, w.URIs)
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.refuse
	f.refuse = nil
	return err
}

func (f *fake) SetLogLevel(_ context.Context, session, level string) error {
	f.hear("level %q %s", session, level)
	return nil
}

func (f *fake) ForwardNotification(_ context.Context, session, method string, params json.RawMessage) {
	f.hear("tell %q %s%s", session, method, params)
}
func (f *fake) EndSession(session string) { f.hear("end %q", session) }

// memory is a journal in memory.
type memory struct {
	batches []string
	entries []ledger.Entry
	fail    error
}

func (m *memory) Append(_ context.Context, _ string, entries []ledger.Entry) ([]ledger.Entry, error) {
	if m.fail != nil {
		return nil, m.fail
	}
	out := append([]ledger.Entry{}, entries...)
	var words []string
	for i := range out {
		out[i].Seq = uint64(len(m.entries) + i + 1)
		word := string(out[i].Op) + " " + m.toolOf(out[i])
		words = append(words, word)
	}
	m.batches = append(m.batches, strings.Join(words, ", "))
	m.entries = append(m.entries, out...)
	return out, nil
}

func (m *memory) toolOf(e ledger.Entry) string {
	if e.Card != nil {
		return e.Card.Tool
	}
	for _, earlier := range m.entries {
		if earlier.Key == e.Key && earlier.Card != nil {
			return earlier.Card.Tool
		}
	}
	return "?"
}

func (m *memory) Replay(context.Context, string) ([]ledger.Entry, error) {
	return m.entries, m.fail
}

var (
	ada = drawbridge.Caller{Kind: drawbridge.External, Principal: "ada", Scopes: []drawbridge.Scope{"*"},
		Era: drawbridge.Modern}
	bob = drawbridge.Caller{Kind: drawbridge.External, Principal: "bob", Scopes: []drawbridge.Scope{"mcp:b"},
		Era: drawbridge.Modern}
)

// listing makes a listing of a server out of the names of its tools.
func listing(server string, tools ...string) drawbridge.Listing {
	l := drawbridge.Listing{Server: drawbridge.ServerID(server), ConfigHash: "row-" + server}
	for _, name := range tools {
		l.Tools = append(l.Tools, tool(name))
	}
	return l
}

func tool(name string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"Does %s.","inputSchema":{"type":"object"}}`, name,
		name))
}

func objects(member string, values ...string) (out []json.RawMessage) {
	for _, v := range values {
		out = append(out, json.RawMessage(fmt.Sprintf(`{%q:%q}`, member, v)))
	}
	return out
}

// open makes a deck of these listings, configured in their order.
func open(t testing.TB, up *fake, o Options, listings ...drawbridge.Listing) *Deck {
	t.Helper()
	d, err := New(t.Context(), up, o)
	if err != nil {
		t.Fatal(err)
	}
	var members []Server
	for _, l := range listings {
		members = append(members, Server{ID: l.Server, ConfigHash: l.ConfigHash})
	}
	if err := d.Configure(t.Context(), members); err != nil {
		t.Fatal(err)
	}
	for _, l := range listings {
		enrol(t, d, l)
	}
	return d
}

// openVetted is open for a deck whose listings c changes before they are enrolled.
func openVetted(t testing.TB, c censor, up *fake, o Options, listings ...drawbridge.Listing) *Deck {
	t.Helper()
	d := open(t, up, o)
	var members []Server
	for _, l := range listings {
		members = append(members, Server{ID: l.Server, ConfigHash: l.ConfigHash})
	}
	if err := d.Configure(t.Context(), members); err != nil {
		t.Fatal(err)
	}
	for _, l := range listings {
		if err := c.enrol(t.Context(), d, l); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func enrol(t testing.TB, d *Deck, l drawbridge.Listing) {
	t.Helper()
	if err := d.Enrol(t.Context(), l, ShowAll(l)); err != nil {
		t.Fatal(err)
	}
}

// listed returns the names that the caller sees by a list method.
func listed(t testing.TB, d *Deck, caller drawbridge.Caller, k itemKind) []string {
	t.Helper()
	list, err := d.List(t.Context(), caller, k.list)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, raw := range list.Items {
		names = append(names, rawjson.GetString(raw, k.member))
	}
	return names
}

// call calls a card without arguments.
func call(t testing.TB, d *Deck, caller drawbridge.Caller, name string) error {
	t.Helper()
	_, err := d.Call(t.Context(), drawbridge.Call{Caller: caller, Params: objects("name", name)[0]})
	return err
}

func wantList(t testing.TB, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), append([]string{}, got...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func wantFault(t testing.TB, err error, code drawbridge.FaultCode, text string) {
	t.Helper()
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Code != code || f.Error() != text {
		t.Errorf("error is %v (%T), want %s %q", err, err, code, text)
	}
}

func TestListsAreOrderedByConfigurationThenByServer(t *testing.T) {
	d, err := New(t.Context(), &fake{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Configure(t.Context(), []Server{{ID: "b", ConfigHash: "row-b"},
		{ID: "a", ConfigHash: "row-a"}}); err != nil {
		t.Fatal(err)
	}
	enrol(t, d, listing("a", "x"))
	enrol(t, d, listing("b", "z", "y"))
	wantList(t, listed(t, d, ada, tools), "b__z", "b__y", "a__x")
}

func TestOfAToolOnlyTheNameChanges(t *testing.T) {
	l := listing("a")
	l.Tools = []json.RawMessage{json.RawMessage(
		`{ "x": 9007199254740993, "name": "t", "_meta":{}, "inputSchema": {"type":"object","p":0.10},"é":"\u00e9" }`)}
	d := open(t, &fake{}, Options{}, l)
	list, _ := d.List(t.Context(), ada, mcp.MethodToolsList)
	want := `{ "x": 9007199254740993, "name": "a__t", "_meta":{}, "inputSchema": {"type":"object","p":0.10},"é":"\u00e9" }`
	if got := string(list.Items[0]); got != want {
		t.Errorf("tool is\n%s, want\n%s", got, want)
	}
}

func TestACallGoesToItsServerUnderItsOwnName(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{}, listing("a", "x.y"), listing("b", "x.y"))
	params := json.RawMessage(`{"_meta":{"progressToken":1},"name":"b__x_y_8d3bd6","arguments":{"n":1.0}}`)
	name := listed(t, d, ada, tools)[1]
	params = rawjson.Apply(params, rawjson.Put(rawjson.Quote(name), "name"))
	if _, err := d.Call(t.Context(), drawbridge.Call{Caller: ada, Params: params}); err != nil {
		t.Fatal(err)
	}
	wantList(t, up.told(), `b tools/call {"_meta":{"progressToken":1},"name":"x.y","arguments":{"n":1.0}}`)
}

func TestACallByAnyNameThatOnlyOneCardCanMean(t *testing.T) {
	for _, naming := range []NamingStyle{QualifiedNames, MCPNames, BareNames} {
		up := &fake{}
		d := open(t, up, Options{Naming: naming}, listing("a", "one", "both"), listing("b", "both"))
		for _, name := range []string{"a__one", "mcp_a_one", "one", "b__both", "mcp_b_both"} {
			if err := call(t, d, ada, name); err != nil {
				t.Errorf("%s: %q: %v", naming, name, err)
			}
		}
		wantList(t, up.told(),
			`a tools/call {"name":"one"}`, `a tools/call {"name":"one"}`, `a tools/call {"name":"one"}`,
			`b tools/call {"name":"both"}`, `b tools/call {"name":"both"}`)
		if naming == BareNames {
			continue // "both" is the name that the first is listed by
		}
		wantFault(t, call(t, d, ada, "both"), drawbridge.NotFound, "unknown tool both")
	}
}

func TestWhatACallerMayNotKnowOfIsUnknown(t *testing.T) {
	up := &fake{}
	l := listing("a", "secret")
	l.Prompts, l.Resources = objects("name", "p"), objects("uri", "r://1")
	d := open(t, up, Options{Cards: []drawbridge.Card{card{name: "own"}}}, l, listing("b", "secret"))
	wantList(t, listed(t, d, bob, tools), "own", "b__secret")
	wantList(t, listed(t, d, bob, prompts))
	wantFault(t, call(t, d, bob, "a__secret"), drawbridge.NotFound, "unknown tool a__secret")
	wantFault(t, call(t, d, bob, "a__nothing"), drawbridge.NotFound, "unknown tool a__nothing")
	_, err := d.Do(t.Context(), drawbridge.Call{Caller: bob, Method: mcp.MethodPromptsGet,
		Params: objects("name", "a__p")[0]})
	wantFault(t, err, drawbridge.NotFound, "unknown prompt a__p")
	_, err = d.Do(t.Context(), drawbridge.Call{Caller: bob, Method: mcp.MethodResourcesRead,
		Params: objects("uri", "r://1")[0]})
	wantFault(t, err, drawbridge.NotFound, "unknown resource r://1")
	wantFault(t, d.Subscribe(t.Context(), bob, "r://1"), drawbridge.NotFound, "unknown resource r://1")
	if _, ok := d.FindCard(bob, "a__secret"); ok {
		t.Error("bob finds a card that he may not know of")
	}
	if up := up.told(); len(up) > 0 {
		t.Errorf("upstream heard %v", up)
	}
	// Bare "secret" can only mean the one that he may know of.
	if err := call(t, d, bob, "secret"); err != nil {
		t.Error(err)
	}
	stranger := drawbridge.Caller{Scopes: []drawbridge.Scope{"*"}}
	wantList(t, listed(t, d, stranger, tools))
	wantFault(t, call(t, d, stranger, "own"), drawbridge.NotFound, "unknown tool own")
}

// card is a shipped card of the tests.
type card struct {
	name string
	run  func() (drawbridge.Result, error)
}

func (c card) Spec() drawbridge.Spec {
	return drawbridge.Spec{Name: drawbridge.CardName(c.name), Tool: c.name, Definition: objects("name", c.name)[0]}
}

func (c card) Run(context.Context, drawbridge.Call) (drawbridge.Result, error) {
	if c.run == nil {
		return drawbridge.Result{Raw: json.RawMessage(`{"from":"shipped"}`)}, nil
	}
	return c.run()
}

func TestShippedCardsKeepTheirNames(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{Naming: BareNames, Cards: []drawbridge.Card{card{name: "own"}}}, listing("a", "own"))
	wantList(t, listed(t, d, ada, tools), "own", "a__own")
	result, err := d.Call(t.Context(), drawbridge.Call{Caller: ada, Params: objects("name", "own")[0]})
	if err != nil || string(result.Raw) != `{"from":"shipped"}` || len(up.told()) > 0 {
		t.Errorf("result %s, %v", result.Raw, err)
	}
	if _, err := New(t.Context(), up, Options{Cards: []drawbridge.Card{card{name: "own"},
		card{name: "own"}}}); err == nil {
		t.Error("two shipped cards of one name are taken")
	}
}

func TestAShippedCardThatPanics(t *testing.T) {
	d := open(t, &fake{},
		Options{Cards: []drawbridge.Card{card{"own", func() (drawbridge.Result, error) { panic("ouch") }}}})
	wantFault(t, call(t, d, ada, "own"), drawbridge.ServerError, "internal error: see the log")
}

func TestParamsThatSaySomethingTwiceAreRefused(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{}, listing("a", "x"))
	for _, tt := range []struct{ method, params, want string }{
		{mcp.MethodToolsCall, `{"name":"a__x","n\u0061me":"a__x"}`, "tools/call: params have two name"},
		{mcp.MethodToolsCall, `{"name":"a__x","Name":"b__y"}`,
			`tools/call: params have a name that some readers take for "name"`},
		{mcp.MethodToolsCall, `{"name":"a__x","argument\u017f":{}}`,
			`tools/call: params have a name that some readers take for "arguments"`},
		{mcp.MethodToolsCall, `{"name":"a__x","name\u0000":"b__y"}`,
			`tools/call: params have a name that some readers take for "name"`},
		{mcp.MethodToolsCall, `{"name":"a__x","_META":{}}`,
			`tools/call: params have a name that some readers take for "_meta"`},
		{mcp.MethodComplete, `{"ref":{"type":"ref/prompt","name":"p","NAME":"q"}}`,
			`completion/complete: params have a name that some readers take for "name"`},
		{mcp.MethodToolsCall, `{"name":"a__x","arguments":{},"arguments":{}}`, "tools/call: params have two arguments"},
		{mcp.MethodToolsCall, `{"name":7}`, "tools/call: params have no name"},
		{mcp.MethodToolsCall, ``, "tools/call: params have no name"},
		{mcp.MethodResourcesRead, `{"name":"x"}`, "resources/read: params have no uri"},
		{mcp.MethodComplete, `{"ref":{"type":"ref/prompt","name":"p","name":"q"}}`,
			"completion/complete: params have two name"},
		{mcp.MethodComplete, `{"ref":{"type":"ref/prompt"}}`, "completion/complete: params have no ref.name"},
		{mcp.MethodComplete, `{"ref":{"type":"ref/tool","name":"p"}}`,
			`completion/complete: no such reference "ref/tool"`},
	} {
		_, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: tt.method, Params: json.RawMessage(tt.params)})
		wantFault(t, err, drawbridge.InvalidInput, tt.want)
	}
	_, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: "tasks/get", Params: objects("name", "x")[0]})
	wantFault(t, err, drawbridge.NotFound, "unknown method tasks/get")
	if heard := up.told(); len(heard) > 0 {
		t.Errorf("upstream heard %v", heard)
	}
}

func TestFaultsOfTheServerPassUnchanged(t *testing.T) {
	fault := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: "call a",
		Ambiguous: true}
	up := &fake{answer: func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{}, fault
	}}
	d := open(t, up, Options{}, listing("a", "x"))
	if err := call(t, d, ada, "a__x"); err != error(fault) {
		t.Errorf("error is %v, want the server's own", err)
	}
}

func TestAnUnknownNameWaitsForServersThatAreAboutToAppear(t *testing.T) {
	var d *Deck
	waited := 0
	o := Options{BeforeList: func(ctx context.Context) {
		if waited++; waited == 1 {
			if err := d.Enrol(ctx, listing("a", "x"), ShowAll(listing("a", "x"))); err != nil {
				t.Error(err)
			}
		}
	}}
	d, err := New(t.Context(), &fake{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Configure(t.Context(), []Server{{ID: "a", ConfigHash: "row-a"}}); err != nil {
		t.Fatal(err)
	}
	if err := call(t, d, ada, "a__x"); err != nil {
		t.Error(err)
	}
	if err := call(t, d, ada, "a__x"); err != nil || waited != 1 {
		t.Errorf("a known name: %v, waited %d times", err, waited)
	}
	wantList(t, listed(t, d, ada, tools), "a__x")
	if waited != 2 {
		t.Errorf("waited %d times, want once more for the list", waited)
	}
}

func TestTheWaitForAnUnknownURIEndsWhenItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := open(t, &fake{}, Options{
			BeforeList: func(context.Context) { t.Error("a list is waited for") },
			BeforeUnknown: func(ctx context.Context, _ drawbridge.Caller, name string) {
				if name != "" {
					t.Errorf("the URI has the name %q", name)
				}
				<-ctx.Done()
			},
		}, listing("a", "y"))
		began := time.Now()
		var work sync.WaitGroup
		work.Go(func() {
			<-time.After(time.Second)
			l := listing("a", "y")
			l.Resources = objects("uri", "test://a")
			enrol(t, d, l)
		})
		if err := d.Subscribe(t.Context(), ada, "test://a"); err != nil || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		work.Wait()
	})
}

func TestTheWaitForAnUnknownNameEndsWhenItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d *Deck
		var asked []string
		o := Options{
			BeforeList: func(context.Context) { t.Error("a list is waited for") },
			BeforeUnknown: func(ctx context.Context, caller drawbridge.Caller, name string) {
				asked = append(asked, caller.Principal+" "+name)
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
			},
		}
		d = open(t, &fake{}, o, listing("a"))
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			<-time.After(time.Second)
			enrol(t, d, listing("a", "y"))
			<-time.After(time.Second)
			enrol(t, d, listing("a", "y", "x"))
		})
		if err := call(t, d, ada, "a__x"); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		wg.Wait()
		wantFault(t, call(t, d, bob, "a__x"), drawbridge.NotFound, "unknown tool a__x")
		if got := time.Since(began); got != 62*time.Second {
			t.Errorf("what never came was unknown after %v", got)
		}
		wantList(t, asked, "ada a__x", "bob a__x")
	})
}

func TestHelpShowsBridgedCardsBesideShippedOnes(t *testing.T) {
	l := listing("fs")
	l.Tools = []json.RawMessage{
		json.RawMessage(`{"name":"read","title":"Read file","description":"Reads\u001b[31m a\tfile.\n\nMore."}`),
		json.RawMessage(`{"name":"list","description":"  ` + strings.Repeat("long ", 60) +
			`","annotations":{"title":"List"}}`),
	}
	d := open(t, &fake{}, Options{Cards: []drawbridge.Card{card{name: "own"}}}, l)
	type row struct{ Name, Server, Tool, Title, Summary string }
	var got []row
	for _, s := range d.Cards(ada) {
		got = append(got, row{string(s.Name), string(s.Server), s.Tool, s.Title, s.Summary})
	}
	want := []row{
		{"own", "", "own", "", ""},
		{"fs__read", "fs", "read", "Read file", `Reads\u001b[31m a file.`},
		{"fs__list", "fs", "list", "List", strings.Repeat("long ", 23) + "long…"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cards (-want +got):\n%s", diff)
	}
}

func TestABridgeCardRunsOnItsOwn(t *testing.T) {
	up := &fake{}
	c := NewUpstreamCard(up, "fs", "fs__read", tool("read"))
	if _, err := c.Run(t.Context(), drawbridge.Call{Method: mcp.MethodToolsCall, Params: objects("name",
		"anything")[0]}); err != nil {
		t.Fatal(err)
	}
	wantList(t, up.told(), `fs tools/call {"name":"read"}`)
	if got := rawjson.GetString(c.Spec().Definition, "name"); got != "fs__read" {
		t.Errorf("it is listed as %q", got)
	}
}
