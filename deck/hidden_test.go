package deck

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

// A veil hides what is called "secret", and writes down each step of the deck's that takes time.
type veil struct {
	steps []string
	rule  string // of the last record
}

var _ ExplainingGuard = (*veil)(nil)

func (c *veil) step(format string, args ...any) {
	c.steps = append(c.steps, fmt.Sprintf(format, args...))
}

func (c *veil) Decide(context.Context, Question) drawbridge.Verdict {
	c.step("decide")
	return drawbridge.Verdict{Effect: drawbridge.Allow}
}

func (c *veil) Hides(_ drawbridge.Caller, _ string, spec drawbridge.Spec) bool {
	c.step("hides")
	return strings.Contains(spec.Tool, "secret")
}

func (c *veil) HideReason(_ drawbridge.Caller, _ string, spec drawbridge.Spec) drawbridge.Verdict {
	c.step("why")
	if strings.Contains(spec.Tool, "secret") {
		return drawbridge.Verdict{Rule: "rules:7", Reason: "it is secret"}
	}
	return drawbridge.Verdict{Effect: drawbridge.Allow}
}

func (c *veil) CallerClass(drawbridge.Caller) string { return "" }
func (c *veil) HidesAnything() bool                  { return true }

// Record is the audit's: writing is a step. By which rule something is hidden only the record knows.
func (c *veil) Record(r audit.Record) error {
	c.rule = r.Rule
	c.step("record %s %s %s %s %s %s", r.Kind, r.Card, r.Server, r.Tool, r.Effect, r.Outcome)
	return nil
}

// TestAHiddenNameTakesTheStepsOfNone: what rules hide, what a caller holds no scope for, and what there is not are
// answered in the same words after the same steps: no clock could tell one from the other.
func TestAHiddenNameTakesTheStepsOfNone(t *testing.T) {
	c := &veil{}
	up := &fake{}
	wait := func(_ context.Context, _ drawbridge.Caller, name string) { c.step("wait for %s", name) }
	var all []drawbridge.Listing
	for _, server := range []string{"a", "b"} {
		l := listing(server, "open", "secret"+server)
		l.Prompts, l.Templates = objects("name", "open", "secret"+server), objects("uriTemplate", "open:{x}",
			"secret-"+server+":{x}")
		l.Resources = objects("uri", "open-"+server+"://1", "secret-"+server+"://1")
		l.Capabilities = json.RawMessage(`{"resources":{"subscribe":true}}`)
		all = append(all, l)
	}
	d := open(t, up, Options{Guards: []Guard{c}, Audit: c, BeforeUnknown: wait,
		BeforeList: func(context.Context) { c.step("wait") }}, all...)
	partly := ada
	partly.Scopes = []drawbridge.Scope{"mcp:a"}
	// ask returns the answer to a question about a name, and the steps to it, both without the name.
	ask := func(caller drawbridge.Caller, method, params, name string) string {
		t.Helper()
		c.steps = nil
		var err error
		if method == mcp.MethodSubscribe {
			err = d.Subscribe(t.Context(), caller, name)
		} else {
			_, err = d.Do(t.Context(), drawbridge.Call{Caller: caller, Method: method,
				Params: fmt.Appendf(nil, params, name)})
		}
		if err == nil || len(up.told()) > 0 {
			t.Errorf("%s %s: %v, and a server heard of it", method, name, err)
			return ""
		}
		f := drawbridge.AsFault(err)
		text := fmt.Sprintf("%s %s %s %s\n%s", f.Kind, f.Code, f.Error(), f.Raw, strings.Join(c.steps, "\n"))
		return strings.ReplaceAll(text, name, "NAME")
	}
	for _, tt := range []struct{ method, params, none, hidden, foreign string }{
		{mcp.MethodToolsCall, `{"name":%q}`, "a__nothing", "a__secreta", "b__open"},
		{mcp.MethodToolsCall, `{"name":%q}`, "nothing", "secreta", "secretb"},
		{mcp.MethodPromptsGet, `{"name":%q}`, "a__nothing", "a__secreta", "b__open"},
		{mcp.MethodComplete, `{"ref":{"type":"ref/prompt","name":%q}}`, "a__nothing", "a__secreta", "b__open"},
		{mcp.MethodComplete, `{"ref":{"type":"ref/resource","uri":%q}}`, "nothing-a:{x}", "secret-a:{x}", ""},
		{mcp.MethodResourcesRead, `{"uri":%q}`, "nothing-a:1", "secret-a:1", ""},
		{mcp.MethodResourcesRead, `{"uri":%q}`, "nothing-a://1", "secret-a://1", ""},
		{mcp.MethodSubscribe, "", "nothing-a://1", "secret-a://1", ""},
	} {
		ask(ada, tt.method, tt.params, tt.none) // which servers a caller knows is found out once
		none := ask(ada, tt.method, tt.params, tt.none)
		if c.rule != "" {
			t.Errorf("%s %s, which there is not, is on record as hidden by %s", tt.method, tt.none, c.rule)
		}
		if diff := cmp.Diff(none, ask(ada, tt.method, tt.params, tt.hidden)); diff != "" {
			t.Errorf("%s %s, which rules hide (-nothing +it):\n%s", tt.method, tt.hidden, diff)
		}
		if c.rule != "rules:7" {
			t.Errorf("%s %s: the record has the rule %q", tt.method, tt.hidden, c.rule)
		}
		if tt.foreign == "" {
			continue // who knows one server only has that asked for any URI
		}
		if diff := cmp.Diff(ask(partly, tt.method, tt.params, tt.none), ask(partly, tt.method, tt.params,
			tt.foreign)); diff != "" {
			t.Errorf("%s %s, which the caller has no scope for (-nothing +it):\n%s", tt.method, tt.foreign, diff)
		}
		if c.rule != "scopes" {
			t.Errorf("%s %s: the record has the rule %q", tt.method, tt.foreign, c.rule)
		}
	}
	if text := ask(ada, mcp.MethodToolsCall, `{"name":%q}`, "a__nothing"); !strings.Contains(text, "wait for") ||
		!strings.Contains(text, "hides") || !strings.Contains(text, "record call NAME") {
		t.Errorf("the steps are none: %s", text)
	}
}
