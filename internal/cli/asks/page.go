package asks

import (
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// page is all of a call that a person decides on.
func page(p pending) string {
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
		caller += ", says that it is " + safetext.Exact(c.Client)
	}
	row("caller", caller)
	row("why", safetext.Exact(why(c)))
	row("waits", "until "+manners.LocalTime(p.Until))
	row("definition", "sha256:"+safetext.Exact(c.Definition))
	row("arguments", "sha256:"+safetext.Exact(c.Digest))
	b.WriteString("  ")
	writeValue(&b, c.Arguments, "  ")
	b.WriteByte('\n')
	return b.String()
}

// writeValue writes JSON for a person: indented, in its own order, each text as it is read and not as it was written.
func writeValue(b *strings.Builder, value json.RawMessage, indent string) {
	if len(value) == 0 {
		return
	}
	switch value[0] {
	case '{':
		names := map[string]int{}
		for m := range wire.Members(value) {
			name, _ := wire.Text(m.Name)
			names[name]++
		}
		b.WriteString("{")
		first := true
		for m := range wire.Members(value) {
			name, _ := wire.Text(m.Name)
			next(b, &first, indent)
			b.WriteString(safetext.Quote(name))
			if names[name] > 1 {
				b.WriteString(" (a name that is there twice: the server may take either)")
			}
			b.WriteString(": ")
			writeValue(b, m.Value, indent+"  ")
		}
		end(b, first, indent, '}')
	case '[':
		b.WriteString("[")
		first := true
		for element := range wire.Elements(value) {
			next(b, &first, indent)
			writeValue(b, element, indent+"  ")
		}
		end(b, first, indent, ']')
	case '"':
		text, _ := wire.Text(value)
		b.WriteString(safetext.Quote(text))
	default:
		b.Write(value)
	}
}

func next(b *strings.Builder, first *bool, indent string) {
	if !*first {
		b.WriteByte(',')
	}
	*first = false
	b.WriteString("\n" + indent + "  ")
}

func end(b *strings.Builder, empty bool, indent string, bracket byte) {
	if !empty {
		b.WriteString("\n" + indent)
	}
	b.WriteByte(bracket)
}

// line is JSON on one line, cut to so many characters.
func line(value json.RawMessage, most int) string {
	var b strings.Builder
	writeValue(&b, value, "")
	return safetext.Truncate(strings.Join(strings.Fields(b.String()), " "), most, safetext.Runes, "…")
}

// plain is a text on one line, cut to so many characters.
func plain(text string, most int) string {
	return safetext.Truncate(safetext.Exact(text), most, safetext.Runes, "…")
}
