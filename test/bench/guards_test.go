//go:build bench

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unguarded turns off what a person can turn off.
const unguarded = `
[audit]
enabled = false

[mcp.shield]
enabled = false

[tools]
max_identical_errors = "unlimited"
`

// guarded turns on all that settings can, with numbers that no call here comes to.
func guarded() string {
	var b strings.Builder
	b.WriteString(`
[audit]
enabled = true

[mcp.shield]
enabled = true

[tools]
max_identical_calls = 10000000

[tools.policy]
default_effect = "allow"
`)
	for n := range 18 {
		fmt.Fprintf(&b, "\n[[tools.policy.rules]]\neffect = \"deny\"\nservers = [\"server%d\"]\ntools = [\"delete_*\", \"drop_*\"]\n", n)
	}
	b.WriteString(`
[[tools.policy.rules]]
effect = "deny"
paths = ["/etc/**", "~/.ssh/**"]

[[tools.policy.rules]]
effect = "deny"
when = 'has(args.text) && args.text.startsWith("rm ") && caller.principal != "root"'
`)
	return b.String()
}

// guards is what a call costs more for the guards: those that are on by default; rules and counts beside them, which
// somebody wrote; and fences, which clients ask for: around an answer that was given before, as those of polls are,
// and around a word and a sentence that are new with each call. It is the same program with other settings, once with
// all turned off.
func guards(t *testing.T) []line {
	yes, up := true, onStdio("up", self(t))
	open := func(name, settings string, row server, http bool) contender {
		config, store := configure(t, row)
		settle := filepath.Join(filepath.Dir(config), "drawbridge", "drawbridge.toml")
		if err := os.MkdirAll(filepath.Dir(settle), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(settle, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		c := contender{name: name, request: small("up__")}
		if http {
			c.clients = []client{connect(t, start(t, serve(config, store, "--http", "127.0.0.1:0")).url(t))}
		} else {
			c.clients = []client{start(t, serve(config, store)).stdio()}
		}
		mounted(t, c.clients[0], c.request)
		return c
	}
	paced := up
	paced.Pace = 10_000_000
	fenced := paced
	fenced.Fence = &yes
	var table []line
	for _, door := range []string{"stdio", "HTTP"} {
		http := door == "HTTP"
		off := open("off", unguarded, up, http)
		usual := open("the guards that nobody turned off", "", up, http)
		ruled := open("20 rules, a pace and a count beside them", guarded(), paced, http)
		all := open("these and fences", guarded(), fenced, http)
		// a process of its own: one that is called twice as often is faster
		words := open("the same around a word that is new with each call", guarded(), fenced, http)
		words.fresh = freshWords("up__")
		spoken := open("the same around a sentence that is new with each call", guarded(), fenced, http)
		spoken.fresh = freshSentences("up__")
		p50 := alternating(t, rounds(), calls(500), &off, &usual, &ruled, &all, &words, &spoken)
		for _, c := range []contender{usual, ruled, all, words, spoken} {
			table = append(table, line{
				what:    fmt.Sprintf("64-byte call, %s → stdio, %s ÷ off", door, c.name),
				subject: fmt.Sprintf("on %.0f µs", median(p50[c.name])), control: fmt.Sprintf("off %.0f µs",
					median(p50[off.name])),
				value: ratio(p50[c.name], p50[off.name]), bar: 1.10,
			})
		}
	}
	return timed(table)
}
