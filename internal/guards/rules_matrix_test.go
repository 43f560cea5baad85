package guards_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// TestPolicyRows are rows of the security matrix that the guard of rules answers for.
func TestPolicyRows(t *testing.T) {
	for name, row := range map[string]func(t *testing.T){
		"PO-3 a tool by all of its names":          byAllNames,
		"PO-4 a failure is a refusal that is kept": failuresAreRefusals,
		"PO-10 a call sees rules of one moment":    oneMoment,
	} {
		t.Run(name, row)
	}
}

// byAllNames: a rule that names a tool by any of its names is about a call of it by any other.
func byAllNames(t *testing.T) {
	d, w := guarded(t)
	ada := drawbridge.Caller{Kind: drawbridge.Author, Principal: "ada", Scopes: []drawbridge.Scope{"*"},
		Era: drawbridge.Modern}
	names := []string{"git__sologit", "mcp_git_sologit", "sologit"}
	for _, ruled := range append(names, "git:sologit", "GIT__*", " sologit ") {
		if ruled == "mcp_git_sologit" {
			continue // in this style nothing is listed here
		}
		take(t, d, w, drawbridge.Rule{Effect: drawbridge.Deny, Tools: []string{ruled},
			Args: []drawbridge.Condition{{Name: "x", Is: []json.RawMessage{json.RawMessage(`1`)}}}})
		for _, name := range names {
			for arguments, want := range map[string]drawbridge.FaultCode{`{"x":1}`: drawbridge.PolicyBlocked,
				`{"x":2}`: ""} {
				params := rawjson.Apply(nil, rawjson.Put(rawjson.Quote(name), "name"),
					rawjson.Put(json.RawMessage(arguments), "arguments"))
				if _, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: mcp.MethodToolsCall,
					Params: params}); code(err) != want {
					t.Errorf("a rule on %q, a call of %s %s: %v", ruled, name, arguments, err)
				}
			}
		}
	}
}

// failuresAreRefusals: a call that cannot be judged is refused with the code that says so, is not worth a second try,
// and its caller hears nothing of the rule.
func failuresAreRefusals(t *testing.T) {
	d, w := guarded(t)
	ada := drawbridge.Caller{Kind: drawbridge.Author, Principal: "ada", Scopes: []drawbridge.Scope{"*"},
		Era: drawbridge.Modern}
	take(t, d, w, drawbridge.Rule{At: "f.toml:7", Effect: drawbridge.Allow, When: "args.x == 1"})
	_, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: mcp.MethodToolsCall,
		Params: json.RawMessage(`{"name":"fs__read"}`)})
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Code != drawbridge.PolicyBlocked || f.MayRetry(true) ||
		f.Error() != "tools/call fs__read: Tool call denied by policy" {
		t.Errorf("%v, may be tried again: %v", err, ok && f.MayRetry(true))
	}
}

// oneMoment swaps two sets of rules, each with the trust that goes with it, while calls are judged: either set allows
// them, and a mixture would not.
func oneMoment(t *testing.T) {
	w := guards.NewRuleGuard(slog.New(slog.DiscardHandler))
	var sets []func()
	for _, level := range []string{"trusted", "sandboxed"} {
		p, err := guards.CompileRules(&drawbridge.Rules{Rules: []drawbridge.Rule{{Effect: drawbridge.Allow,
			Trust: []string{level}}}})
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, func() { w.Update(p, []config.Server{{ID: "fs", Trust: level}}, nil) })
	}
	sets[0]()
	done := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				sets[i%2]()
			}
		}
	})
	q := deck.Question{
		Caller: drawbridge.Caller{Kind: drawbridge.Author, Principal: "ada"}, Kind: "tool", Method: mcp.MethodToolsCall,
		Spec: drawbridge.Spec{Server: "fs", Tool: "x", Name: "fs__x"},
	}
	for range 5000 {
		if v := w.Decide(t.Context(), q); v.Effect != drawbridge.Allow {
			t.Errorf("a call was judged by rules of two moments: %+v", v)
			break
		}
	}
	close(done)
	work.Wait()
}
