package deck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/google/go-cmp/cmp"
)

func TestEnrolRecordsTheDifferencesAsOneBatch(t *testing.T) {
	journal := &memory{}
	d := open(t, &fake{}, Options{Journal: journal}, listing("a", "keep", "go", "change"))
	l := listing("a", "new", "keep")
	l.Tools = append(l.Tools,
		json.RawMessage(`{"name":"change","description":"Says more.","inputSchema":{"type":"object"}}`))
	enrol(t, d, l)
	l.Tools = append(l.Tools[:2:2],
		json.RawMessage(
			`{"name":"change","description":"Takes more.","inputSchema":{"type":"object","properties":{}}}`))
	enrol(t, d, l)
	wantList(t, journal.batches,
		"enroll keep, enroll go, enroll change",
		"retire go, enroll new, enroll change", // the same key: an upsert
		"retire change, enroll change",         // another schema: another key
	)
	wantList(t, listed(t, d, ada, tools), "a__new", "a__keep", "a__change")
}

func TestAnEqualListingRecordsNothingAndNotifiesNoCaller(t *testing.T) {
	journal := &memory{}
	l := listing("a", "x")
	l.Prompts, l.Resources = objects("name", "p"), objects("uri", "r://1")
	d := open(t, &fake{}, Options{Journal: journal}, l)
	events := listen(t, d)
	before, _ := d.List(t.Context(), ada, mcp.MethodToolsList)

	enrol(t, d, l)
	reordered := l
	reordered.Tools = []json.RawMessage{json.RawMessage(
		`{"inputSchema":{"type":"object"},  "description":"Does x.","name":"x"}`)}
	enrol(t, d, reordered)

	after, _ := d.List(t.Context(), ada, mcp.MethodToolsList)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the list changed (-before +after):\n%s", diff)
	}
	if len(journal.batches) != 1 || len(*events) != 0 {
		t.Errorf("journal %q, events %v", journal.batches, *events)
	}
}

// listen writes down the kinds of events that the deck tells.
func listen(t testing.TB, d *Deck) *[]Event {
	var mu sync.Mutex
	events := &[]Event{}
	t.Cleanup(d.OnEvent(func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		*events = append(*events, e)
	}))
	return events
}

func TestEachChangeTellsWhatChanged(t *testing.T) {
	d := open(t, &fake{}, Options{}, listing("a", "x"))
	events := listen(t, d)
	kinds := func() []EventKind {
		var out []EventKind
		for _, e := range *events {
			out = append(out, e.Kind)
		}
		*events = nil
		return out
	}
	l := listing("a", "x")
	for _, step := range []struct {
		change func()
		want   []EventKind
	}{
		{func() { l.Tools = append(l.Tools, tool("y")) }, []EventKind{ToolsChanged}},
		{func() { l.Prompts = objects("name", "p") }, []EventKind{PromptsChanged}},
		{func() { l.Resources = objects("uri", "r://1") }, []EventKind{ResourcesChanged}},
		{func() { l.Templates = objects("uriTemplate", "r://{x}") }, []EventKind{ResourcesChanged}},
		{func() { l = listing("a") }, []EventKind{ToolsChanged, PromptsChanged, ResourcesChanged}},
	} {
		step.change()
		enrol(t, d, l)
		if diff := cmp.Diff(step.want, kinds()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
}

func TestARestartShowsTheSameDeck(t *testing.T) {
	journal := &memory{}
	before := open(t, &fake{}, Options{Journal: journal}, listing("b", "y", "x"), listing("a", "z"))
	again, err := New(t.Context(), &fake{}, Options{Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Configure(t.Context(), []Server{{ID: "b", ConfigHash: "row-b"},
		{ID: "a", ConfigHash: "row-a"}}); err != nil {
		t.Fatal(err)
	}
	wantList(t, listed(t, again, ada, tools), listed(t, before, ada, tools)...)
	enrol(t, again, listing("b", "x", "y"))
	wantList(t, listed(t, again, ada, tools), "b__x", "b__y", "a__z")
	if len(journal.batches) != 2 {
		t.Errorf("the restart recorded something: %q", journal.batches)
	}
}

func TestWhatIsRememberedIsEnrolledWithTheConfiguration(t *testing.T) {
	journal := &memory{}
	first := open(t, &fake{}, Options{Journal: journal}, listing("a", "x"), listing("b", "y"))
	d, err := New(t.Context(), &fake{}, Options{Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	events := listen(t, d)
	same, changed, other := listing("a", "x"), listing("b", "y", "z"), listing("c", "w")
	same.Prompts = objects("name", "p")
	other.ConfigHash = "of another row"
	members := []Server{{ID: "a", ConfigHash: "row-a", Remembered: remember(same)}, {ID: "b", ConfigHash: "row-b",
		Remembered: remember(changed)}, {ID: "c", ConfigHash: "row-c", Remembered: remember(other)}}
	if err := d.Configure(t.Context(), members); err != nil {
		t.Fatal(err)
	}
	wantList(t, listed(t, d, ada, tools), append(listed(t, first, ada, tools), "b__z")...)
	wantList(t, listed(t, d, ada, prompts), "a__p")
	wantList(t, journal.batches, "enroll x", "enroll y", "enroll z")
	if len(*events) != 2 {
		t.Errorf("events %v, want one of tools and one of prompts", *events)
	}
	// A server that was listed since is not taken back to what was remembered.
	enrol(t, d, listing("b", "y"))
	if err := d.Configure(t.Context(), members); err != nil {
		t.Fatal(err)
	}
	wantList(t, listed(t, d, ada, tools), "a__x", "b__y")
}

func TestConfigureRetiresWhatIsGone(t *testing.T) {
	journal := &memory{}
	d := open(t, &fake{}, Options{Journal: journal}, listing("a", "x"), listing("b", "y"), listing("c", "z"))
	journal.batches = nil
	events := listen(t, d)
	// a is gone, b has another row, c stays.
	if err := d.Configure(t.Context(), []Server{{ID: "c", ConfigHash: "row-c"},
		{ID: "b", ConfigHash: "another"}}); err != nil {
		t.Fatal(err)
	}
	wantList(t, journal.batches, "retire x, retire y")
	wantList(t, listed(t, d, ada, tools), "c__z")
	if len(*events) != 1 {
		t.Errorf("events %v, want one", *events)
	}
	wantFault(t, d.Enrol(t.Context(), listing("a", "x"), ShowAll(listing("a", "x"))), drawbridge.NotFound,
		"enrol a: the configuration has no such server now")
	wantFault(t, d.Enrol(t.Context(), listing("b", "y"), ShowAll(listing("b", "y"))), drawbridge.NotFound,
		"enrol b: the configuration has no such server now")
}

func TestWithdrawTakesAServerOffUntilItsNextListing(t *testing.T) {
	journal := &memory{}
	d := open(t, &fake{}, Options{Journal: journal}, listing("a", "x"), listing("b", "y"))
	if err := d.RetireServer(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := d.RetireServer(t.Context(), "unheard of"); err != nil {
		t.Fatal(err)
	}
	wantList(t, listed(t, d, ada, tools), "b__y")
	enrol(t, d, listing("a", "x"))
	wantList(t, listed(t, d, ada, tools), "a__x", "b__y")
	wantList(t, journal.batches, "enroll x", "enroll y", "retire x", "enroll x")
}

func TestAJournalThatFailsChangesNothing(t *testing.T) {
	journal := &memory{}
	d := open(t, &fake{}, Options{Journal: journal}, listing("a", "x"))
	journal.fail = errors.New("disk full")
	events := listen(t, d)
	for what, err := range map[string]error{
		"enrol":     d.Enrol(t.Context(), listing("a", "y"), ShowAll(listing("a", "y"))),
		"withdraw":  d.RetireServer(t.Context(), "a"),
		"configure": d.Configure(t.Context(), nil),
	} {
		if !errors.Is(err, journal.fail) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantList(t, listed(t, d, ada, tools), "a__x")
	if len(*events) > 0 {
		t.Errorf("events %v", *events)
	}
}

func TestWhatCannotBeOnTheDeckIsShown(t *testing.T) {
	l := listing("a", "one")
	l.Tools = append(l.Tools, json.RawMessage(`"text"`), json.RawMessage(`{"title":"no name"}`),
		json.RawMessage(`{"name":""}`),
		tool("one"), tool("two"), tool("three"))
	l.Prompts = []json.RawMessage{json.RawMessage(`{"name":null}`)}
	l.Resources = []json.RawMessage{json.RawMessage(`[]`), json.RawMessage(`{"uri":"r://1"}`)}
	d := open(t, &fake{}, Options{MaxTools: 2}, l)
	wantList(t, listed(t, d, ada, tools), "a__one", "a__two")
	want := []ServerSummary{{
		Server: "a", ConfigHash: "row-a", Cards: []drawbridge.CardName{"a__one", "a__two"},
		Prompts: []drawbridge.CardName{}, Resources: 1,
		Omitted: []OmittedItem{
			{Kind: "tool", Reason: "it is not a JSON object"},
			{Kind: "tool", Reason: "it has no name"},
			{Kind: "tool", Reason: "it has no name"},
			{Kind: "tool", Name: "one", Reason: "the server lists its name twice"},
			{Kind: "tool", Name: "three", Reason: "it is over the limit of 2 for this server"},
			{Kind: "prompt", Reason: "it has no name"},
			{Kind: "resource", Reason: "it is not a JSON object"},
		},
	}}
	if diff := cmp.Diff(want, d.ServerSummaries()); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

func TestClashesOfTwoServersAreLoggedOnce(t *testing.T) {
	var log strings.Builder
	o := Options{Naming: BareNames, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))}
	d := open(t, &fake{}, o, listing("a", "echo", "say"), listing("b", "say", "echo", "echo"), listing("c", "echo"))
	enrol(t, d, listing("a", "echo", "say", "more"))
	want := `level=WARN msg="server has names that another server has" server=b winner=a count=2 first=say listed=b__say
level=WARN msg="some items of the server are not on the deck" server=b count=1 first="the server lists its name twice"
level=WARN msg="server has names that another server has" server=c winner=a count=1 first=echo listed=c__echo
`
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestBareNamesOfTwoTheLaterIsQualified(t *testing.T) {
	d := open(t, &fake{}, Options{Naming: BareNames}, listing("b", "echo", "get.item"),
		listing("a", "echo", "odd name"))
	wantList(t, listed(t, d, ada, tools), "echo", "get.item", "a__echo", "a__odd_name_aca500")
	want := []NameClash{{Kind: "tool", Name: "echo", Winner: "b", Tool: "echo", Listed: "a__echo"}}
	if diff := cmp.Diff(want, d.ServerSummaries()[1].Clashes); diff != "" {
		t.Errorf("clashes (-want +got):\n%s", diff)
	}
	// The order of the configuration decides, not that of arrival.
	late, err := New(t.Context(), &fake{}, Options{Naming: BareNames})
	if err != nil {
		t.Fatal(err)
	}
	if err := late.Configure(t.Context(), []Server{{ID: "b", ConfigHash: "row-b"},
		{ID: "a", ConfigHash: "row-a"}}); err != nil {
		t.Fatal(err)
	}
	enrol(t, late, listing("a", "echo"))
	wantList(t, listed(t, late, ada, tools), "echo")
	enrol(t, late, listing("b", "echo"))
	wantList(t, listed(t, late, ada, tools), "echo", "a__echo")
	if spec, _ := late.FindCard(ada, "echo"); spec.Server != "b" {
		t.Errorf("echo is %s's, want b's", spec.Server)
	}
}

// TestNamesStayWithTheirHolders has servers and tools that come to a running deck.
func TestNamesStayWithTheirHolders(t *testing.T) {
	d := open(t, &fake{}, Options{Naming: BareNames}, listing("b", "get"), listing("a", "echo"))
	enrol(t, d, listing("b", "get", "echo"))
	wantList(t, listed(t, d, ada, tools), "get", "b__echo", "echo")
	rows := []Server{{ID: "new", ConfigHash: "row-new"}, {ID: "b", ConfigHash: "row-b"}, {ID: "a", ConfigHash: "row-a"}}
	if err := d.Configure(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	enrol(t, d, listing("new", "echo", "get", "own"))
	wantList(t, listed(t, d, ada, tools), "new__echo", "new__get", "own", "get", "b__echo", "echo")
	enrol(t, d, listing("b", "get", "echo", "own"))
	d.Refresh()
	wantList(t, listed(t, d, ada, tools), "new__echo", "new__get", "own", "get", "b__echo", "b__own", "echo")
}

// TestProjectsTakeNoNames has a project's server whose tools would have the names of a person's server. It is earlier
// in the configuration and arrives later.
func TestProjectsTakeNoNames(t *testing.T) {
	for _, tt := range []struct {
		style         NamingStyle
		project, tool string
		want          []string
	}{
		{MCPNames, "Good", "echo", []string{"Good__echo", "mcp_good_echo"}},
		{MCPNames, "good_", "echo", []string{"good___echo_a3df5d", "mcp_good_echo"}},
		{BareNames, "evil", "echo", []string{"evil__echo", "echo"}},
		{BareNames, "evil", "good__echo", []string{"evil__good__echo", "echo"}},
		{QualifiedNames, "evil", "echo", []string{"evil__echo", "good__echo"}},
	} {
		t.Run(string(tt.style)+" "+tt.project+" "+tt.tool, func(t *testing.T) {
			servers := []Server{{ID: drawbridge.ServerID(tt.project), ConfigHash: "row-" + tt.project,
				FromProject: true},
				{ID: "good", ConfigHash: "row-good"}}
			d, err := New(t.Context(), &fake{}, Options{Naming: tt.style})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Configure(t.Context(), servers); err != nil {
				t.Fatal(err)
			}
			enrol(t, d, listing("good", "echo"))
			enrol(t, d, listing(tt.project, tt.tool))
			wantList(t, listed(t, d, ada, tools), tt.want...)
			if spec, _ := d.FindCard(ada, drawbridge.CardName(tt.want[1])); spec.Server != "good" {
				t.Errorf("%s is %s's", tt.want[1], spec.Server)
			}
		})
	}
}

func TestMCPNamesOfTwoTheLaterIsQualified(t *testing.T) {
	d := open(t, &fake{}, Options{Naming: MCPNames}, listing("a_b", "c"), listing("a", "b_c"))
	wantList(t, listed(t, d, ada, tools), "mcp_a_b_c", "a__b_c")
}

// TestAMadeUpClash has a server that names a tool like the mark of another's.
func TestAMadeUpClash(t *testing.T) {
	honest := naming.QualifiedName("a.", "b") // "a___b_" and a mark
	mimic := strings.TrimPrefix(string(honest), "a__")
	for _, order := range [][]drawbridge.Listing{
		{listing("a.", "b"), listing("a", mimic)},
		{listing("a", mimic), listing("a.", "b")},
	} {
		up := &fake{}
		d := open(t, up, Options{}, order...)
		names := listed(t, d, ada, tools)
		if len(names) != 2 || names[0] != string(honest) || names[1] == names[0] {
			t.Errorf("listed as %q: want both, and the first as %q", names, honest)
		}
		for _, name := range names {
			if err := call(t, d, ada, name); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		heard := up.told()
		if len(heard) != 2 || !strings.HasPrefix(heard[0], string(order[0].Server)+" ") || !strings.HasPrefix(heard[1],
			string(order[1].Server)+" ") {
			t.Errorf("calls went to %q", heard)
		}
		if got := d.ServerSummaries()[1].Clashes; len(got) != 1 || got[0].Winner != order[0].Server {
			t.Errorf("clashes %+v", got)
		}
	}
}

// TestOneKeyForTwo has two servers whose qualified names read the same, so that the content key does too.
func TestOneKeyForTwo(t *testing.T) {
	d := open(t, &fake{}, Options{Journal: &memory{}}, listing("a_", "b"), listing("a", "_b"))
	wantList(t, listed(t, d, ada, tools), "a___b_a00766", "a___b")
	enrol(t, d, listing("a_", "b"))
	enrol(t, d, listing("a", "_b"))
	wantList(t, listed(t, d, ada, tools), "a___b_a00766", "a___b")
}

func TestAnotherServerRenamesNoCard(t *testing.T) {
	for _, naming := range []NamingStyle{QualifiedNames, MCPNames, BareNames} {
		alone := open(t, &fake{}, Options{Naming: naming}, listing("m", "x", "y z", strings.Repeat("long", 20)))
		before := listed(t, alone, ada, tools)
		crowd := open(t, &fake{}, Options{Naming: naming}, listing("m", "x", "y z", strings.Repeat("long", 20)),
			listing("z", "x", "y_z"), listing("m.", "x"))
		if diff := cmp.Diff(before, listed(t, crowd, ada, tools)[:3]); diff != "" {
			t.Errorf("%s (-alone +with others):\n%s", naming, diff)
		}
	}
}

// TestReadersSeeWholeDecks reads while servers come and go: every list is one that a listing said.
func TestReadersSeeWholeDecks(t *testing.T) {
	d := open(t, &fake{}, Options{}, listing("a", "x", "y"), listing("b", "z"))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			versions := map[uint64]string{}
			for range 200 {
				for _, caller := range []drawbridge.Caller{ada, bob} {
					list, _ := d.List(t.Context(), caller, mcp.MethodToolsList)
					text := fmt.Sprint(len(list.Items), string(list.Items[0]))
					if seen, ok := versions[list.Version]; ok && seen != text {
						t.Errorf("version %d is %s and %s", list.Version, seen, text)
					}
					versions[list.Version] = text
					_, _ = d.Call(t.Context(), drawbridge.Call{Caller: caller, Params: objects("name", "b__z")[0]})
				}
			}
		})
	}
	for i := range 100 {
		if i%2 == 0 {
			enrol(t, d, listing("a", "x"))
		} else {
			enrol(t, d, listing("a", "x", "y"))
		}
	}
	wg.Wait()
}

// A foldingMemory is a journal that knows what its log comes to, and returns no log.
type foldingMemory struct{ *memory }

func (m foldingMemory) FoldStream(context.Context, string) (ledger.Snapshot, error) {
	return ledger.FoldEntries(m.entries), m.fail
}

func (m foldingMemory) Replay(context.Context, string) ([]ledger.Entry, error) {
	return nil, errors.New("the whole log was asked for")
}

func TestADeckNeedsNoLog(t *testing.T) {
	journal := foldingMemory{&memory{}}
	d := open(t, &fake{}, Options{Journal: journal}, listing("a", "x", "y"), listing("b", "z"))
	if err := d.Enrol(t.Context(), listing("a", "y", "w"), ShowAll(listing("a", "y", "w"))); err != nil {
		t.Fatal(err)
	}
	again := open(t, &fake{}, Options{Journal: journal}, listing("a", "y", "w"), listing("b", "z"))
	if diff := cmp.Diff(d.ledger.Live(), again.ledger.Live()); diff != "" || again.ledger.HighWater() != 5 {
		t.Errorf("up to %d: %s", again.ledger.HighWater(), diff)
	}
}
