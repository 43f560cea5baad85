package deck

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

type approver func(ApprovalRequest) error

func (a approver) Approve(_ context.Context, r ApprovalRequest) (ApprovalAnswer, error) {
	return ApprovalAnswer{ID: "k3f9qzab", By: "bob, there"}, a(r)
}

func TestApprovers(t *testing.T) {
	wants := func(reason, rule string) Guard {
		return always(drawbridge.Verdict{Effect: drawbridge.Ask, Reason: reason, Rule: rule})
	}
	limit := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.RateLimited, Step: "wait",
		Err: errors.New("too many")}
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
		{"several guards, one question", []Guard{wants("it writes", "r1"), wants("", ""), wants("it costs", "r1")},
			func() error { return nil },
			[]string{"it writes; it costs|r1"}, []string{`a tools/call {"name":"x"}`}, "", ""},
		{"a no", []Guard{wants("it writes", "r1")}, func() error { return errors.New("no") },
			[]string{"it writes|r1"}, nil, drawbridge.PolicyBlocked, "tools/call a__x: no"},
		{"a fault of its own", []Guard{wants("", "")}, func() error { return limit }, []string{"|"}, nil,
			drawbridge.RateLimited, "wait: too many"},
		{"a panic", []Guard{wants("", "")}, func() error { panic("ouch") }, []string{"|"}, nil,
			drawbridge.PolicyBlocked, "tools/call a__x: a person could not be asked"},
		{"another guard denies", []Guard{wants("", ""), always(drawbridge.Verdict{Reason: "not on Fridays"})},
			func() error { return nil },
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
		"nothing": func(*Deck) error { return nil },
		"the same once more": func(d *Deck) error {
			return d.Enrol(t.Context(), listing("a", "x"),
				ShowAll(listing("a", "x")))
		},
		"another definition": func(d *Deck) error { return d.Enrol(t.Context(), changed, ShowAll(changed)) },
		"the tool is gone": func(d *Deck) error {
			return d.Enrol(t.Context(), listing("a", "y"),
				ShowAll(listing("a", "y")))
		},
		"the server has left": func(d *Deck) error { return d.Configure(t.Context(), nil) },
	} {
		var d *Deck
		d = open(t, &fake{}, Options{
			Guards: []Guard{always(drawbridge.Verdict{Effect: drawbridge.Ask})},
			Approver: approver(func(r ApprovalRequest) error {
				if !r.StillValid() {
					t.Errorf("%s: it had changed before", name)
				}
				if err := change(d); err != nil {
					t.Error(err)
				}
				got[name] = r.StillValid()
				return errors.New("enough")
			}),
		}, listing("a", "x"))
		wantFault(t, call(t, d, ada, "a__x"), drawbridge.PolicyBlocked, "tools/call a__x: enough")
	}
	want := map[string]bool{"nothing": true, "the same once more": true, "another definition": false,
		"the tool is gone": false, "the server has left": false}
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
		Approver: approver(func(r ApprovalRequest) error { still = append(still, r.StillValid()); return nil }),
	}, l)
	if _, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: mcp.MethodResourcesRead,
		Params: json.RawMessage(`{"uri":"r://1"}`)}); err != nil {
		t.Error(err)
	}
	wantList(t, up.told(), `a resources/read {"uri":"r://1"}`)
	if diff := cmp.Diff([]bool{true}, still); diff != "" {
		t.Errorf("still there (-want +got):\n%s", diff)
	}
}

// TestWhatAYesIsNotFor has the world change while a person thinks: each time they say yes to what they were shown, and
// nothing of it may be sent.
func TestWhatAYesIsNotFor(t *testing.T) {
	held, effect := "", drawbridge.Ask
	vet := censor(func(v VettedListing) (VettedListing, error) { v.Tools[0].HeldReason = held; return v, nil })
	row := Server{ID: "a", ConfigHash: "another"}
	for name, tt := range map[string]struct {
		change func(d *Deck) error
		text   string
	}{
		"the tool waits for them now": {func(d *Deck) error {
			held = "its definition changed"
			return vet.reenrol(t.Context(), d, "a")
		}, "tools/call a__x: changed"},
		"another server has the name": {func(d *Deck) error {
			l := listing("a", "x")
			l.ConfigHash = row.ConfigHash
			row.Remembered = &RememberedListing{Listing: l, Vetted: ShowAll(l)}
			return d.Configure(t.Context(), []Server{row})
		}, "tools/call a__x: changed"},
		"the rules say no now": {func(*Deck) error { effect = drawbridge.Deny; return nil },
			"tools/call a__x: not any more"},
	} {
		held, effect = "", drawbridge.Ask
		up := &fake{}
		var d *Deck
		d = openVetted(t, vet, up, Options{
			Guards: []Guard{guard(func(Question) drawbridge.Verdict {
				return drawbridge.Verdict{Effect: effect,
					Reason: "not any more"}
			})},
			Approver: approver(func(r ApprovalRequest) error {
				if err := tt.change(d); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if !r.StillValid() {
					return errors.New("changed")
				}
				return nil
			}),
		}, listing("a", "x"))
		wantFault(t, call(t, d, ada, "a__x"), drawbridge.PolicyBlocked, tt.text)
		if heard := up.told(); len(heard) > 0 {
			t.Errorf("%s: the server heard %v", name, heard)
		}
	}
}

// TestAYesOfAHiddenResource has a resource hidden while a person thinks.
func TestAYesOfAHiddenResource(t *testing.T) {
	l := listing("a", "x")
	l.Resources = objects("uri", "r://1")
	s := &curtain{}
	var still []bool
	d := open(t, &fake{}, Options{Guards: []Guard{s}, Approver: approver(func(r ApprovalRequest) error {
		still = append(still, r.StillValid())
		s.drawn.Store(true)
		still = append(still, r.StillValid())
		return errors.New("enough")
	})}, l)
	_, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: mcp.MethodResourcesRead,
		Params: json.RawMessage(`{"uri":"r://1"}`)})
	wantFault(t, err, drawbridge.PolicyBlocked, "resources/read r://1: enough")
	if diff := cmp.Diff([]bool{true, false}, still); diff != "" {
		t.Errorf("still there (-want +got):\n%s", diff)
	}
}

// A curtain asks about everything, and hides everything once it is drawn.
type curtain struct{ drawn atomic.Bool }

var _ HidingGuard = (*curtain)(nil)

func (*curtain) Decide(context.Context, Question) drawbridge.Verdict {
	return drawbridge.Verdict{Effect: drawbridge.Ask}
}
func (c *curtain) Hides(drawbridge.Caller, string, drawbridge.Spec) bool { return c.drawn.Load() }
func (*curtain) CallerClass(drawbridge.Caller) string                    { return "" }
func (*curtain) HidesAnything() bool                                     { return true }

// A till counts the calls that it lets pass, and has room for so many.
type till struct {
	room, counted, looked int
}

var _ CountingGuard = (*till)(nil)

func (l *till) Preview(context.Context, Question) drawbridge.Verdict {
	l.looked++
	return l.verdict()
}

func (l *till) Decide(context.Context, Question) drawbridge.Verdict {
	v := l.verdict()
	if v.Effect == drawbridge.Allow {
		l.counted++
	}
	return v
}

func (l *till) verdict() drawbridge.Verdict {
	if l.counted < l.room {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	return drawbridge.Verdict{Rule: "till", Reason: "it is full", Code: drawbridge.RateLimited}
}

// TestOnlyWhatIsSentIsCounted has calls refused in every way there is, whichever place the counter has among the
// guards.
func TestOnlyWhatIsSentIsCounted(t *testing.T) {
	asks := always(drawbridge.Verdict{Effect: drawbridge.Ask})
	for name, tt := range map[string]struct {
		guards  []Guard
		room    int
		says    error
		params  string
		held    string
		want    till // except for room
		asked   int
		sent    bool
		refused drawbridge.FaultCode
	}{
		"it passes": {room: 1, want: till{counted: 1}, sent: true},
		"a guard refuses it": {guards: []Guard{always(drawbridge.Verdict{})}, room: 1,
			refused: drawbridge.PolicyBlocked},
		"it is held": {room: 1, held: "its definition changed", refused: drawbridge.PolicyBlocked},
		"its state is not ours": {room: 1, params: `{"name":"a__x","requestState":"forged"}`,
			refused: drawbridge.InvalidInput},
		"a person says yes": {guards: []Guard{asks}, room: 1, want: till{counted: 1, looked: 2},
			asked: 1, sent: true},
		"a person says no": {guards: []Guard{asks}, room: 1, says: errors.New("no"), want: till{looked: 1},
			asked: 1, refused: drawbridge.PolicyBlocked},
		"no room":                    {refused: drawbridge.RateLimited},
		"no person is asked in vain": {guards: []Guard{asks}, want: till{looked: 1}, refused: drawbridge.RateLimited},
	} {
		for _, first := range []bool{true, false} {
			counter, asked, up := &till{room: tt.room}, 0, &fake{}
			guards := append([]Guard{counter}, tt.guards...)
			if !first {
				guards = append(slices.Clone(tt.guards), counter)
			}
			d := openVetted(t, func(v VettedListing) (VettedListing, error) {
				v.Tools[0].HeldReason = tt.held
				return v, nil
			}, up, Options{
				Guards: guards, Approver: approver(func(ApprovalRequest) error { asked++; return tt.says }),
			}, listing("a", "x"))
			params := json.RawMessage(`{"name":"a__x"}`)
			if tt.params != "" {
				params = json.RawMessage(tt.params)
			}
			_, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: mcp.MethodToolsCall, Params: params})
			if f := drawbridge.AsFault(err); (err == nil) != tt.sent || err != nil && f.Code != tt.refused {
				t.Errorf("%s: %v", name, err)
			}
			tt.want.room = tt.room
			if *counter != tt.want || asked != tt.asked || len(up.told()) > 0 != tt.sent {
				t.Errorf("%s: %+v, asked %d times; want %+v, %d", name, *counter, asked, tt.want, tt.asked)
			}
		}
	}
}
