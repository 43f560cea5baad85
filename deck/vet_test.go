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

// A censor vets listings in front of a deck, as package vetting does in the program.
type censor func(v VettedListing) (VettedListing, error)

func (c censor) enrol(ctx context.Context, d *Deck, l drawbridge.Listing) error {
	v, err := c(ShowAll(l))
	if err != nil {
		return err
	}
	return d.Enrol(ctx, l, v)
}

// reenrol enrols the last listing of a server once more.
func (c censor) reenrol(ctx context.Context, d *Deck, id drawbridge.ServerID) error {
	l, ok := d.LastListing(id)
	if !ok {
		return errors.New("no listing")
	}
	return c.enrol(ctx, d, l)
}

// remember returns a listing as Configure takes it, all of it shown.
func remember(l drawbridge.Listing) *RememberedListing {
	l.ListedAt = time.Unix(1, 0)
	return &RememberedListing{Listing: l, Vetted: ShowAll(l)}
}

// censored shows "mild" for "evil" everywhere, and renames the argument of that name.
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
	d := openVetted(t, censored, up, Options{Journal: journal}, hostile("a"))
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
	d := openVetted(t, censored, up, Options{}, hostile("a"))
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
	d := openVetted(t, censored, &fake{}, Options{Guards: []Guard{&counted}}, hostile("a"))
	if _, err := d.Call(t.Context(), drawbridge.Call{Caller: ada,
		Params: json.RawMessage(`{"name":"a__mild","arguments":{"mild":1}}`)}); err != nil {
		t.Fatal(err)
	}
	wantList(t, counted.params, `{"name":"a__mild","arguments":{"evil":1}}`)
}

func TestUnvettedItemsAreNotShown(t *testing.T) {
	d := openVetted(t, func(v VettedListing) (VettedListing, error) {
		v.Tools[0].Definition, v.Tools[0].OmitReason, v.Tools[0].Code = nil, "it is not expected", "unexpected"
		v.Tools[1].Definition = nil
		return VettedListing{Tools: v.Tools[:2]}, nil
	}, &fake{}, Options{}, listing("a", "one", "two", "three"))
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

// TestARememberedListingThatWasNotVettedIsNotShown has an error with a stored listing, and with only the ledger left.
func TestARememberedListingThatWasNotVettedIsNotShown(t *testing.T) {
	journal := &memory{}
	open(t, &fake{}, Options{Journal: journal}, listing("c", "old"))
	d, err := New(t.Context(), &fake{}, Options{Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	stored := listing("b", "old")
	members := []Server{{ID: "b", ConfigHash: "row-b"}, {ID: "c", ConfigHash: "row-c"}}
	for i, last := range []*drawbridge.Listing{&stored, nil} {
		l, ok := d.ListingToVet(members[i], last)
		if !ok || len(l.Tools) != 1 {
			t.Errorf("%s: to be vetted is %v, %t", members[i].ID, l, ok)
		}
		members[i].Remembered = &RememberedListing{Listing: l, Err: errors.New("no rules")}
	}
	if err := d.Configure(t.Context(), members); err != nil {
		t.Fatal(err)
	}
	wantList(t, listed(t, d, ada, tools))
	for _, m := range d.ServerSummaries() {
		if len(m.Omitted) != 1 || m.Omitted[0].Kind != "listing" || m.Omitted[0].Code != "unvetted" {
			t.Errorf("%s: left out %v", m.Server, m.Omitted)
		}
	}
	if _, ok := d.ListingToVet(members[0], &stored); ok {
		t.Error("a server that is configured already is to be vetted again")
	}
}

// TestWhatOnlyTheLedgerRemembersIsVetted opens a deck on a ledger that was not vetted.
func TestWhatOnlyTheLedgerRemembersIsVetted(t *testing.T) {
	journal, up := &memory{}, &fake{}
	open(t, &fake{}, Options{Journal: journal}, hostile("a"))
	d, err := New(t.Context(), up, Options{Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	a := Server{ID: "a", ConfigHash: "row-a"}
	l, ok := d.ListingToVet(a, nil)
	vetted, err := censored(ShowAll(l))
	if !ok || !l.ListedAt.IsZero() || err != nil {
		t.Fatalf("to be vetted is %v, %t: %v", l, ok, err)
	}
	a.Remembered = &RememberedListing{Listing: l, Vetted: vetted}
	if err := d.Configure(t.Context(), []Server{a}); err != nil {
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
	d := openVetted(t, func(v VettedListing) (VettedListing, error) {
		v.Tools[0].HeldReason, v.Tools[0].NextStep = "its definition changed", "ask a person"
		return v, nil
	}, up, Options{
		Guards:   []Guard{always(drawbridge.Verdict{Effect: drawbridge.Ask})},
		Approver: approver(func(ApprovalRequest) error { asked++; return nil }),
	}, listing("a", "one", "two"))
	wantList(t, listed(t, d, ada, tools), "a__one", "a__two")
	wantFault(t, call(t, d, ada, "a__one"), drawbridge.PolicyBlocked,
		"tools/call a__one: its definition changed (ask a person)")
	wantList(t, up.told())
	if err := call(t, d, ada, "a__two"); err != nil || asked != 1 {
		t.Errorf("%v, and a person was asked %d times, want once: no one can allow what is held", err, asked)
	}
}

// TestEnrolShowsTheSameListingVettedOtherwise enrols one listing twice.
func TestEnrolShowsTheSameListingVettedOtherwise(t *testing.T) {
	d := open(t, &fake{}, Options{}, hostile("a"), hostile("b"))
	events := listen(t, d)
	if err := censor(censored).reenrol(t.Context(), d, "b"); err != nil {
		t.Fatal(err)
	}
	wantList(t, listed(t, d, ada, tools), "a__good", "a__evil", "b__good", "b__mild")
	if len(*events) == 0 {
		t.Error("callers were not notified")
	}
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
	filter := func(_ context.Context, _ Server, e json.RawMessage) (json.RawMessage, error) { return look(e) }
	d := open(t, up, Options{FilterSkill: filter}, teaching("a"))
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
	d = open(t, up, Options{FilterSkill: filter}, teaching("a"))
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
