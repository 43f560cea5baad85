package shield

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A DiffRun is a sequence of words in a comparison of two texts.
type DiffRun struct {
	// Op is ' ' for text in both texts, '-' for text in the earlier text only, and '+' for text in the later text only.
	Op byte
	// Text is printable: an invisible character is written as its code point, such as "\u200b" or "\U000e0041".
	Text string
}

// DiffWords compares two texts word by word. An invisible character counts as a separate word.
func DiffWords(before, after string) []DiffRun {
	was, is := diffTokens(before), diffTokens(after)
	var runs []DiffRun
	add := func(op byte, words []string) {
		if len(words) > 0 {
			runs = append(runs, DiffRun{op, safetext.Exact(strings.Join(words, ""))})
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

// diffTokens splits a text into words, runs of white space, and single other characters.
func diffTokens(text string) (all []string) {
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
			if kind(next) != k || !safetext.Visible(next) && k == 1 {
				break
			}
			end += size
		}
		all, text = append(all, text[:end]), text[end:]
	}
	return all
}

// DiffWords compares the values before and after the change word by word. JSON strings are compared as texts.
func (c DefinitionChange) DiffWords() []DiffRun {
	return DiffWords(jsonText(c.Before), jsonText(c.After))
}

// jsonText returns the text of a JSON string, or any other JSON unchanged.
func jsonText(raw string) string {
	var text string
	if json.Unmarshal([]byte(raw), &text) == nil && raw != "null" {
		return text
	}
	return raw
}

// Description returns a description of the change for people: "cosmetic", "wording", "wider schema", "narrower schema",
// "another schema", "new address", "new instruction", "annotation flipped" or "annotation".
func (c DefinitionChange) Description() string {
	switch c.Class {
	case "address", "instruction":
		return "new " + c.Class
	case "annotation":
		if c.Risk == RiskLow {
			return c.Class
		}
		return "annotation flipped"
	case "schema":
		switch n := c.wideningOf(); {
		case n > 0:
			return "wider schema"
		case n < 0:
			return "narrower schema"
		}
		return "another schema"
	}
	return c.Class
}

// MarshalJSON encodes the change with its Description as the member "kind".
func (c DefinitionChange) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Path   string     `json:"path"`
		Class  string     `json:"class"`
		Risk   ChangeRisk `json:"risk"`
		Kind   string     `json:"kind"`
		Before string     `json:"before,omitempty"`
		After  string     `json:"after,omitempty"`
	}{c.Path, c.Class, c.Risk, c.Description(), c.Before, c.After})
}

// wideningOf returns 1 if a schema accepts more values after the change, -1 if it accepts fewer, and 0 if this is
// unknown.
func (c DefinitionChange) wideningOf() int {
	if !strings.Contains(c.Path, "Schema/") {
		return 0
	}
	parts := strings.Split(c.Path, "/")
	last, in := parts[len(parts)-1], parts[len(parts)-2]
	// more is the result for adding the member. Removing the member has the opposite result.
	more := 0
	switch {
	case in == "required":
		more = -1
	case in == "enum" || in == "type" || strings.Contains(c.Path, "/properties/") && last != "description":
		more = 1
	}
	switch last {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems",
		"pattern", "format",
		"const", "multipleOf", "uniqueItems", "additionalProperties":
		more = -1
	}
	switch {
	case c.Before == "":
		return more
	case c.After == "":
		return -more
	}
	return compareBounds(last, c.Before, c.After)
}

// compareBounds compares the old and new value of a schema keyword that limits the accepted values. Its result has the
// meaning of wideningOf's result.
func compareBounds(keyword, before, after string) int {
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

// WorstChange returns the change with the highest risk. Among changes of equal risk, the class decides: first
// instruction, then address, annotation, schema, wording and cosmetic. It returns nil if there are no changes.
func (c Comparison) WorstChange() *DefinitionChange {
	classes := []string{"instruction", "address", "annotation", "schema", "wording", "cosmetic"}
	var worst *DefinitionChange
	for i := range c.Changes {
		one := &c.Changes[i]
		if worst == nil || one.Risk < worst.Risk || one.Risk == worst.Risk &&
			slices.Index(classes, one.Class) < slices.Index(classes, worst.Class) {
			worst = one
		}
	}
	return worst
}
