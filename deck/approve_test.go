package deck

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
	"github.com/google/go-cmp/cmp"
)

type approver func(ApprovalRequest) error

func (a approver) Approve(_ context.Context, r ApprovalRequest) error { return a(r) }

func TestApprovers(t *testing.T) {
	wants := func(reason, rule string) Guard {
		return always(drawbridge.Verdict{Effect: drawbridge.Ask, Reason: reason, Rule: rule})
	}
	limit := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.RateLimited, Step: "wait", Err: errors.New("too many")}
	for _, tt := range []struct {
		name   string
		guards []Guard
		says   func() error
		asked  []string // reason and rule of each request
		sent   []string
		code   drawbridge.FaultCode
		text   string
	}{
		{"a yes", []Guard{wants("it writes", "r1")}, func() error { return nil },
			[]string{"it writes|r1"}, []string{`a tools/call {"name":"x"}`}, "", ""},
		{"several guards, one question", []Guard{wants("it writes", "r1"), wants("", ""), wants("it costs", "r1")}, func() error { return nil },
			[]string{"it writes; it costs|r1"}, []string{`a tools/call {"name":"x"}`}, "", ""},
		{"a no", []Guard{wants("it writes", "r1")}, func() error { return errors.New("no") },
			[]string{"it writes|r1"}, nil, drawbridge.PolicyBlocked, "tools/call a__x: no"},
		{"a fault of its own", []Guard{wants("", "")}, func() error { return limit }, []string{"|"}, nil, drawbridge.RateLimited, "wait: too many"},
		{"a panic", []Guard{wants("", "")}, func() error { panic("ouch") }, []string{"|"}, nil, drawbridge.PolicyBlocked, "tools/call a__x: a person could not be asked"},
		{"another guard denies", []Guard{wants("", ""), always(drawbridge.Verdict{Reason: "not on Fridays"})}, func() error { return nil },
			nil, nil, drawbridge.PolicyBlocked, "tools/call a__x: not on Fridays"},
	} {
		up := &fake{}
		var asked []string
		d := open(t, up, Options{Guards: tt.guards, Approver: approver(func(r ApprovalRequest) error {
			asked = append(asked, r.Reason+"|"+r.Rule)
			return tt.says()
		})}, listing("a", "x"))
		err := call(t, d, ada, "a__x")
		if tt.code != "" {
			wantFault(t, err, tt.code, tt.text)
		} else if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		wantList(t, asked, tt.asked...)
		wantList(t, up.told(), tt.sent...)
	}
}

// TestAnApprovalKnowsWhatChanged has what an approver can find out before it uses up a yes.
func TestAnApprovalKnowsWhatChanged(t *testing.T) {
	changed := listing("a", "x")
	changed.Tools = []json.RawMessage{json.RawMessage(`{"name":"x","description":"something else"}`)}
	got := map[string]bool{}
	for name, change := range map[string]func(d *Deck) error{
		"nothing":             func(*Deck) error { return nil },
		"the same once more":  func(d *Deck) error { return d.Enrol(t.Context(), listing("a", "x")) },
		"another definition":  func(d *Deck) error { return d.Enrol(t.Context(), changed) },
		"the tool is gone":    func(d *Deck) error { return d.Enrol(t.Context(), listing("a", "y")) },
		"the server has left": func(d *Deck) error { return d.Configure(t.Context(), nil) },
	} {
		var d *Deck
		d = open(t, &fake{}, Options{
			Guards: []Guard{always(drawbridge.Verdict{Effect: drawbridge.Ask})},
			Approver: approver(func(r ApprovalRequest) error {
				if !r.Still() {
					t.Errorf("%s: it had changed before", name)
				}
				if err := change(d); err != nil {
					t.Error(err)
				}
				got[name] = r.Still()
				return errors.New("enough")
			}),
		}, listing("a", "x"))
		wantFault(t, call(t, d, ada, "a__x"), drawbridge.PolicyBlocked, "tools/call a__x: enough")
	}
	want := map[string]bool{"nothing": true, "the same once more": true, "another definition": false, "the tool is gone": false, "the server has left": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("still there (-want +got):\n%s", diff)
	}
}

func TestAnApprovalOfAResource(t *testing.T) {
	l := listing("a", "x")
	l.Resources = objects("uri", "r://1")
	up := &fake{}
	var still []bool
	d := open(t, up, Options{
		Guards:   []Guard{always(drawbridge.Verdict{Effect: drawbridge.Ask})},
		Approver: approver(func(r ApprovalRequest) error { still = append(still, r.Still()); return nil }),
	}, l)
	if _, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: wire.MethodResourcesRead, Params: json.RawMessage(`{"uri":"r://1"}`)}); err != nil {
		t.Error(err)
	}
	wantList(t, up.told(), `a resources/read {"uri":"r://1"}`)
	if diff := cmp.Diff([]bool{true}, still); diff != "" {
		t.Errorf("still there (-want +got):\n%s", diff)
	}
}
