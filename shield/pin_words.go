package shield

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// A Run is a piece of two texts, one after the other in their order.
type Run struct {
	// Op is ' ' for what both have, '-' for what only the earlier one has, '+' for what only the later one has.
	Op byte
	// Text has nothing in it that cannot be seen: such a character is written as its code point, as "\u200b" or "\U000e0041".
	Text string
}

// Words gives what differs between two texts, word by word. A character that cannot be seen is a word of its own.
func Words(before, after string) []Run {
	was, is := tokens(before), tokens(after)
	var runs []Run
	add := func(op byte, words []string) {
		if len(words) > 0 {
			runs = append(runs, Run{op, visible(strings.Join(words, ""))})
		}
	}
	at := 0
	for _, d := range lcs.DiffLines(was, is) {
		add(' ', was[at:d.Start])
		add('-', was[d.Start:d.End])
		add('+', is[d.ReplStart:d.ReplEnd])
		at = d.End
	}
	add(' ', was[at:])
	return runs
}

// tokens cuts a text into words, stretches of blanks, and single other characters.
func tokens(text string) (all []string) {
	kind := func(r rune) int {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == '_':
			return 1
		case r == ' ' || r == '\n' || r == '\t':
			return 2
		}
		return 0
	}
	for len(text) > 0 {
		r, end := utf8.DecodeRuneInString(text)
		for k := kind(r); k != 0 && end < len(text); {
			next, size := utf8.DecodeRuneInString(text[end:])
			if kind(next) != k || !shows(next) && k == 1 {
				break
			}
			end += size
		}
		all, text = append(all, text[:end]), text[end:]
	}
	return all
}

// shows says whether a character can be seen where it stands. Variation selectors and fillers are letters and marks to Unicode.
func shows(r rune) bool {
	switch {
	case r == utf8.RuneError, r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0000, r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, r == 0x034F,
		r == 0x17B4, r == 0x17B5, r == 0x2800, r >= 0x180B && r <= 0x180F:
		return false
	case r == ' ':
		return true
	}
	return unicode.IsPrint(r)
}

// visible writes the characters of a text that cannot be seen as their code points.
func visible(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[i])|0x100, 16)[1:])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case shows(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteString(codePoint(r))
		}
	}
	return b.String()
}

// codePoint writes a character as JSON may: by its code units.
func codePoint(r rune) string {
	const hex = "0123456789abcdef"
	unit := func(u rune) string {
		return `\u` + string([]byte{hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15]})
	}
	if r < 0x10000 {
		return unit(r)
	}
	r -= 0x10000
	return unit(0xD800+r>>10) + unit(0xDC00+r&0x3FF)
}

// Words gives what differs between the values before and after, as texts where both are.
func (c Change) Words() []Run { return Words(value(c.Before), value(c.After)) }

// value is the text that a JSON value is, or the JSON itself.
func value(raw string) string {
	var text string
	if json.Unmarshal([]byte(raw), &text) == nil && raw != "null" {
		return text
	}
	return raw
}

// Kind says to people what kind of change it is: "cosmetic", "wording", "wider schema", "narrower schema", "another schema",
// "new address", "new instruction", "annotation flipped" or "annotation".
func (c Change) Kind() string {
	switch c.Class {
	case "address", "instruction":
		return "new " + c.Class
	case "annotation":
		if c.Risk == Low {
			return c.Class
		}
		return "annotation flipped"
	case "schema":
		switch n := c.widens(); {
		case n > 0:
			return "wider schema"
		case n < 0:
			return "narrower schema"
		}
		return "another schema"
	}
	return c.Class
}

// MarshalJSON gives the members of a change, and its Kind.
func (c Change) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Path   string `json:"path"`
		Class  string `json:"class"`
		Risk   Risk   `json:"risk"`
		Kind   string `json:"kind"`
		Before string `json:"before,omitempty"`
		After  string `json:"after,omitempty"`
	}{c.Path, c.Class, c.Risk, c.Kind(), c.Before, c.After})
}

// widens says whether a schema takes more after the change (1), less (-1), or whether that is not known (0).
func (c Change) widens() int {
	if !strings.Contains(c.Path, "Schema/") {
		return 0
	}
	parts := strings.Split(c.Path, "/")
	last, in := parts[len(parts)-1], parts[len(parts)-2]
	// more is what a new member of that name means, and the opposite of what one that is gone does.
	more := 0
	switch {
	case in == "required":
		more = -1
	case in == "enum" || in == "type" || strings.Contains(c.Path, "/properties/") && last != "description":
		more = 1
	}
	switch last {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "format",
		"const", "multipleOf", "uniqueItems", "additionalProperties":
		more = -1
	}
	switch {
	case c.Before == "":
		return more
	case c.After == "":
		return -more
	}
	return looser(last, c.Before, c.After)
}

// looser compares two values of a keyword that bounds what a schema takes.
func looser(keyword, before, after string) int {
	if keyword == "additionalProperties" {
		switch {
		case before == "false":
			return 1
		case after == "false":
			return -1
		}
		return 0
	}
	was, err := strconv.ParseFloat(before, 64)
	is, err2 := strconv.ParseFloat(after, 64)
	if err != nil || err2 != nil || was == is {
		return 0
	}
	switch keyword {
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems":
		if is > was {
			return 1
		}
		return -1
	case "minimum", "exclusiveMinimum", "minLength", "minItems":
		if is < was {
			return 1
		}
		return -1
	}
	return 0
}

// Worst gives the change that matters most: of the highest risk, and of these the one that says most of it by its class, an
// instruction before all others. Nil where nothing changed.
func (c Comparison) Worst() *Change {
	classes := []string{"instruction", "address", "annotation", "schema", "wording", "cosmetic"}
	var worst *Change
	for i := range c.Changes {
		one := &c.Changes[i]
		if worst == nil || one.Risk < worst.Risk || one.Risk == worst.Risk && slices.Index(classes, one.Class) < slices.Index(classes, worst.Class) {
			worst = one
		}
	}
	return worst
}
