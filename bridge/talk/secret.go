package talk

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge/wire"
	"golang.org/x/text/unicode/norm"
)

// sensitive gives the fields of a form that ask for secrets: by what they are called, what is said of them, or how they are to be typed; and
// where the form itself asks for one, all of its fields that take a text, or its numbers where it has no such.
func sensitive(params json.RawMessage) (names []string) {
	form := wire.Get(params, "requestedSchema")
	told := strings.Join([]string{textOf(params, "message"), textOf(form, "title"), textOf(form, "description")}, ".\n")
	fields := fieldsOf(form)
	asked, here := asksSecret(told), settingOf(told)
	texts := slices.ContainsFunc(fields, field.takesText)
	here.paired = slices.ContainsFunc(fields, func(f field) bool { return strings.EqualFold(f.name, "value") })
	seen := map[string]bool{} // a form may have very many
	for i, f := range fields {
		wanted := i >= mostFields || asked && (f.takesText() || !texts && f.takesNumber())
		if !seen[f.name] && (wanted || f.hidden() || f.soundsSecret(here)) {
			names, seen[f.name] = append(names, f.name), true
		}
	}
	return names
}

// mostFields is how many fields of a form are judged. No honest form has more, and all that are more are marked.
const mostFields = 4096

// mostText is how many bytes of a text are read: what is longer is cut before a person sees it.
const mostText = 64 << 10

// textOf gives a text of an object, as much of it as is read.
func textOf(object json.RawMessage, member string) string {
	text := wire.GetText(object, member)
	return text[:min(len(text), mostText)]
}

// A field is one property of a form.
type field struct {
	name, title, description string
	schema                   json.RawMessage
}

func fieldsOf(form json.RawMessage) (all []field) {
	for m := range wire.Members(wire.Get(form, "properties")) {
		name, _ := wire.Text(m.Name)
		all = append(all, field{name, textOf(m.Value, "title"), textOf(m.Value, "description"), m.Value})
	}
	return all
}

// takesText says whether a person may type what they like. What has no type may be a text.
func (f field) takesText() bool {
	for _, bound := range []string{"enum", "oneOf", "anyOf", "const"} {
		if wire.Get(f.schema, bound) != nil {
			return false
		}
	}
	switch wire.GetText(f.schema, "format") {
	case "email", "date", "date-time":
		return false
	}
	return f.is("string") || wire.Get(f.schema, "type") == nil
}

// takesNumber says whether a person may type a number, as many a PIN is.
func (f field) takesNumber() bool { return f.is("integer") || f.is("number") }

// is says whether a field may have values of a type.
func (f field) is(kind string) bool {
	types := wire.Get(f.schema, "type")
	if text, ok := wire.Text(types); ok {
		return text == kind
	}
	for one := range wire.Elements(types) {
		if text, _ := wire.Text(one); text == kind {
			return true
		}
	}
	return false
}

// hidden says whether what is typed is not to be shown again, which is how forms of the web know secrets.
func (f field) hidden() bool {
	return strings.EqualFold(wire.GetText(f.schema, "format"), "password") || string(wire.Get(f.schema, "writeOnly")) == "true"
}

// soundsSecret says whether a field is called like a secret, or said to be one. A yes or no is none.
func (f field) soundsSecret(here setting) bool {
	if wire.GetText(f.schema, "type") == "boolean" {
		return false
	}
	called := func(by string) bool {
		by = spaced(by)
		return soundsSecret(by) && !here.harmless(by, func() setting { return settingOf(f.name + " " + f.title + " " + f.description) })
	}
	return called(f.name) || called(f.title) || asksForIt(f.description)
}

// A setting is what is said around a field by which a single word with two meanings is that of no secret: a key, where there is a value beside
// it too; a cookie; a pin.
type setting struct{ mapped, baked, pinned, paired bool }

// settingOf reads a text for words that belong to such.
func settingOf(text string) setting {
	all := strings.Fields(spaced(text))
	return setting{mapped: hasWord(all, mapped), baked: hasWord(all, baked), pinned: hasWord(all, pinned)}
}

var (
	mapped = strings.Fields("map dictionary entry pair pairs hash row column table object bucket setting cache label tag sort issue")
	baked  = strings.Fields("bake baked baking recipe recipes flavour flavor flavours flavors dough chocolate eat favourite favorite consent banner")
	pinned = strings.Fields("gpio board map post header top drop")
)

// harmless says whether a word is that of no secret, where own is what is said of the field itself.
func (s setting) harmless(word string, own func() setting) bool {
	switch word {
	case "key", "keys":
		return s.paired || s.mapped || own().mapped
	case "cookie", "cookies":
		return s.baked || own().baked
	case "pin", "pins":
		return s.pinned || own().pinned
	}
	return false
}

// drawn gives a text in which letters of other alphabets, and digits, are those of ours that they look like.
func drawn(text string) string { return lookalikes.Replace(text) }

var lookalikes = strings.NewReplacer("а", "a", "α", "a", "с", "c", "ϲ", "c", "ԁ", "d", "е", "e", "ε", "e", "һ", "h", "і", "i", "ι", "i", "ı", "i", "к", "k", "κ", "k", "м", "m",
	"ո", "n", "о", "o", "ο", "o", "օ", "o", "р", "p", "ρ", "p", "ѕ", "s", "т", "t", "τ", "t", "υ", "u", "ѵ", "v", "ν", "v", "ԝ", "w", "ѡ", "w", "х", "x", "χ", "x", "у", "y",
	"γ", "y", "ł", "l", "0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t")

// signs are drawn for letters within a word.
var signs = map[rune]rune{'@': 'a', '$': 's'}

// words splits a name where its writing does: api_key, api-key, apiKey, APIKey.
func words(name string) []string {
	var b strings.Builder
	lower, digit, inWord, capitals := false, false, false, 0
	runes := []rune(norm.NFKD.String(name))
	for i, r := range runes {
		if unicode.In(r, unicode.Mn, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point) {
			continue
		}
		upper := unicode.IsUpper(r)
		if upper && (lower || (digit || capitals > 1) && i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte(' ')
		}
		if letter, ok := signs[r]; ok && inWord {
			r = letter
		}
		digit = unicode.IsDigit(r)
		lower = unicode.IsLower(r) || digit && (lower || capitals > 0) // a digit begins the word of 2FA
		inWord = digit || unicode.IsLetter(r)
		if capitals++; !upper {
			capitals = 0
		}
		if !inWord {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}
