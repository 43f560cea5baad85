package deck

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

type guard func(Question) drawbridge.Verdict

func (g guard) Decide(_ context.Context, q Question) drawbridge.Verdict { return g(q) }

func always(v drawbridge.Verdict) Guard { return guard(func(Question) drawbridge.Verdict { return v }) }

func TestEveryGuardMustAllow(t *testing.T) {
	allow := always(drawbridge.Verdict{Effect: drawbridge.Allow})
	for _, tt := range []struct {
		name   string
		guards []Guard
		code   drawbridge.FaultCode
		text   string
	}{
		{"none", nil, "", ""},
		{"all allow", []Guard{allow, allow}, "", ""},
		{"one denies", []Guard{allow, always(drawbridge.Verdict{Reason: "not on Fridays"})}, drawbridge.PolicyBlocked,
			"tools/call a__x: not on Fridays"},
		{"one says when to come back",
			[]Guard{always(drawbridge.Verdict{Reason: "too many", Code: drawbridge.RateLimited, Next: "again in 5s"})},
			drawbridge.RateLimited, "tools/call a__x: too many (again in 5s)"},
		{"the zero verdict", []Guard{always(drawbridge.Verdict{}), allow}, drawbridge.PolicyBlocked,
			"tools/call a__x: it is not allowed"},
		{"an effect there is not", []Guard{always(drawbridge.Verdict{Effect: 9})}, drawbridge.PolicyBlocked,
			"tools/call a__x: it is not allowed"},
		{"one asks", []Guard{always(drawbridge.Verdict{Effect: drawbridge.Ask})}, drawbridge.PolicyBlocked,
			"tools/call a__x: it needs an approval, and no approver is configured"},
		{"one hides", []Guard{always(drawbridge.Verdict{Reason: "secret", Hide: true})}, drawbridge.NotFound,
			"unknown tool a__x"},
		{"one panics", []Guard{allow, guard(func(Question) drawbridge.Verdict { panic("ouch") })},
			drawbridge.PolicyBlocked, "tools/call a__x: it is not allowed"},
	} {
		up := &fake{}
		d := open(t, up, Options{Guards: tt.guards}, listing("a", "x"))
		err := call(t, d, ada, "a__x")
		if tt.code == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		wantFault(t, err, tt.code, tt.text)
		if heard := up.told(); len(heard) > 0 {
			t.Errorf("%s: the server heard %v", tt.name, heard)
		}
	}
}

func TestGuardsAreAskedOnEveryPath(t *testing.T) {
	var asked []string
	g := guard(func(q Question) drawbridge.Verdict {
		asked = append(asked, q.Caller.Principal+" "+q.Method+" "+string(q.Spec.Server)+" "+string(q.Spec.Name)+" = "+
			q.Spec.Tool+" "+string(q.Params))
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	})
	l := listing("a", "x")
	l.Prompts, l.Resources, l.Templates = objects("name", "p"), objects("uri", "r://1"),
		objects("uriTemplate", "t://{x}")
	d := open(t, &fake{}, Options{Guards: []Guard{g}}, l)
	for method, params := range map[string]string{
		mcp.MethodToolsCall:     `{"name":"x","arguments":{"n":1}}`,
		mcp.MethodPromptsGet:    `{"name":"a__p"}`,
		mcp.MethodResourcesRead: `{"uri":"t://7"}`,
		mcp.MethodComplete:      `{"ref":{"type":"ref/resource","uri":"t://{x}"}}`,
	} {
		asked = nil
		if _, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: method,
			Params: json.RawMessage(params)}); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		what := map[string]string{
			mcp.MethodToolsCall: "a__x = x", mcp.MethodPromptsGet: "a__p = p",
			mcp.MethodResourcesRead: "t://7 = t://7", mcp.MethodComplete: "t://{x} = t://{x}",
		}[method]
		if diff := cmp.Diff([]string{"ada " + method + " a " + what + " " + params}, asked); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	}
	asked = nil
	if err := d.Subscribe(t.Context(), ada, "r://1"); err != nil {
		t.Error(err)
	}
	wantList(t, asked, `ada resources/subscribe a r://1 = r://1 {"uri":"r://1"}`)
}
