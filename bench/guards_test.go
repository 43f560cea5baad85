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

// guarded turns on all there is, with numbers that no call here comes to.
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

// guards is what a call costs more for the guards together, those that are on by default and all there are: the same program
// with other settings, once with everything turned off.
func guards(t *testing.T) []line {
	yes, up := true, onStdio("up", self(t))
	open := func(settings string, row server, http bool) contender {
		config, store := configure(t, row)
		settle := filepath.Join(filepath.Dir(config), "drawbridge", "drawbridge.toml")
		if err := os.MkdirAll(filepath.Dir(settle), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(settle, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		c := contender{request: small("up__")}
		if http {
			c.clients = []client{connect(t, start(t, serve(config, store, "--http", "127.0.0.1:0")).url(t))}
		} else {
			c.clients = []client{start(t, serve(config, store)).stdio()}
		}
		mounted(t, c.clients[0], c.request)
		return c
	}
	all := up
	all.Fence, all.Pace = &yes, 10_000_000
	var table []line
	for _, door := range []string{"stdio", "HTTP"} {
		off, usual, on := open(unguarded, up, door == "HTTP"), open("", up, door == "HTTP"), open(guarded(), all, door == "HTTP")
		off.name, usual.name, on.name = "off", "usual", "on"
		p50 := alternating(t, rounds(), calls(500), &off, &usual, &on)
		for _, c := range []struct{ what, name string }{{"the guards that nobody turned off", usual.name}, {"all guards on", on.name}} {
			table = append(table, line{
				what:    fmt.Sprintf("64-byte call, %s → stdio, %s ÷ off", door, c.what),
				subject: fmt.Sprintf("on %.0f µs", median(p50[c.name])), control: fmt.Sprintf("off %.0f µs", median(p50[off.name])),
				value: ratio(p50[c.name], p50[off.name]), bar: 1.10,
			})
		}
	}
	return timed(table)
}
