package asks

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// page is all of a call that a person decides on.
func page(p pending) string {
	var b strings.Builder
	c := p.Call
	fmt.Fprintf(&b, "%s  %s %s\n", p.ID, visible(c.Method), visible(c.Card))
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", name, value)
		}
	}
	if c.Server != "" {
		row("server", visible(c.Server)+", tool "+visible(c.Tool))
	}
	caller := visible(c.Caller) + " (" + visible(c.Kind) + ")"
	if c.Door != "" {
		caller += ", by " + visible(c.Door)
	}
	if c.Client != "" {
		caller += ", says that it is " + visible(c.Client)
	}
	row("caller", caller)
	row("why", visible(why(c)))
	row("waits", "until "+manners.LocalTime(p.Until))
	row("definition", "sha256:"+visible(c.Definition))
	row("arguments", "sha256:"+visible(c.Digest))
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
			b.WriteString(quoted(name))
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
		b.WriteString(quoted(text))
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
	return plain(strings.Join(strings.Fields(b.String()), " "), most)
}

// plain is a text on one line, cut to so many characters.
func plain(text string, most int) string {
	text = visible(text)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// quoted is a text between quotes, in which what would end it is marked.
func quoted(text string) string {
	return `"` + visible(strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(text)) + `"`
}

// visible shows a text so that no character of it does anything or hides: those that are not to be seen become \u and their
// number.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == ' ' || unicode.IsPrint(r) && !hides(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// hides says whether a character that counts as one to be printed leaves no mark: fillers, selectors, what is to be ignored
// or stands for what could not be read.
func hides(r rune) bool {
	return unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || r == utf8.RuneError || r == '\u2800'
}
