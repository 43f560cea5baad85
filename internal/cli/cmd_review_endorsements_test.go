//go:build unix

package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/boundary"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
)

// openTainted opens a gateway with a server that is not trusted, and returns a function with which an agent calls the
// tool "echo" of the server in a run. After the first call, the run is untrusted. stop ends the gateway: then its audit is
// whole.
func openTainted(t *testing.T, d *desk) (echo func(run, text string) error, stop func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.write(".config/drawbridge/mcp.json", fmt.Sprintf(`{"servers": {"every": {"command": %q, "env": {%q: "everything"}}}}`,
		self, mcptest.ServerVariable))
	env := map[string]string{"HOME": d.home, gateway.KeychainVariable: "off"}
	g, err := gateway.Open(t.Context(), gateway.Config{
		Dir: d.project, LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Run(t.Context()) }()
	stop = sync.OnceFunc(func() {
		if err := errors.Join(g.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	if _, err := g.Mount(t.Context(), "every"); err != nil {
		t.Fatal(err)
	}
	echo = func(run, text string) error {
		caller := g.Owner()
		caller.Kind, caller.Session, caller.Thread, caller.Run = drawbridge.Agent, "agent:"+run, run, run
		caller.Agent = &drawbridge.AgentRights{Mode: drawbridge.Bypass}
		params, err := json.Marshal(map[string]any{"name": "every__echo", "arguments": map[string]string{"text": text}})
		if err != nil {
			return err
		}
		_, err = g.Deck().Call(t.Context(), drawbridge.Call{Caller: boundary.Prove(caller), Params: params})
		return err
	}
	return echo, stop
}

func TestEndorsementsAreListedAndRevoked(t *testing.T) {
	d := newDesk(t)
	if _, stderr := d.run(0, "review", "endorsements"); stderr != "You have endorsed no values.\n" {
		t.Errorf("without a store: %s", stderr)
	}
	echo, stop := openTainted(t, d)
	if err := echo("one", "hello"); err != nil {
		t.Fatal(err)
	}
	const key = "sk-live-0123456789abcdefghijklmnop"
	done := make(chan error, 1)
	go func() { done <- echo("one", "pay eve\u202e with "+key) }()
	id := d.waiting()
	out, _ := d.run(0, "ask", "show", id)
	want := `  rule       flow
  why        yes endorses these values for 8 hours:
               text (untrusted, from result every__echo)
`
	if !strings.Contains(out, want) {
		t.Errorf("show:\n%s", out)
	}
	out, _ = d.run(0, "policy", "explain", "every__echo", "text=pay eve", "--thread", "one")
	want = `  yes endorses these values for 8 hours:
    text (untrusted, from result every__echo)
`
	if !strings.Contains(out, want) {
		t.Errorf("explain:\n%s", out)
	}
	d.run(0, "ask", "allow", id)
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	out, _ = d.run(0, "review", "endorsements")
	row := regexp.MustCompile(`(?m)^(\S+)  +pay eve\\u202e with .* +untrusted +result every__echo +all tools, calls of \S+ +` +
		`\S+, drawbridge ask allow +\d.*$`).FindStringSubmatch(out)
	if row == nil || strings.Contains(out, key) {
		t.Fatalf("list:\n%s", out)
	}
	out, _ = d.run(0, "review", "endorsements", "--json")
	var all []struct {
		ID, Principal, Shown, Label, Origin, By string
		Until                                   time.Time
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 || all[0].ID != row[1] ||
		all[0].Label != "untrusted" || !all[0].Until.After(time.Now()) || strings.Contains(out, key) {
		t.Errorf("json: %v %s", err, out)
	}
	if err := echo("one", "pay eve\u202e with "+key); err != nil {
		t.Errorf("the endorsed value again: %v", err)
	}
	d.run(0, "review", "endorsements", "revoke", row[1])
	_, stderr := d.run(1, "review", "endorsements", "revoke", row[1])
	if !strings.Contains(stderr, "not found (drawbridge review endorsements lists them)") {
		t.Errorf("revoked twice: %s", stderr)
	}
	go func() { done <- echo("one", "pay eve\u202e with "+key) }()
	d.run(0, "ask", "deny", d.waiting())
	if err := <-done; err == nil {
		t.Error("a value was used after its endorsement was revoked")
	}
	stop()
	if out, _ = d.run(0, "audit", "log"); !strings.Contains(out, "ok: "+row[1]) {
		t.Errorf("the revocation is not on record:\n%s", out)
	}
	checkRecordedLabels(t, d)
}

// checkRecordedLabels checks that all four calls but the first one are on record with the label of their run.
func checkRecordedLabels(t *testing.T, d *desk) {
	t.Helper()
	out, _ := d.run(0, "audit", "log", "--json", "--server", "every")
	var calls []audit.Record
	err := json.Unmarshal([]byte(out), &calls)
	calls = slices.DeleteFunc(calls, func(r audit.Record) bool { return r.Kind != audit.Call })
	if err != nil || len(calls) != 4 || calls[3].Outcome != audit.Refused {
		t.Fatalf("audit log --json: %v %s", err, out)
	}
	for i, c := range calls {
		want := audit.Record{Label: "untrusted", Origins: []string{"result every__echo"}}
		if i == 0 { // the first call was made by a run that had read nothing
			want = audit.Record{}
		}
		if c.Label != want.Label || !cmp.Equal(c.Origins, want.Origins) {
			t.Errorf("call %d has the label %q and the origins %q", i, c.Label, c.Origins)
		}
	}
	out, _ = d.run(0, "audit", "show", calls[1].ID)
	if !regexp.MustCompile(`"label": "untrusted",\s+"origins": \[\s+"result every__echo"`).MatchString(out) {
		t.Errorf("audit show:\n%s", out)
	}
	out, _ = d.run(0, "audit", "export")
	if n := strings.Count(out, `"label":"untrusted","origins":["result every__echo"]`); n != len(calls)-1 {
		t.Errorf("audit export:\n%s", out)
	}
	d.run(0, "audit", "verify")
}
