//go:build unix

package cli_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/google/go-cmp/cmp"
)

// asksAlways is a guard that wants a person asked about every call.
type asksAlways struct{}

func (asksAlways) Decide(context.Context, deck.Question) drawbridge.Verdict {
	return drawbridge.Verdict{Effect: drawbridge.Ask, Reason: "it looks around\u202e", Rule: "policy 1"}
}

// A parking is a gateway of another process, so to say, on the store of a home, whose calls wait for a person.
type parking struct {
	t *testing.T
	g *gateway.Gateway
}

func park(t *testing.T, home string) parking {
	t.Helper()
	env := map[string]string{"HOME": home, gateway.KeychainVariable: "off"}
	g, err := gateway.Open(t.Context(), gateway.Config{
		Dir: filepath.Join(home, "project"), Guards: []deck.Guard{asksAlways{}},
		LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return parking{t, g}
}

// call calls a card. What comes of it comes when a person has answered.
func (p parking) call(arguments string) <-chan error {
	done := make(chan error, 1)
	caller := p.g.Owner()
	caller.Session = "s1"
	var calling sync.WaitGroup
	calling.Go(func() {
		_, err := p.g.Deck().Call(p.t.Context(), drawbridge.Call{
			Caller: caller, Params: json.RawMessage(`{"name":"drawbridge_tools","arguments":` + arguments + `}`),
		})
		done <- err
	})
	return done
}

// waiting waits until a call waits, and returns its ID.
func (d *desk) waiting() string {
	d.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		out, _ := d.run(0, "ask", "--json")
		var all []struct{ ID string }
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			d.t.Fatal(err)
		}
		if len(all) > 0 {
			return all[0].ID
		}
		select {
		case <-tick.C:
		case <-d.t.Context().Done():
			d.t.Fatal("no call waits")
		}
	}
}

func TestAPersonAnswersCalls(t *testing.T) {
	d := newDesk(t)
	p := park(t, d.home)
	done := p.call(`{"query":"a\u202e\ufe0fb","server":"x","server":"y\n\\u0041"}`)
	id := d.waiting()
	out, _ := d.run(0, "ask", "show", id)
	shown := regexp.MustCompile(`(?m)(until |sha256:).*$`).ReplaceAllString(strings.ReplaceAll(out, id, "ID"), "${1}…")
	shown = regexp.MustCompile(`caller .*`).ReplaceAllString(shown, "caller …")
	want := `ID  tools/call drawbridge_tools
  caller …
  why        it looks around\u202e (policy 1)
  waits      until …
  definition sha256:…
  arguments  sha256:…
  {
    "query": "a\u202e\ufe0fb",
    "server" (duplicate key: the server may read either value): "x",
    "server" (duplicate key: the server may read either value): "y\n\\u0041"
  }
`
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("show (-want +got):\n%s", diff)
	}
	out, _ = d.run(0, "ask")
	if !regexp.MustCompile(`(?m)^` + id +
		` +\S+ +drawbridge_tools +\{ "query": "a\\u202e\\ufe0fb", "server" \(duplicate key: the server may read either value\): "x", "server" \(duplicate key: .*\): "y\\n\\\\u0041" \} +it looks around\\u202e \(policy 1\) +\d+m\d*`).MatchString(out) {
		t.Errorf("list:\n%s", out)
	}
	for _, flags := range [][]string{{"--any-arguments"}, {"--always-this", "--session"}, {"--for", "0s"},
		{"--for", "-1m"}} {
		d.run(2, append([]string{"ask", "allow", id}, flags...)...)
	}
	d.run(0, "ask", "deny", id)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "a person said no") {
		t.Errorf("denied: %v", err)
	}
	d.run(1, "ask", "allow", id)

	done = p.call(`{}`)
	out, _ = d.run(0, "ask", "allow", d.waiting(), "--session", "--any-arguments")
	if err := <-done; err != nil || !strings.HasPrefix(out, "Allowed ") {
		t.Errorf("allowed: %v, %s", err, out)
	}
	if err := <-p.call(`{"query":"x"}`); err != nil {
		t.Errorf("the same card in the same session: %v", err)
	}
	out, _ = d.run(0, "ask", "grants")
	found := regexp.MustCompile(
		`(?m)^(\S+) +\S+ +drawbridge_tools +any arguments +until \S+ \S+, in its session +1$`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("grants:\n%s", out)
	}
	d.run(0, "ask", "revoke", found[1])
	d.run(1, "ask", "revoke", found[1])
	done = p.call(`{"query":"x"}`)
	d.run(0, "ask", "allow", d.waiting())
	if err := <-done; err != nil {
		t.Error(err)
	}
	done = p.call(`{"query":"--password=hunter2"}`)
	d.run(0, "ask", "allow", d.waiting(), "--for", "1h")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if out, _ := d.run(0, "ask", "grants", "--json"); strings.Contains(out, "hunter2") || !strings.Contains(out,
		"--password=[redacted]") {
		t.Errorf("kept of a grant: %s", out)
	}
}

func TestAPersonWatches(t *testing.T) {
	dir := t.TempDir()
	c := atTerminal(t, dir, "ask", "--watch")
	c.see("Calls that wait for your approval appear here.")
	p := park(t, filepath.Join(dir, "home"))
	const question = "Allow this call once?"
	for said, want := range map[string]string{"y": "", "n": "a person said no"} {
		if _, err := c.tty.WriteString("y\r"); err != nil { // before there is anything to see, so that it says nothing
			t.Fatal(err)
		}
		done := p.call(`{"query":"` + said + `"}`)
		c.see(`"query": "` + said + `"`)
		c.answer(question, "what")
		c.answer(question, said)
		switch err := <-done; {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", said, err)
		}
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	c.ends()
}

// A call that is over makes room for the next one, and what was typed for it is no answer to that.
func TestAPersonWatchesACallThatIsOver(t *testing.T) {
	dir := t.TempDir()
	d := newDesk(t)
	d.env["HOME"] = filepath.Join(dir, "home")
	c := atTerminal(t, dir, "ask", "--watch")
	c.see("Calls that wait for your approval appear here.")
	p := park(t, filepath.Join(dir, "home"))
	const question = "Allow this call once?"

	first := p.call(`{"query":"first"}`)
	c.see(question)
	if _, err := c.tty.WriteString("y"); err != nil {
		t.Fatal(err)
	}
	c.see("waiting] y")
	d.run(0, "ask", "deny", d.waiting())
	if err := <-first; err == nil {
		t.Error("the first call was let through")
	}
	c.see("The call no longer waits")

	second := p.call(`{"query":"second"}`)
	c.see(`"query": "second"`)
	c.answer(question, "")
	third := p.call(`{"query":"third"}`)
	c.see(`"query": "third"`)
	c.answer(question, "y")
	if err := <-third; err != nil {
		t.Errorf("the third call: %v", err)
	}
	d.run(0, "ask", "deny", d.waiting())
	if err := <-second; err == nil || !strings.Contains(err.Error(), "a person said no") {
		t.Errorf("the second call: %v", err)
	}

	p.call(`{"query":"fourth"}`)
	c.see(question)
	if _, err := c.tty.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	screen, code := c.ends()
	if code != 0 || strings.Contains(screen, "EOF") {
		t.Errorf("Ctrl-C at a question: exit code %d\n%s", code, screen)
	}
	d.run(0, "ask", "deny", d.waiting())
}
