package deck

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// A censor is a vetter that shows one word in the place of another, everywhere, and renames the property "evil".
type censor func(v VettedListing) (VettedListing, error)

func (c censor) Vet(_ context.Context, _ Server, l drawbridge.Listing) (VettedListing, error) {
	return c(unvettedListing(l))
}

func censored(v VettedListing) (VettedListing, error) {
	clean := func(list []VettedItem) {
		for i, s := range list {
			if strings.Contains(string(s.Original), "evil") {
				list[i].Definition = json.RawMessage(strings.ReplaceAll(string(s.Original), "evil", "mild"))
				list[i].OwnArguments = map[string]string{"mild": "evil"}
			}
		}
	}
	clean(v.Tools)
	clean(v.Prompts)
	clean(v.Resources)
	v.Instructions = strings.ReplaceAll(v.Instructions, "evil", "mild")
	v.Notes = []VettingNote{{Kind: "tool", Name: "evil", Action: "renamed", Why: "it is evil"}}
	return v, nil
}

func hostile(server string) drawbridge.Listing {
	l := listing(server, "good")
	l.Tools = append(l.Tools,
		json.RawMessage(`{"name":"evil","description":"An evil one.","inputSchema":{"properties":{"evil":{}}}}`))
	l.Prompts = objects("name", "evil")
	l.Resources = objects("uri", "x://evil")
	l.Instructions = "Be evil."
	l.Capabilities = json.RawMessage(`{"resources":{}}`)
	return l
}

func TestWhatIsVettedIsShownAndTheServerHearsItsOwnWords(t *testing.T) {
	up, journal := &fake{}, &memory{}
	d := open(t, up, Options{Vetter: censor(censored), Journal: journal}, hostile("a"))
	wantList(t, listed(t, d, ada, tools), "a__good", "a__mild")
	wantList(t, listed(t, d, ada, prompts), "a__mild")
	wantList(t, listed(t, d, ada, resources), "x://mild")
	if got := d.Instructions(ada); got != "## a\nBe mild.\n" {
		t.Errorf("instructions %q", got)
	}
	spec, _ := d.FindCard(ada, "a__mild")
	if want := `{"name":"a__mild","description":"An mild one.","inputSchema":{"properties":{"mild":{}}}}`; string(
		spec.Definition) != want || spec.Tool != "evil" {
		t.Errorf("tool %q: %s", spec.Tool, spec.Definition)
	}
	if got := string(journal.entries[1].Card.Definition); strings.Contains(got, "evil") ||
		journal.entries[1].Card.Tool != "evil" {
		t.Errorf("the journal has %s", got)
	}
	if l, ok := d.LastListing("a"); !ok || l.Instructions != "Be evil." {
		t.Errorf("the listing as it came is %v", l)
	}
	if diff := cmp.Diff([]VettingNote{{Kind: "tool", Name: "evil", Action: "renamed", Why: "it is evil"}},
		d.ServerSummaries()[0].Notes); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct{ method, params, heard string }{
		{mcp.MethodToolsCall, `{"name":"a__mild","arguments":{"mild":1,"b":[{"mild" :"mild"}]}}`,
			`a tools/call {"name":"evil","arguments":{"evil":1,"b":[{"evil" :"mild"}]}}`},
		{mcp.MethodToolsCall, `{"name":"a__good","arguments":{"mild":1}}`,
			`a tools/call {"name":"good","arguments":{"mild":1}}`},
		{mcp.MethodPromptsGet, `{"name":"a__mild","arguments":{"mild":"1"}}`,
			`a prompts/get {"name":"evil","arguments":{"evil":"1"}}`},
		{mcp.MethodResourcesRead, `{"uri":"x://mild"}`, `a resources/read {"uri":"x://evil"}`},
		{mcp.MethodComplete,
			`{"ref":{"type":"ref/prompt","name":"a__mild"},"argument":{"name":"mild","value":"mild"},"context":{"arguments":{"mild":"1"}}}`,
			`a completion/complete {"ref":{"type":"ref/prompt","name":"evil"},"argument":{"name":"evil","value":"mild"},"context":{"arguments":{"evil":"1"}}}`},
	} {
		if _, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: c.method,
			Params: json.RawMessage(c.params)}); err != nil {
			t.Errorf("%s: %v", c.method, err)
		}
		wantList(t, up.told(), c.heard)
	}
}

// TestOnlyTheWordsThatAreShownReachTheServer has arguments in the server's own words: guards judge by those that are
// shown, and would not see what the server takes.
func TestOnlyTheWordsThatAreShownReachTheServer(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{Vetter: censor(censored)}, hostile("a"))
	for _, c := range []struct{ method, params string }{
		{mcp.MethodToolsCall, `{"name":"a__mild","arguments":{"evil":1}}`},
		{mcp.MethodToolsCall, `{"name":"a__mild","arguments":{"mild":1,"evil":2}}`},
		{mcp.MethodToolsCall, `{"name":"a__mild","arguments":{"b":[{"\u0065vil" :1}]}}`},
		{mcp.MethodToolsCall, `{"name":"a__mild","arguments":{"Evil":1}}`},
		{mcp.MethodPromptsGet, `{"name":"a__mild","arguments":{"evil":"1"}}`},
		{mcp.MethodComplete, `{"ref":{"type":"ref/prompt","name":"a__mild"},"argument":{"name":"evil","value":"x"}}`},
		{mcp.MethodComplete,
			`{"ref":{"type":"ref/prompt","name":"a__mild"},"argument":{"name":"mild","value":"x"},"context":{"arguments":{"evil":"1"}}}`},
	} {
		_, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: c.method, Params: json.RawMessage(c.params)})
		if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput {
			t.Errorf("%s %s: %v", c.method, c.params, err)
		}
	}
	wantList(t, up.told())
	if err := call(t, d, ada, "a__good"); err != nil {
		t.Error(err)
	}
}

// A tally is a counter that keeps the params of what it counts.
type tally struct{ params []string }

func (c *tally) Decide(_ context.Context, q Question) drawbridge.Verdict {
	c.params = append(c.params, string(q.Params))
	return drawbridge.Verdict{Effect: drawbridge.Allow}
}

func (c *tally) Preview(context.Context, Question) drawbridge.Verdict {
	return drawbridge.Verdict{Effect: drawbridge.Allow}
}

// TestACallIsCountedAsTheServerHearsIt has an argument of another name at the server: how its calls end is counted by
// what was sent.
func TestACallIsCountedAsTheServerHearsIt(t *testing.T) {
	var counted tally
	d := open(t, &fake{}, Options{Vetter: censor(censored), Guards: []Guard{&counted}}, hostile("a"))
	if _, err := d.Call(t.Context(), drawbridge.Call{Caller: ada,
		Params: json.RawMessage(`{"name":"a__mild","arguments":{"mild":1}}`)}); err != nil {
		t.Fatal(err)
	}
	wantList(t, counted.params, `{"name":"a__mild","arguments":{"evil":1}}`)
}

func TestWhatNobodySaidHowToShowIsNotShown(t *testing.T) {
	d := open(t, &fake{}, Options{Vetter: censor(func(v VettedListing) (VettedListing, error) {
		v.Tools[0].Definition, v.Tools[0].OmitReason, v.Tools[0].Code = nil, "it is not expected", "unexpected"
		v.Tools[1].Definition = nil
		return VettedListing{Tools: v.Tools[:2]}, nil
	})}, listing("a", "one", "two", "three"))
	wantList(t, listed(t, d, ada, tools))
	want := []OmittedItem{{Kind: "tool", Name: "one", Reason: "it is not expected", Code: "unexpected"},
		{Kind: "tool", Name: "two", Reason: "it has not been vetted", Code: "unvetted"}}
	if diff := cmp.Diff(want, d.ServerSummaries()[0].Omitted); diff != "" {
		t.Error(diff)
	}
	if err := call(t, d, ada, "a__two"); err == nil {
		t.Error("what is not shown was called")
	}
}

// TestAVetterThatGivesUpClosesTheGate has it fail and panic, with a listing there already, with a remembered one, and
// with only the ledger left.
func TestAVetterThatGivesUpClosesTheGate(t *testing.T) {
	for name, give := range map[string]censor{
		"an error": func(VettedListing) (VettedListing, error) { return VettedListing{}, errors.New("no rules") },
		"a panic":  func(VettedListing) (VettedListing, error) { panic("no rules") },
	} {
		vet := censor(censored)
		d := open(t, &fake{}, Options{Vetter: censor(func(v VettedListing) (VettedListing, error) { return vet(v) })},
			listing("a", "old"))
		vet = give
		if err := d.Enrol(t.Context(), listing("a", "new")); err == nil || !strings.HasPrefix(err.Error(),
			"vet the listing of a: ") {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Revet(t.Context()); err == nil {
			t.Errorf("%s: looking again went well", name)
		}
		wantList(t, listed(t, d, ada, tools), "a__old")

		remembered := listing("b", "old")
		journal := &memory{}
		open(t, &fake{}, Options{Journal: journal}, listing("c", "old"))
		d, err := New(t.Context(), &fake{}, Options{Vetter: give, Journal: journal})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Configure(t.Context(), []Server{{ID: "b", ConfigHash: "row-b", Remembered: &remembered},
			{ID: "c", ConfigHash: "row-c"}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantList(t, listed(t, d, ada, tools))
		for _, m := range d.ServerSummaries() {
			if len(m.Omitted) != 1 || m.Omitted[0].Kind != "listing" || m.Omitted[0].Code != "unvetted" {
				t.Errorf("%s: %s: left out %v", name, m.Server, m.Omitted)
			}
		}
	}
}

// TestWhatOnlyTheLedgerRemembersIsVetted opens a deck on a ledger that nobody vetted.
func TestWhatOnlyTheLedgerRemembersIsVetted(t *testing.T) {
	journal, up := &memory{}, &fake{}
	open(t, &fake{}, Options{Journal: journal}, hostile("a"))
	d, err := New(t.Context(), up, Options{Vetter: censor(censored), Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Configure(t.Context(), []Server{{ID: "a", ConfigHash: "row-a"}}); err != nil {
		t.Fatal(err)
	}
	wantList(t, listed(t, d, ada, tools), "a__good", "a__mild")
	if err := call(t, d, ada, "a__mild"); err != nil {
		t.Error(err)
	}
	wantList(t, up.told(), `a tools/call {"name":"evil"}`)
}

func TestWhatIsHeldIsListedAndNotCalled(t *testing.T) {
	up := &fake{}
	asked := 0
	d := open(t, up, Options{
		Vetter: censor(func(v VettedListing) (VettedListing, error) {
			v.Tools[0].HeldReason, v.Tools[0].NextStep = "its definition changed", "ask somebody"
			return v, nil
		}),
		Guards:   []Guard{always(drawbridge.Verdict{Effect: drawbridge.Ask})},
		Approver: approver(func(ApprovalRequest) error { asked++; return nil }),
	}, listing("a", "one", "two"))
	wantList(t, listed(t, d, ada, tools), "a__one", "a__two")
	wantFault(t, call(t, d, ada, "a__one"), drawbridge.PolicyBlocked,
		"tools/call a__one: its definition changed (ask somebody)")
	wantList(t, up.told())
	if err := call(t, d, ada, "a__two"); err != nil || asked != 1 {
		t.Errorf("%v, and a person was asked %d times, want once: nobody can allow what is held", err, asked)
	}
}

// TestLookingAgainShowsWhatTheVetterSaysNow changes the vetter's mind.
func TestLookingAgainShowsWhatTheVetterSaysNow(t *testing.T) {
	vet := func(v VettedListing) (VettedListing, error) { return v, nil }
	d := open(t, &fake{}, Options{Vetter: censor(func(v VettedListing) (VettedListing, error) { return vet(v) })},
		hostile("a"), hostile("b"))
	events := listen(t, d)
	vet = censored
	if err := d.Revet(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	wantList(t, listed(t, d, ada, tools), "a__good", "a__evil", "b__good", "b__mild")
	if len(*events) == 0 {
		t.Error("nobody was told")
	}
}

// A tutor is a vetter that looks at skills too.
type tutor struct {
	censor
	skill func(entry json.RawMessage) (json.RawMessage, error)
}

func (v tutor) VetSkill(_ context.Context, _ Server, entry json.RawMessage) (json.RawMessage, error) {
	return v.skill(entry)
}

func TestSkillsAreVettedWhenTheyAreAskedFor(t *testing.T) {
	good, bad, gone := entry("skill://good"), entry("skill://bad"), entry("skill://gone")
	up := &fake{answer: schools{"a": {pages: []string{page(good, bad), page(gone)}}}.answer}
	look := func(entry json.RawMessage) (json.RawMessage, error) {
		if strings.Contains(string(entry), "skill://gone") {
			return nil, nil
		}
		return json.RawMessage(strings.ReplaceAll(string(entry), `"bad"`, `"mild"`)), nil
	}
	d := open(t, up, Options{Vetter: tutor{censor(func(v VettedListing) (VettedListing, error) { return v, nil }),
		func(e json.RawMessage) (json.RawMessage, error) { return look(e) }}}, teaching("a"))
	mild := strings.ReplaceAll(bad, `"bad"`, `"mild"`)
	if mild == bad {
		t.Fatalf("%s says nothing bad", bad)
	}
	wantList(t, texts(skillsOf(t, d, ada).Items), good, mild)
	get := func(uri string) (drawbridge.Result, error) {
		return d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: mcp.MethodSkillsGet,
			Params: objects("uri", uri)[0]})
	}
	if r, err := get("skill://bad/SKILL.md"); err != nil || string(rawjson.Get(r.Raw, "skill")) != mild {
		t.Errorf("the skill is %s, %v", r.Raw, err)
	}
	up.answer = func(id drawbridge.ServerID, c drawbridge.Call) (drawbridge.Result, error) {
		if c.Method == mcp.MethodSkillsGet {
			_ = d.Configure(t.Context(), nil) // it leaves while it is asked
		}
		return schools{"a": {pages: []string{page(good, bad)}}}.answer(id, c)
	}
	if r, err := get("skill://bad/SKILL.md"); err == nil {
		t.Errorf("of a server that has left: the skill is %s", r.Raw)
	}
	d = open(t, up, Options{Vetter: tutor{censor(func(v VettedListing) (VettedListing, error) { return v, nil }),
		func(e json.RawMessage) (json.RawMessage, error) { return look(e) }}}, teaching("a"))
	up.answer = schools{"a": {pages: []string{page(good, bad)}}}.answer
	for name, give := range map[string]func(json.RawMessage) (json.RawMessage, error){
		"an error": func(json.RawMessage) (json.RawMessage, error) { return nil, errors.New("no rules") },
		"a panic":  func(json.RawMessage) (json.RawMessage, error) { panic("no rules") },
	} {
		look = give
		if r, err := get("skill://good/SKILL.md"); err == nil {
			t.Errorf("%s: the skill is %s", name, r.Raw)
		}
	}
}
