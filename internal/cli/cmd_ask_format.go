package cli

import (
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// formatPendingCall returns the text that a person reads before a decision on a call. It contains the name, caller,
// reason, time limit, hashes and arguments of the call.
func formatPendingCall(p admin.PendingCall) string {
	var b strings.Builder
	c := p.Call
	safetext.Fprintf(&b, "%s  %s %s\n", p.ID, safetext.Exact(c.Method), safetext.Exact(c.Card))
	row := func(name, value string) {
		if value != "" {
			safetext.Fprintf(&b, "  %-10s %s\n", name, value)
		}
	}
	if c.Server != "" {
		row("server", safetext.Exact(c.Server)+", tool "+safetext.Exact(c.Tool))
	}
	caller := safetext.Exact(c.Caller) + " (" + safetext.Exact(c.Kind) + ")"
	if c.Door != "" {
		caller += ", by " + safetext.Exact(c.Door)
	}
	if c.Client != "" {
		caller += ", client name " + safetext.Exact(c.Client)
	}
	row("caller", caller)
	if why := flow.ReasonLines(c.Reason); len(why) > 1 {
		row("rule", safetext.Exact(c.Rule))
		for i, line := range why {
			row([]string{"why", ""}[min(i, 1)], safetext.Exact(line))
		}
	} else {
		row("why", safetext.Exact(approvalReason(c)))
	}
	row("waits", "until "+formatLocalTime(p.Until))
	row("definition", "sha256:"+safetext.Exact(c.Definition))
	row("arguments", "sha256:"+safetext.Exact(c.Digest))
	b.WriteString("  ")
	writeReadableJSON(&b, c.Arguments, "  ")
	b.WriteByte('\n')
	writeScriptEffects(&b, c)
	return b.String()
}

// writeReadableJSON writes JSON for a person: indented, with members in their original order and with decoded strings.
// It marks duplicate keys, because the server may use either value.
func writeReadableJSON(b *strings.Builder, value json.RawMessage, indent string) {
	if len(value) == 0 {
		return
	}
	switch value[0] {
	case '{':
		names := map[string]int{}
		for m := range rawjson.Members(value) {
			name, _ := rawjson.DecodeString(m.Name)
			names[name]++
		}
		b.WriteString("{")
		first := true
		for m := range rawjson.Members(value) {
			name, _ := rawjson.DecodeString(m.Name)
			writeElementStart(b, &first, indent)
			b.WriteString(safetext.Quote(name))
			if names[name] > 1 {
				b.WriteString(" (duplicate key: the server may read either value)")
			}
			b.WriteString(": ")
			writeReadableJSON(b, m.Value, indent+"  ")
		}
		writeClosingBracket(b, first, indent, '}')
	case '[':
		b.WriteString("[")
		first := true
		for element := range rawjson.Elements(value) {
			writeElementStart(b, &first, indent)
			writeReadableJSON(b, element, indent+"  ")
		}
		writeClosingBracket(b, first, indent, ']')
	case '"':
		text, _ := rawjson.DecodeString(value)
		b.WriteString(safetext.Quote(text))
	default:
		b.Write(value)
	}
}

func writeElementStart(b *strings.Builder, first *bool, indent string) {
	if !*first {
		b.WriteByte(',')
	}
	*first = false
	b.WriteString("\n" + indent + "  ")
}

func writeClosingBracket(b *strings.Builder, empty bool, indent string, bracket byte) {
	if !empty {
		b.WriteString("\n" + indent)
	}
	b.WriteByte(bracket)
}

// formatJSONLine returns readable JSON on one line, with at most the given number of characters.
func formatJSONLine(value json.RawMessage, most int) string {
	var b strings.Builder
	writeReadableJSON(&b, value, "")
	return safetext.Truncate(strings.Join(strings.Fields(b.String()), " "), most, safetext.Runes, "…")
}

// truncateEscaped returns a text on one line, with invisible characters escaped, and with at most the given number of
// characters.
func truncateEscaped(text string, most int) string {
	return safetext.Truncate(safetext.Exact(text), most, safetext.Runes, "…")
}
