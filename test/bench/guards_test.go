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
	paced := up
	paced.Pace = 10_000_000
	fenced := paced
	fenced.Fence = &yes
	var table []line
	for _, door := range []string{"stdio", "HTTP"} {
		http := door == "HTTP"
		off := settled(t, "off", unguarded, up, http)
		usual := settled(t, "the guards that nobody turned off", "", up, http)
		ruled := settled(t, "20 rules, a pace and a count beside them", guarded(), paced, http)
		all := settled(t, "these and fences", guarded(), fenced, http)
		// a process of its own: one that is called twice as often is faster
		words := settled(t, "the same around a word that is new with each call", guarded(), fenced, http)
		words.fresh = freshWords("up__")
		spoken := settled(t, "the same around a sentence that is new with each call", guarded(), fenced, http)
		spoken.fresh = freshSentences("up__")
		control := control(t, http)
		r := alternating(t, rounds(), calls(500), &off, &usual, &ruled, &all, &words, &spoken, &control)
		for _, c := range []contender{usual, ruled, all, words, spoken} {
			l := r.ratio(fmt.Sprintf("64-byte call, %s → stdio, %s ÷ off", door, c.name), &c, &off, 1.10)
			l.subject = fmt.Sprintf("on %.0f µs", median(r.of(&c).p50))
			table = append(table, l)
		}
	}
	return held(table)
}

// settled is Drawbridge with settings, in front of a server.
func settled(t *testing.T, name, settings string, row server, http bool) contender {
	t.Helper()
	config, store := configure(t, row)
	settle(t, config, settings)
	a := arena{t, 1, false, small}
	if http {
		return a.listening(name, start(t, serve(config, store, "--http", "127.0.0.1:0")), "up__")
	}
	return a.child(name, start(t, serve(config, store)), "up__")
}

// settle writes the settings file beside a configuration.
func settle(t *testing.T, config, settings string) {
	t.Helper()
	file := filepath.Join(filepath.Dir(config), "drawbridge", "drawbridge.toml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
}

// control is the control for calls by HTTP, or on pipes.
func control(t *testing.T, http bool) contender {
	t.Helper()
	a := arena{t, 1, false, small}
	if http {
		url := start(t, role(t, "upstream", "http")).url(t)
		return a.listening(reverseProxy, start(t, role(t, "reverse", url)), "")
	}
	return a.child(relayHands, start(t, role(t, "relay", "hands", self(t))), "")
}
