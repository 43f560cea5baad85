package policy

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// BenchmarkFastExpression decides one call by a typical set of rules, with and without the short cut around CEL.
func BenchmarkFastExpression(b *testing.B) {
	for _, fast := range []bool{true, false} {
		name := "cel"
		if fast {
			name = "fast"
		}
		b.Run(name, func(b *testing.B) {
			p := compiled(b, allow,
				drawbridge.Rule{Effect: deny, Servers: []string{"db"}, Tools: []string{"drop_*"}},
				drawbridge.Rule{Effect: deny, Paths: []string{"/etc/**"}},
				drawbridge.Rule{Effect: deny,
					When: `has(args.path) && args.path.startsWith("/etc") && caller.principal != "root"`},
				drawbridge.Rule{Effect: deny, When: `server == "fs" && tool == "delete_file"`})
			for i := range p.rules {
				if e := p.rules[i].when; e != nil && !fast {
					e.fast = nil
				}
			}
			q := call("fs", "read_file", `{"path":"/home/ada/src/main.go","head":20}`)
			b.ReportAllocs()
			for b.Loop() {
				if d := p.Decide(q); d.Effect != allow {
					b.Fatal(d)
				}
			}
		})
	}
}
