package cli

import (
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// writeScriptEffects writes the table of the collected calls of a script, with all arguments, and then the script with
// line numbers. It writes nothing for a single call.
func writeScriptEffects(b *strings.Builder, c gateway.ApprovalDetails) {
	if len(c.Effects) == 0 {
		return
	}
	safetext.Fprintf(b, "\n  The script makes %s of %s, in the order of their numbers:\n", formatCount(c.CallCount(), "call"),
		formatCount(len(c.Effects), "tool"))
	for _, e := range c.Effects {
		writeScriptEffect(b, e)
	}
	b.WriteString("\n  The script:\n")
	for i, line := range strings.Split(strings.TrimRight(c.Script, "\n"), "\n") {
		safetext.Fprintf(b, "  %4d  %s\n", i+1, safetext.Exact(line))
	}
}

// writeScriptEffect writes the calls of one tool: first the arguments that are the same in all calls, then each call
// with the others.
func writeScriptEffect(b *strings.Builder, e gateway.ScriptEffect) {
	row := func(name, value string) { safetext.Fprintf(b, "    %-10s %s\n", name, value) }
	safetext.Fprintf(b, "\n  %s: %s\n", safetext.Exact(e.Card), formatCount(len(e.Calls), "call"))
	if e.Server != "" {
		row("server", safetext.Exact(e.Server)+", tool "+safetext.Exact(e.Tool))
	}
	row("definition", "sha256:"+safetext.Exact(e.Definition))
	row("before", formatEarlierCalls(e))
	if e.Pattern != nil {
		row("--count", "would allow "+e.Pattern.String())
	} else {
		row("--count", "is not possible: servers may read the arguments in different ways")
	}
	if e.Constant != nil {
		b.WriteString("    in all     ")
		writeReadableJSON(b, e.Constant, "    ")
		b.WriteByte('\n')
	}
	for _, call := range e.Calls {
		fmt.Fprintf(b, "  %6d ", call.Number)
		if call.Line > 0 {
			fmt.Fprintf(b, " line %d", call.Line)
		}
		if e.Constant == nil || len(call.Arguments) > len("{}") {
			b.WriteByte(' ')
			writeReadableJSON(b, call.Arguments, "          ")
		}
		b.WriteByte('\n')
	}
}

// formatEarlierCalls returns how many calls of the tool the script was allowed before: in this run, and by each grant
// with a count.
func formatEarlierCalls(e gateway.ScriptEffect) string {
	text := formatCount(e.Earlier, "call") + " in this run"
	for _, g := range e.Grants {
		text += fmt.Sprintf("; %d of %d by the grant %s", g.Uses, g.Max, safetext.Exact(g.ID))
	}
	return text
}
