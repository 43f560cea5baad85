package deck

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
	"github.com/google/go-cmp/cmp"
)

// searching are options under which outside clients search.
func searching(always ...string) Options {
	return Options{Discovery: Discovery{Mode: toolsearch.Search, AlwaysListed: always}}
}

// through has the caller call a tool with call_tool.
func through(t testing.TB, d *Deck, caller drawbridge.Caller, arguments string) (drawbridge.Result, error) {
	t.Helper()
	return d.Call(t.Context(), drawbridge.Call{Caller: caller,
		Params: json.RawMessage(`{"name":"call_tool","arguments":` + arguments + `}`)})
}

// found calls find_tools as the caller, and returns the names of the tools in the result, and its text.
func found(t testing.TB, d *Deck, caller drawbridge.Caller, query string) (names []string, text string) {
	t.Helper()
	params := rawjson.Apply(nil, rawjson.Put(rawjson.Quote("find_tools"), "name"), rawjson.Put(rawjson.Quote(query),
		"arguments", "query"))
	result, err := d.Call(t.Context(), drawbridge.Call{Caller: caller, Params: params})
	if err != nil {
		t.Fatalf("find %q: %v", query, err)
	}
	for tool := range rawjson.Elements(rawjson.Get(result.Raw, "structuredContent", "tools")) {
		names = append(names, rawjson.GetString(tool, "name"))
	}
	for more := range rawjson.Elements(rawjson.Get(result.Raw, "structuredContent", "more")) {
		name, _ := rawjson.DecodeString(more)
		names = append(names, name)
	}
	for block := range rawjson.Elements(rawjson.Get(result.Raw, "content")) {
		text += rawjson.GetString(block, "text")
	}
	return names, text
}

func TestAShortListHasWhatIsPinnedAndTheTwo(t *testing.T) {
	o := searching("a__r*", "own")
	o.Cards = []drawbridge.Card{card{name: "own"}, card{name: "other"}}
	d := open(t, &fake{}, o, listing("a", "read", "write"), listing("b", "list"))
	wantList(t, listed(t, d, ada, tools), "own", "a__read", "find_tools", "call_tool")
	wantList(t, listed(t, d, bob, tools), "own", "find_tools", "call_tool")
	person := ada
	person.Kind = drawbridge.Author
	wantList(t, listed(t, d, person, tools), "own", "other", "a__read", "a__write", "b__list")
	wantList(t, listed(t, d, drawbridge.Caller{}, tools))
	for caller, want := range map[*drawbridge.Caller]string{
		&ada: "3 tools are not in your list of tools, but can be found and called: drawbridge (1), a (1), b (1). ",
		&bob: "2 tools are not in your list of tools, but can be found and called: drawbridge (1), b (1). ",
	} {
		list, err := d.List(t.Context(), *caller, mcp.MethodToolsList)
		if err != nil {
			t.Fatal(err)
		}
		text := rawjson.GetString(list.Items[len(list.Items)-2], "description")
		if !strings.Contains(text, want) {
			t.Errorf("%s reads %q", caller.Principal, text)
		}
		if got := d.Instructions(*caller); !strings.HasPrefix(got, "Most tools are not in the list: find_tools ") {
			t.Errorf("%s is instructed %q", caller.Principal, got)
		}
	}
}

func TestDirectKnowsNothingOfTheTwo(t *testing.T) {
	for _, o := range []Options{{}, {Discovery: Discovery{Mode: toolsearch.Search, Disabled: true}}} {
		d := open(t, &fake{}, o, listing("a", "read"))
		wantList(t, listed(t, d, ada, tools), "a__read")
		_, err := through(t, d, ada, `{"name":"a__read"}`)
		wantFault(t, err, drawbridge.NotFound, "unknown tool call_tool")
		wantFault(t, call(t, d, ada, "find_tools"), drawbridge.NotFound, "unknown tool find_tools")
	}
}

// TestNoServerTakesTheNames has servers list tools by the names of the two cards: they are called by others.
func TestNoServerTakesTheNames(t *testing.T) {
	up := &fake{}
	o := searching("*")
	o.Naming = BareNames
	d := open(t, up, o, listing("a", "call_tool", "find_tools", "x"))
	wantList(t, listed(t, d, ada, tools), "a__call_tool", "a__find_tools", "x", "find_tools", "call_tool")
	if _, err := through(t, d, ada, `{"name":"a__call_tool","arguments":{"name":"x"}}`); err != nil {
		t.Fatal(err)
	}
	wantList(t, up.told(), `a tools/call {"name":"call_tool","arguments":{"name":"x"}}`)
}

// TestCallToolIsTheCallOfTheCard compares what reaches the server with what a direct call brings there, byte for byte.
func TestCallToolIsTheCallOfTheCard(t *testing.T) {
	up := &fake{}
	d := open(t, up, searching(), listing("a", "read"), listing("b", "list"))
	for name, tt := range map[string]struct{ through, direct string }{
		"plain":        {`{"name":"call_tool","arguments":{"name":"a__read","arguments":{"n":1.0,"big":9007199254740993}}}`, `{"name":"a__read","arguments":{"n":1.0,"big":9007199254740993}}`},
		"no arguments": {`{"name":"call_tool","arguments":{"name":"a__read"}}`, `{"name":"a__read"}`},
		"null": {`{"name":"call_tool","arguments":{"name":"a__read","arguments":null}}`,
			`{"name":"a__read"}`},
		"in a text": {`{"name":"call_tool","arguments":{"name":"a__read","arguments":" {\"a\" :\n 1.0}"}}`,
			`{"name":"a__read","arguments":{"a":1.0}}`},
		"by another name": {`{"name":"call_tool","arguments":{"name":"mcp_a_read","arguments":{}}}`,
			`{"name":"mcp_a_read","arguments":{}}`},
		"all that is with": {`{"_meta":{"progressToken":7,"x":[1]},"name":"call_tool","arguments":{"name":"a__read","arguments":{}},"task":{"ttl":5},"future":true}`, `{"_meta":{"progressToken":7,"x":[1]},"name":"a__read","arguments":{},"task":{"ttl":5},"future":true}`},
		"what is too much": {`{"name":"call_tool","arguments":{"name":"a__read","server":"a","arguments":{}}}`,
			`{"name":"a__read","arguments":{}}`},
	} {
		var heard [2][]string
		for i, params := range []string{tt.through, tt.direct} {
			if _, err := d.Call(t.Context(), drawbridge.Call{Caller: ada,
				Params: json.RawMessage(params)}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			heard[i] = up.told()
		}
		if diff := cmp.Diff(heard[1], heard[0]); diff != "" {
			t.Errorf("%s (-direct +through):\n%s", name, diff)
		}
	}
	for arguments, want := range map[string]string{
		`{}`:                              "it takes the name of a tool",
		`{"name":7}`:                      "it takes the name of a tool",
		`{"name":"call_tool"}`:            "it does not call itself",
		`{"name":"c\u0061ll_tool"}`:       "it does not call itself",
		`{"name":"a__read","name":"b"}`:   "there are two",
		`{"Name":"a__read"}`:              "some parsers take for another",
		`{"name":"a","arguments":[1]}`:    "arguments must be a JSON object",
		`{"name":"a","arguments":"x"}`:    "must be a JSON object",
		`{"name":"a","arguments":"[1]"}`:  "must be a JSON object",
		`{"name":"a","arguments":"{}{}"}`: "must be a JSON object",
	} {
		result, err := through(t, d, ada, arguments)
		if err != nil || string(rawjson.Get(result.Raw, "isError")) != "true" ||
			!strings.Contains(string(result.Raw), want) {
			t.Errorf("%s: %s, %v; want a tool error with %q", arguments, result.Raw, err, want)
		}
	}
	if told := up.told(); len(told) > 0 {
		t.Errorf("a server heard %q", told)
	}
}

func TestAnUnknownNameIsToldWithWhatIsNear(t *testing.T) {
	d := open(t, &fake{}, searching(), listing("a", "read_file", "write_file"), listing("b", "read_file", "list"))
	_, err := through(t, d, ada, `{"name":"fs_read_file"}`)
	wantFault(t, err, drawbridge.NotFound,
		"unknown tool fs_read_file (near: a__read_file, b__read_file, a__write_file; find_tools finds others)")
	_, err = through(t, d, bob, `{"name":"a__read_file"}`)
	wantFault(t, err, drawbridge.NotFound, "unknown tool a__read_file (near: b__read_file; find_tools finds others)")
	_, err = through(t, d, ada, `{"name":"quantum"}`)
	wantFault(t, err, drawbridge.NotFound, "unknown tool quantum (find_tools finds others)")
}

// TestFindToolsAnswers shows what find_tools says, and that where there are cards it has some.
func TestFindToolsAnswers(t *testing.T) {
	d := open(t, &fake{}, searching("b__*"), listing("a", "read_file", "write_file"), listing("b", "send_mail"))
	names, text := found(t, d, ada, "read a file from disk")
	wantList(t, names, "a__read_file", "a__write_file")
	for _, want := range []string{"2 tools for \"read a file from disk\"", "a__read_file (name: read, file)",
		"Does read_file.", `arguments: {"type":"object"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, query := range []string{"quantum chromodynamics", "", "!?"} {
		if names, text = found(t, d, ada, query); len(names) == 0 || !strings.HasPrefix(text,
			"No tool matches these words.") {
			t.Errorf("%q is answered %v, %q", query, names, text)
		}
	}
	names, _ = found(t, d, ada, "")
	wantList(t, names, "a__read_file", "a__write_file", "b__send_mail")
	if names, text = found(t, open(t, &fake{}, searching()), ada, "x"); len(names) > 0 ||
		text != "No tools were found." {
		t.Errorf("an empty deck answers %v %q", names, text)
	}
	for _, arguments := range []string{`{"query":["a"]}`, `{"query":"a","limit":"many"}`} {
		result, err := d.Call(t.Context(), drawbridge.Call{Caller: ada,
			Params: json.RawMessage(`{"name":"find_tools","arguments":` + arguments + `}`)})
		if err != nil || string(rawjson.Get(result.Raw, "isError")) != "true" {
			t.Errorf("%s: %s, %v; want a tool error", arguments, result.Raw, err)
		}
	}
	result, err := through(t, d, ada, `{"name":"find_tools","arguments":{"query":"mail","limit":1}}`)
	if err != nil || rawjson.GetString(rawjson.Get(result.Raw, "structuredContent"), "tools") != "" ||
		!strings.Contains(string(result.Raw), "b__send_mail") {
		t.Errorf("by call_tool: %s, %v", result.Raw, err)
	}
}

// recorder keeps records in memory.
type recorder struct{ records []audit.Record }

func (r *recorder) Record(rec audit.Record) error {
	r.records = append(r.records, rec)
	return nil
}

// TestTheRecordSaysWhatWasCalledThroughCallTool reads the audit of calls that came through call_tool: it is that of
// the card.
func TestTheRecordSaysWhatWasCalledThroughCallTool(t *testing.T) {
	log := &recorder{}
	o := searching()
	o.Audit = log
	o.Guards = []Guard{guard(func(q Question) drawbridge.Verdict {
		if q.Spec.Name == "a__write" {
			return drawbridge.Verdict{Effect: drawbridge.Deny, Reason: "no"}
		}
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	})}
	d := open(t, &fake{}, o, listing("a", "read", "write"))
	_, _ = through(t, d, ada, `{"name":"a__read","arguments":{"x":1}}`)
	_, err := through(t, d, ada, `{"name":"a__write","arguments":{"x":2}}`)
	wantFault(t, err, drawbridge.PolicyBlocked, "tools/call a__write: no")
	_, _ = through(t, d, ada, `{"name":"a__none"}`)
	_, _ = through(t, d, ada, `{}`)
	_, _ = found(t, d, ada, "read")
	var got []string
	for _, r := range log.records {
		got = append(got, fmt.Sprintf("%s %q through %q: %s %s %s", r.Kind, r.Card, r.ViaCard, r.Arguments,
			r.Effect, r.Outcome))
	}
	want := []string{
		`call "a__read" through "call_tool": {"x":1} allow `, `done "" through "":   ok`,
		`call "a__write" through "call_tool": {"x":2} deny refused`,
		`call "a__none" through "call_tool":   unknown`,
		`call "call_tool" through "": {}  is_error`,
		`call "find_tools" through "": {"query":"read"} allow `, `done "" through "":   ok`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestARequestStateComesBackThroughCallTool has a server ask for more in the course of such a call.
func TestARequestStateComesBackThroughCallTool(t *testing.T) {
	up := &fake{answer: func(_ drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
		if rawjson.Get(call.Params, "requestState") == nil {
			return drawbridge.Result{Raw: json.RawMessage(`{"resultType":"input_required","requestState":"mine"}`)}, nil
		}
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
	}}
	d := open(t, up, searching(), listing("a", "ask"))
	first, err := through(t, d, ada, `{"name":"a__ask","arguments":{"x":1}}`)
	if err != nil {
		t.Fatal(err)
	}
	again := func(arguments string) (drawbridge.Result, error) {
		params := rawjson.Apply(json.RawMessage(`{"name":"call_tool","inputResponses":{"k":{}}}`),
			rawjson.Put(json.RawMessage(arguments), "arguments"), rawjson.Put(rawjson.Get(first.Raw, "requestState"),
				"requestState"))
		return d.Call(t.Context(), drawbridge.Call{Caller: ada, Params: params})
	}
	up.told()
	if _, err = again(`{"name":"a__ask","arguments":{"x":1}}`); err != nil {
		t.Error(err)
	}
	wantList(t, up.told(),
		`a tools/call {"name":"ask","inputResponses":{"k":{}},"arguments":{"x":1},"requestState":"mine"}`)
	if _, err = again(`{"name":"a__ask","arguments":{"x":2}}`); err == nil {
		t.Error("the state of another call is taken")
	}
}

// TestTheSameDeckGivesTheSameShortList opens the same deck a thousand times, its servers listed in any order.
func TestTheSameDeckGivesTheSameShortList(t *testing.T) {
	var want []string
	r := rand.New(rand.NewPCG(7, 7))
	for n := range 1000 {
		listings := []drawbridge.Listing{listing("a", "read", "write"), listing("b", "list"),
			listing("c", "x", "y", "z")}
		order := r.Perm(len(listings))
		d, err := New(t.Context(), &fake{}, Options{Discovery: Discovery{Mode: toolsearch.Auto, SearchAbove: 20,
			AlwaysListed: []string{"c__?"}}})
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
		for _, i := range order {
			enrol(t, d, listings[i])
		}
		list, err := d.List(t.Context(), ada, mcp.MethodToolsList)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{string(slices.Concat(asBytes(list.Items)...))}
		if n%25 == 0 {
			names, text := found(t, d, ada, "read or list things")
			turn := d.SearchView(ada).DefinitionsFor(t.Context(), ModelTurn{Query: "read",
				Recent: []string{"c__x", "b__list"}})
			got = append(got, strings.Join(names, " "), text, string(turn.Raw))
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want[:len(got)], got); diff != "" {
			t.Fatal(diff)
		}
	}
}

func asBytes(items []json.RawMessage) (out [][]byte) {
	for _, item := range items {
		out = append(out, item)
	}
	return out
}

// TestAutoTellsWhenTheListBecomesShort grows and shrinks a deck around the bound: each time that another list is
// shown, callers hear of it, and its version is another.
func TestAutoTellsWhenTheListBecomesShort(t *testing.T) {
	d := open(t, &fake{}, Options{Discovery: Discovery{Mode: toolsearch.Auto, SearchAbove: 60}}, listing("a", "one"))
	heard := 0
	t.Cleanup(d.OnEvent(func(e Event) {
		if e.Kind == ToolsChanged {
			heard++
		}
	}))
	versions := map[uint64]string{}
	var got []string
	for _, own := range []string{"one two", "one two three four five six", "one", "one two three four five six"} {
		enrol(t, d, listing("a", strings.Fields(own)...))
		list, err := d.List(t.Context(), ada, mcp.MethodToolsList)
		if err != nil {
			t.Fatal(err)
		}
		bytes := string(slices.Concat(asBytes(list.Items)...))
		if before, ok := versions[list.Version]; ok && before != bytes {
			t.Errorf("version %d is two lists", list.Version)
		}
		versions[list.Version] = bytes
		got = append(got, fmt.Sprint(len(list.Items), heard))
	}
	wantList(t, got, "2 1", "2 2", "1 3", "2 4")
	if len(versions) != 4 {
		t.Errorf("the versions are %v", versions)
	}
}

// A fog hides from each principal the cards that it is said to.
type fog struct{ hidden map[string]map[string]bool }

var _ HidingGuard = (*fog)(nil)

func (f *fog) Hides(caller drawbridge.Caller, _ string, spec drawbridge.Spec) bool {
	return f.hidden[caller.Principal][string(spec.Name)]
}

func (f *fog) Decide(_ context.Context, q Question) drawbridge.Verdict {
	if f.Hides(q.Caller, q.Kind, q.Spec) {
		return drawbridge.Verdict{Effect: drawbridge.Deny, Hide: true}
	}
	return drawbridge.Verdict{Effect: drawbridge.Allow}
}

func (f *fog) CallerClass(caller drawbridge.Caller) string { return caller.Principal }
func (f *fog) HidesAnything() bool                         { return true }

// TestNoViewShowsWhatIsAnothers makes decks, rules and callers by chance, and has the callers ask in turn while cards
// and rules change. What a caller finds, counts, is told beside it and is shown in a turn is to the byte what it is on
// a deck that has nothing but their own cards, and the index that answers has no more in it, so that nothing else can
// cost time; and all of it is listed to them where nothing is short, and can be called.
func TestNoViewShowsWhatIsAnothers(t *testing.T) {
	hidden := 0
	for seed := range uint64(6) {
		w := newWorld(seed)
		d := open(t, &fake{}, w.options(), w.all...)
		for round, n := range w.r.Perm(9) {
			caller := w.callers[n%len(w.callers)]
			switch {
			case n > 6: // the cards change, and whose they are does not
				for i := range w.all {
					w.all[i].Tools = append(slices.Clone(w.all[i].Tools), tool(fmt.Sprintf("read_more_%d", n)))
					enrol(t, d, w.all[i])
				}
			case n > 4: // whose they are changes, and the cards do not
				w.hide()
				d.Refresh()
			}
			own := w.own(caller)
			alone := open(t, &fake{}, w.options(), own...)
			questions := append(w.questions(), "delete the issue and send a mail", "nothing like it")
			if diff := cmp.Diff(sees(t, alone, caller, questions), sees(t, d, caller, questions)); diff != "" {
				t.Fatalf("seed %d, round %d, %s (-alone +among others):\n%s", seed, round, caller.Principal, diff)
			}
			for i, l := range own {
				hidden += len(w.all[i].Tools) - len(l.Tools)
			}
			if w.top < 0 { // else not all that there is comes into an answer
				wantUniform(t, d, caller)
			}
		}
		seeAtOnce(t, d, w)
	}
	if hidden < 200 {
		t.Errorf("%d cards were hidden: that is not a test", hidden)
	}
}

// seeAtOnce has all callers of a world ask at the same time: each hears what they hear alone.
func seeAtOnce(t *testing.T, d *Deck, w *world) {
	var group sync.WaitGroup
	questions := w.questions()
	want := make([][]string, len(w.callers))
	for i, caller := range w.callers {
		// the first question of a caller reads the new tools; concurrent ones use the earlier list
		want[i] = sees(t, d, caller, questions)
	}
	for i, caller := range w.callers {
		for range 2 {
			group.Go(func() {
				for range 3 {
					if diff := cmp.Diff(want[i], sees(t, d, caller, questions)); diff != "" {
						t.Errorf("%s, while others ask (-alone +among others):\n%s", caller.Principal, diff)
						return
					}
				}
			})
		}
	}
	group.Wait()
}

// A world is servers, callers, and what is hidden from whom, by chance.
type world struct {
	r       *rand.Rand
	all     []drawbridge.Listing
	callers []drawbridge.Caller
	fog     *fog
	top     int // how many cards a question brings; below 0 any number
}

func newWorld(seed uint64) *world {
	verbs, things := strings.Fields("read write list send delete search open close"),
		strings.Fields("file mail issue branch page user")
	w := &world{r: rand.New(rand.NewPCG(seed, 5)), fog: &fog{}, top: []int{-1, 3}[seed%2]}
	for i := range 2 + w.r.IntN(4) {
		var names []string
		for range 1 + w.r.IntN(6) {
			if name := verbs[w.r.IntN(len(verbs))] + "_" +
				things[w.r.IntN(len(things))]; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		w.all = append(w.all, listing(string(rune('a'+i)), names...))
	}
	for i := range 3 {
		caller := drawbridge.Caller{Kind: drawbridge.External, Principal: fmt.Sprint("p", i), Era: drawbridge.Modern}
		for _, l := range w.all {
			if w.r.IntN(3) > 0 {
				caller.Scopes = append(caller.Scopes, drawbridge.ServerScope(l.Server))
			}
		}
		w.callers = append(w.callers, caller)
	}
	w.hide()
	return w
}

// hide hides other cards than before.
func (w *world) hide() {
	w.fog.hidden = map[string]map[string]bool{}
	for _, caller := range w.callers {
		w.fog.hidden[caller.Principal] = map[string]bool{}
		for _, name := range w.names() {
			if w.r.IntN(3) == 0 {
				w.fog.hidden[caller.Principal][name] = true
			}
		}
	}
}

// names are those of all cards, whosever they are.
func (w *world) names() (names []string) {
	for _, l := range w.all {
		for _, tool := range l.Tools {
			names = append(names, string(l.Server)+"__"+rawjson.GetString(tool, "name"))
		}
	}
	return names
}

// questions ask for two cards: for one by its name, for one by the words of it.
func (w *world) questions() []string {
	names := w.names()
	return []string{names[w.r.IntN(len(names))], strings.ReplaceAll(names[w.r.IntN(len(names))], "_", " ")}
}

func (w *world) options() Options {
	return Options{Discovery: Discovery{Mode: toolsearch.Search, TopK: w.top, MinRelativeScore: -1},
		Guards: []Guard{w.fog}}
}

// own are the servers with no more than the caller's own cards.
func (w *world) own(caller drawbridge.Caller) (own []drawbridge.Listing) {
	for _, l := range w.all {
		mine := l
		mine.Tools = slices.DeleteFunc(slices.Clone(l.Tools), func(tool json.RawMessage) bool {
			return !caller.HasScopes([]drawbridge.Scope{drawbridge.ServerScope(l.Server)}) ||
				w.fog.hidden[caller.Principal][string(l.Server)+"__"+rawjson.GetString(tool, "name")]
		})
		own = append(own, mine)
	}
	return own
}

// sees is all that a caller, and an agent in their place, can come to know by looking for cards.
func sees(t testing.TB, d *Deck, caller drawbridge.Caller, questions []string) (out []string) {
	list, err := d.List(t.Context(), caller, mcp.MethodToolsList)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		out = append(out, string(item))
	}
	agent := caller
	agent.Kind = drawbridge.Agent
	for _, question := range questions {
		names, text := found(t, d, caller, question)
		_, err = through(t, d, caller, `{"name":`+string(rawjson.Quote(question+"s"))+`}`)
		turn := d.SearchView(agent).DefinitionsFor(t.Context(), ModelTurn{Query: question})
		out = append(out, text, strings.Join(names, " "), fmt.Sprint(err), string(turn.Raw), fmt.Sprint(turn.LeftOut))
	}
	v := d.SearchView(caller)
	return append(out, fmt.Sprintf("%+v", v.Stats()), fmt.Sprint(v.BuildIndex(), " in the index"))
}

// wantUniform wants that all cards are found which would be listed where nothing is short, and that they can be called
// through both doors of the deck.
func wantUniform(t *testing.T, d *Deck, caller drawbridge.Caller) {
	t.Helper()
	person := caller
	person.Kind = drawbridge.Author
	direct := listed(t, d, person, tools)
	got, _ := found(t, d, caller, "no such words")
	for _, query := range strings.Fields("read write list send delete search open close") {
		names, _ := found(t, d, caller, query)
		got = append(got, names...)
	}
	slices.Sort(got)
	got = slices.Compact(got)
	for _, name := range got {
		if !slices.Contains(direct, name) {
			t.Errorf("%s is found and would not be listed", name)
		}
	}
	if len(got) != len(direct) {
		t.Errorf("%d cards are found of %d", len(got), len(direct))
	}
	for _, name := range direct {
		if _, err := through(t, d, caller, `{"name":"`+name+`"}`); err != nil {
			t.Errorf("%s through call_tool: %v", name, err)
		}
		if err := call(t, d, caller, name); err != nil {
			t.Errorf("%s by its name: %v", name, err)
		}
	}
}
