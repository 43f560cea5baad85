package deck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// pages is an audit in memory. Broken says after how many records it takes no more; below 0 never.
type pages struct {
	broken int
	all    []audit.Record
}

func (p *pages) Record(r audit.Record) error {
	if p.broken == 0 {
		return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.ServerError, Step: "no audit"}
	}
	p.broken--
	p.all = append(p.all, r)
	return nil
}

// taken returns what was recorded, without what is another each time: IDs are numbered as they come.
func (p *pages) taken() []audit.Record {
	ids := map[string]string{"": ""}
	out := make([]audit.Record, len(p.all))
	for i, r := range p.all {
		if ids[r.ID] == "" {
			ids[r.ID] = fmt.Sprint(len(ids))
		}
		r.ID, r.Parent = ids[r.ID], ids[r.Parent]
		out[i] = r
	}
	p.all = nil
	return out
}

var apart = cmpopts.IgnoreFields(audit.Record{}, "At", "Duration", "Definition")

// editor is ada with a client, on standard input.
func editor() drawbridge.Caller {
	c := ada
	c.Transport, c.Client, c.Session = drawbridge.StdioTransport, json.RawMessage(`{"name":"editor","version":"1.2"}`),
		"s"
	return c
}

func TestEachCallIsOnRecord(t *testing.T) {
	answer := map[string]string{
		"a__ok":  `{"content":[]}`,
		"a__bad": `{"content":[],"isErr\u006fr":true}`,
		"a__ask": `{"resultType":"input_required","inputRequests":{}}`,
	}
	said := ""
	up := &fake{answer: func(_ drawbridge.ServerID, c drawbridge.Call) (drawbridge.Result, error) {
		switch said {
		case "a__gone":
			return drawbridge.Result{}, &drawbridge.Fault{Code: drawbridge.Transient, Ambiguous: true}
		case "a__down":
			return drawbridge.Result{}, &drawbridge.Fault{Code: drawbridge.RateLimited}
		}
		return drawbridge.Result{Raw: json.RawMessage(answer[said])}, nil
	}}
	p := &pages{broken: -1}
	barred := guard(func(q Question) drawbridge.Verdict {
		switch q.Spec.Tool {
		case "no":
			return drawbridge.Verdict{Rule: "r1", Reason: "never"}
		case "hid":
			return drawbridge.Verdict{Hide: true, Rule: "r2"}
		}
		return drawbridge.Verdict{Effect: drawbridge.Allow, Rule: "r0"}
	})
	d := open(t, up, Options{Audit: p, Guards: []Guard{barred},
		Cards: []drawbridge.Card{card{"own", func() (drawbridge.Result, error) { panic("ouch") }}}},
		listing("a", "ok", "bad", "ask", "gone", "down", "no", "hid"))
	who := audit.Caller{Kind: "external", Principal: "ada", Client: "editor 1.2", Session: "043a7187"}
	for _, tt := range []struct {
		name string
		end  audit.Record // what the last record says
		sent bool
	}{
		{"a__ok", audit.Record{Outcome: audit.OK, Bytes: 14}, true},
		{"a__bad", audit.Record{Outcome: audit.IsError, Bytes: 34}, true},
		{"a__ask", audit.Record{Outcome: audit.Asked, Bytes: 50}, true},
		{"a__gone", audit.Record{Outcome: audit.Ambiguous, Code: "transient"}, true},
		{"a__down", audit.Record{Outcome: audit.Fault, Code: "rate_limited"}, true},
		{"own", audit.Record{Outcome: audit.Fault, Code: "server_error"}, true},
		{"a__no", audit.Record{Outcome: audit.Refused, Code: "policy_blocked", Effect: "deny", Rule: "r1",
			Reason: "never"}, false},
		{"a__hid", audit.Record{Outcome: audit.Refused, Code: "not_found", Effect: "deny", Rule: "r2"}, false},
		{"a__none", audit.Record{Outcome: audit.Unknown, Code: "not_found"}, false},
	} {
		said = tt.name
		_, _ = d.Call(t.Context(), drawbridge.Call{Caller: editor(), Params: json.RawMessage(`{"_meta":{},"name":"` +
			tt.name + `","arguments":{"n":1}}`)})
		call := audit.Record{
			ID: "1", Kind: audit.Call, Caller: who, Transport: "stdio", Method: mcp.MethodToolsCall, Card: tt.name,
			Arguments: json.RawMessage(`{"n":1}`),
		}
		switch tt.name {
		case "a__none":
		case "own":
			call.Tool = "own"
		default:
			call.Server, call.Tool = "a", tt.name[len("a__"):]
		}
		want := []audit.Record{call}
		if tt.end.ID, tt.end.Kind = "1", audit.Done; tt.sent {
			want[0].Effect, want[0].Rule = "allow", "r0"
			want = append(want, tt.end)
		} else {
			want[0].Outcome, want[0].Code = tt.end.Outcome, tt.end.Code
			want[0].Effect, want[0].Rule, want[0].Reason = tt.end.Effect, tt.end.Rule, tt.end.Reason
		}
		if diff := cmp.Diff(want, p.taken(), apart); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestWhoAnsweredIsOnRecord has a person asked: the record of the call says by which answer, and whose.
func TestWhoAnsweredIsOnRecord(t *testing.T) {
	for says, want := range map[string]audit.Record{
		"":   {Kind: audit.Call},
		"no": {Kind: audit.Call, Outcome: audit.Refused, Code: "policy_blocked", Reason: "no"},
	} {
		p := &pages{broken: -1}
		d := open(t, &fake{}, Options{
			Audit: p, Guards: []Guard{always(drawbridge.Verdict{Effect: drawbridge.Ask, Rule: "r1"})},
			Approver: approver(func(ApprovalRequest) error {
				if says != "" {
					return errors.New(says)
				}
				return nil
			}),
		}, listing("a", "x"))
		_ = call(t, d, ada, "a__x")
		want.ID, want.Caller, want.Method = "1", audit.Caller{Kind: "external", Principal: "ada"}, mcp.MethodToolsCall
		want.Card, want.Server, want.Tool, want.Effect, want.Rule = "a__x", "a", "x", "ask", "r1"
		want.Approval, want.By = "k3f9qzab", "bob, there"
		if diff := cmp.Diff(want, p.taken()[0], apart); diff != "" {
			t.Errorf("%q (-want +got):\n%s", says, diff)
		}
	}
}

// TestOtherMethodsAreOnRecord has one record before anything is sent, and one after, on every way out of the deck.
func TestOtherMethodsAreOnRecord(t *testing.T) {
	p := &pages{broken: -1}
	up := &fake{}
	l := listing("a", "x")
	l.Prompts, l.Resources, l.Templates = objects("name", "p"), objects("uri", "r://1"),
		objects("uriTemplate", "t://{x}")
	d := open(t, up, Options{Audit: p}, l)
	for _, tt := range []struct{ method, params, card, arguments string }{
		{mcp.MethodPromptsGet, `{"name":"a__p","arguments":{"x":1}}`, "a__p", `{"x":1}`},
		{mcp.MethodResourcesRead, `{"uri":"t://7"}`, "t://7", ``},
		{mcp.MethodComplete, `{"ref":{"type":"ref/resource","uri":"t://{x}"},"argument":{"name":"x","value":"1"}}`,
			"t://{x}", `{"name":"x","value":"1"}`},
		{mcp.MethodSubscribe, ``, "r://1", ``},
	} {
		up.answer = func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
			if len(p.all) != 1 || p.all[0].Outcome != "" {
				t.Errorf("%s was sent with %v on record", tt.method, p.all)
			}
			return drawbridge.Result{Raw: json.RawMessage(`{}`)}, nil
		}
		var err error
		if tt.method == mcp.MethodSubscribe {
			err = d.Subscribe(t.Context(), ada, "r://1")
		} else {
			_, err = d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: tt.method,
				Params: json.RawMessage(tt.params)})
		}
		if err != nil {
			t.Errorf("%s: %v", tt.method, err)
		}
		got := p.taken()
		if len(got) != 2 {
			t.Fatalf("%s: %v", tt.method, got)
		}
		if got[0].Method != tt.method || got[0].Card != tt.card || got[0].Server != "a" ||
			string(got[0].Arguments) != tt.arguments ||
			got[1].Kind != audit.Done || got[1].Outcome != audit.OK || got[1].ID != got[0].ID {
			t.Errorf("%s: %+v", tt.method, got)
		}
	}
	if err := d.Subscribe(t.Context(), ada, "r://1", "r://2", "r://1"); err != nil {
		t.Error(err)
	}
	if got := audit.MergeOutcomes(p.taken()); len(got) != 3 || got[0].Outcome != audit.OK ||
		got[1].Outcome != audit.OK || got[2].Outcome != audit.OK {
		t.Errorf("three subscriptions: %+v", got)
	}
}

// TestWhatCannotBeRecordedDoesNotHappen takes the audit away at each point.
func TestWhatCannotBeRecordedDoesNotHappen(t *testing.T) {
	deny := guard(func(q Question) drawbridge.Verdict {
		if q.Spec.Tool == "no" {
			return drawbridge.Verdict{Reason: "never"}
		}
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	})
	p := &pages{}
	up := &fake{}
	l := listing("a", "x", "no")
	l.Resources = objects("uri", "r://1")
	d := open(t, up, Options{Audit: p, Guards: []Guard{deny},
		Cards: []drawbridge.Card{card{"own", func() (drawbridge.Result, error) { panic("it ran") }}}}, l)
	for _, name := range []string{"a__x", "own"} {
		wantFault(t, call(t, d, ada, name), drawbridge.ServerError, "no audit")
	}
	if err := d.Subscribe(t.Context(), ada, "r://1"); err == nil {
		t.Error("a subscription was made that is not on record")
	}
	wantFault(t, call(t, d, ada, "a__no"), drawbridge.PolicyBlocked, "tools/call a__no: never")
	if heard := up.told(); len(heard) > 0 {
		t.Errorf("the server heard %v", heard)
	}
	p.broken = 1
	err := call(t, d, ada, "a__x")
	f, _ := errors.AsType[*drawbridge.Fault](err)
	if f == nil || !f.Ambiguous || len(up.told()) != 1 {
		t.Errorf("the outcome is not on record, and the caller was told %v", err)
	}
}

// nesting is a card in whose course another one is called.
type nesting struct {
	card
	call func(ctx context.Context) error
}

func (a nesting) Run(ctx context.Context, _ drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{}, a.call(ctx)
}

func TestACallKnowsItsParent(t *testing.T) {
	p := &pages{broken: -1}
	var d *Deck
	outer := nesting{card{name: "outer"}, func(ctx context.Context) error {
		_, err := d.Call(ctx, drawbridge.Call{Caller: ada, Params: json.RawMessage(`{"name":"a__x"}`)})
		return err
	}}
	d = open(t, &fake{}, Options{Audit: p, Cards: []drawbridge.Card{outer}}, listing("a", "x"))
	if err := call(t, d, ada, "outer"); err != nil {
		t.Fatal(err)
	}
	type link struct{ id, parent, card string }
	var got []link
	for _, r := range p.taken() {
		got = append(got, link{r.ID, r.Parent, r.Card})
	}
	want := []link{{"1", "", "outer"}, {"2", "1", "a__x"}, {"2", "", ""}, {"1", "", ""}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(link{})); diff != "" {
		t.Error(diff)
	}
}

// holding blanks one tool, leaves one out, and holds calls of another.
func holding(v VettedListing) (VettedListing, error) {
	return VettedListing{
		Tools: []VettedItem{{Original: v.Tools[0].Original, Definition: v.Tools[0].Original,
			HeldReason: "it has changed",
			NextStep:   "accept it"}, {Original: v.Tools[1].Original, OmitReason: "it is not expected",
			Code: "unexpected"}},
		Notes: []VettingNote{{Kind: "tool", Name: "x", Action: "blanked", Why: "it orders the model"}},
	}, nil
}

func TestWhatTheShieldDoesIsOnRecord(t *testing.T) {
	p := &pages{broken: -1}
	up := &fake{}
	d := openVetted(t, holding, up, Options{Audit: p}, listing("a", "x", "y"))
	if err := censor(holding).enrol(t.Context(), d, listing("a", "x", "y")); err != nil { // nothing new
		t.Fatal(err)
	}
	wantFault(t, call(t, d, ada, "a__x"), drawbridge.PolicyBlocked, "tools/call a__x: it has changed (accept it)")
	want := []audit.Record{
		{ID: "1", Kind: audit.Shield, Server: "a", Card: "x", Tool: "x", Rule: "blanked",
			Reason: "it orders the model"},
		{ID: "2", Kind: audit.Shield, Server: "a", Card: "y", Tool: "y", Rule: "unexpected",
			Reason: "it is not expected"},
		{
			ID: "3", Kind: audit.Call, Caller: audit.Caller{Kind: "external", Principal: "ada"},
			Method: mcp.MethodToolsCall, Card: "a__x", Server: "a", Tool: "x",
			Effect: "deny", Rule: "held", Reason: "it has changed", Outcome: audit.Refused, Code: "policy_blocked",
		},
	}
	if diff := cmp.Diff(want, p.taken(), apart); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if heard := up.told(); len(heard) > 0 {
		t.Errorf("the server heard %v", heard)
	}
}

// labels is a guard that knows the labels of runs, by their callers' sessions, and refuses the tool "no".
type labels map[string][]string

func (labels) Decide(_ context.Context, q Question) drawbridge.Verdict {
	if q.Spec.Tool == "no" {
		return drawbridge.Verdict{Reason: "never"}
	}
	return drawbridge.Verdict{Effect: drawbridge.Allow}
}

func (l labels) RunLabel(_ context.Context, c drawbridge.Caller) (string, []string) {
	if len(l[c.Session]) == 0 {
		return "", nil
	}
	return l[c.Session][0], l[c.Session][1:]
}

// TestTheLabelOfTheRunIsOnRecord has calls with a label, sent and refused, and one of a run that has none.
func TestTheLabelOfTheRunIsOnRecord(t *testing.T) {
	p := &pages{broken: -1}
	known := labels{"s": {"untrusted", "result mail__message"}}
	d := open(t, &fake{}, Options{Audit: p, Guards: []Guard{known}}, listing("a", "x", "no"))
	clean := editor()
	clean.Session = "other"
	for _, tt := range []struct {
		caller  drawbridge.Caller
		name    string
		label   string
		origins []string
	}{
		{editor(), "a__x", "untrusted", known["s"][1:]}, {editor(), "a__no", "untrusted", known["s"][1:]},
		{clean, "a__x", "", nil}, {clean, "a__no", "", nil},
	} {
		_ = call(t, d, tt.caller, tt.name)
		all := p.taken()
		for i, r := range all {
			wantLabel, wantOrigins := tt.label, tt.origins
			if i > 0 { // the outcome
				wantLabel, wantOrigins = "", nil
			}
			if r.Label != wantLabel || !cmp.Equal(r.Origins, wantOrigins) {
				t.Errorf("%s in %s, record %d: label %q, origins %q", tt.name, tt.caller.Session, i, r.Label, r.Origins)
			}
		}
		if len(all) == 0 {
			t.Errorf("%s is not on record", tt.name)
		}
	}
}
