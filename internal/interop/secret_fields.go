package interop

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"golang.org/x/text/unicode/norm"
)

// sensitiveFields returns the names of the fields of a form that ask for secrets, judged by their name, title,
// description or input type. If the message, the title or the description of the form asks for a secret, it also
// returns all text fields. If there are no text fields then, it returns all number fields.
func sensitiveFields(params json.RawMessage) (names []string) {
	form := rawjson.Get(params, "requestedSchema")
	told := strings.Join([]string{truncatedMember(params, "message"), truncatedMember(form, "title"),
		truncatedMember(form, "description")}, ".\n")
	fields := parseFormFields(form)
	asked, here := asksForSecret(told), parseFieldContext(told)
	texts := slices.ContainsFunc(fields, formField.acceptsText)
	here.hasValueField = slices.ContainsFunc(fields,
		func(f formField) bool { return strings.EqualFold(f.name, "value") })
	seen := map[string]bool{} // a form may have very many fields
	for i, f := range fields {
		wanted := i >= maxFormFields || asked && (f.acceptsText() || !texts && f.acceptsNumber())
		if !seen[f.name] && (wanted || f.isHidden() || f.asksForSecret(here)) {
			names, seen[f.name] = append(names, f.name), true
		}
	}
	return names
}

// maxFormFields is the number of fields of a form that are examined. All further fields are marked as sensitive without
// examination, because an honest form does not have so many fields.
const maxFormFields = 4096

// maxCheckedText is the number of bytes of a text that are examined. The rest is not examined: longer texts are
// truncated before a person sees them.
const maxCheckedText = 64 << 10

// truncatedMember returns a string member of an object, truncated to maxCheckedText bytes.
func truncatedMember(object json.RawMessage, member string) string {
	text := rawjson.GetString(object, member)
	return text[:min(len(text), maxCheckedText)]
}

// A formField is one property in the schema of a form.
type formField struct {
	name, title, description string
	schema                   json.RawMessage
}

func parseFormFields(form json.RawMessage) (all []formField) {
	for m := range rawjson.Members(rawjson.Get(form, "properties")) {
		name, _ := rawjson.DecodeString(m.Name)
		all = append(all, formField{name, truncatedMember(m.Value, "title"), truncatedMember(m.Value,
			"description"), m.Value})
	}
	return all
}

// acceptsText reports whether a field accepts free text. A field without a type does.
func (f formField) acceptsText() bool {
	for _, bound := range []string{"enum", "oneOf", "anyOf", "const"} {
		if rawjson.Get(f.schema, bound) != nil {
			return false
		}
	}
	switch rawjson.GetString(f.schema, "format") {
	case "email", "date", "date-time":
		return false
	}
	return f.acceptsType("string") || rawjson.Get(f.schema, "type") == nil
}

// acceptsNumber reports whether a field accepts a number. Many PINs are numbers.
func (f formField) acceptsNumber() bool { return f.acceptsType("integer") || f.acceptsType("number") }

// acceptsType reports whether a field accepts values of a JSON type.
func (f formField) acceptsType(kind string) bool {
	types := rawjson.Get(f.schema, "type")
	if text, ok := rawjson.DecodeString(types); ok {
		return text == kind
	}
	for one := range rawjson.Elements(types) {
		if text, _ := rawjson.DecodeString(one); text == kind {
			return true
		}
	}
	return false
}

// isHidden reports whether the schema hides the input, as web forms do for secrets: its format is password, or it is
// writeOnly.
func (f formField) isHidden() bool {
	return strings.EqualFold(rawjson.GetString(f.schema, "format"), "password") ||
		string(rawjson.Get(f.schema, "writeOnly")) == "true"
}

// asksForSecret reports whether the name, the title or the description of a field refers to a secret. here is the
// context of the whole form. A boolean field never asks for a secret.
func (f formField) asksForSecret(here fieldContext) bool {
	if rawjson.GetString(f.schema, "type") == "boolean" {
		return false
	}
	called := func(by string) bool {
		by = normalizeWords(by)
		return isSecretName(by) && !here.isHarmless(by, func() fieldContext {
			return parseFieldContext(f.name + " " +
				f.title + " " + f.description)
		})
	}
	return called(f.name) || called(f.title) || descriptionAsksForSecret(f.description)
}

// A fieldContext describes the text around a field. A word with two meanings is harmless in some contexts: "key" near a
// map, "cookie" near food, "pin" near a board.
type fieldContext struct{ aboutMaps, aboutFood, aboutPins, hasValueField bool }

// parseFieldContext returns the fieldContext of a text, determined by the words in the text.
func parseFieldContext(text string) fieldContext {
	all := strings.Fields(normalizeWords(text))
	return fieldContext{aboutMaps: containsAnyWord(all, mapWords), aboutFood: containsAnyWord(all, foodWords),
		aboutPins: containsAnyWord(all, pinWords)}
}

var (
	mapWords = strings.Fields(
		"map dictionary entry pair pairs hash row column table object bucket setting cache label tag sort issue")
	foodWords = strings.Fields(
		"bake baked baking recipe recipes flavour flavor flavours flavors dough chocolate eat favourite favorite consent banner")
	pinWords = strings.Fields("gpio board map post header top drop")
)

// isHarmless reports whether a word with two meanings is harmless in the context of the form or of the field. own
// returns the context of the field.
func (s fieldContext) isHarmless(word string, own func() fieldContext) bool {
	switch word {
	case "key", "keys":
		return s.hasValueField || s.aboutMaps || own().aboutMaps
	case "cookie", "cookies":
		return s.aboutFood || own().aboutFood
	case "pin", "pins":
		return s.aboutPins || own().aboutPins
	}
	return false
}

// foldLookalikes replaces letters of other alphabets, and digits, by Latin letters that look similar.
func foldLookalikes(text string) string { return lookalikes().Replace(text) }

var lookalikes = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer("а", "a", "α", "a", "с", "c", "ϲ", "c", "ԁ", "d", "е", "e", "ε", "e", "һ", "h",
		"і", "i", "ι", "i", "ı", "i", "к", "k", "κ", "k", "м", "m",
		"ո", "n", "о", "o", "ο", "o", "օ", "o", "р", "p", "ρ", "p", "ѕ", "s", "т", "t", "τ", "t", "υ", "u", "ѵ", "v", "ν",
		"v", "ԝ", "w", "ѡ", "w", "х", "x", "χ", "x", "у", "y",
		"γ", "y", "ł", "l", "0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t")
})

// letterSigns maps signs that replace letters within a word, as in "p@ssword", to the replaced letters.
var letterSigns = map[rune]rune{'@': 'a', '$': 's'}

// splitNameWords splits a name into its words in lower case: api_key, api-key, apiKey and APIKey all have two words.
func splitNameWords(name string) []string {
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
		if letter, ok := letterSigns[r]; ok && inWord {
			r = letter
		}
		digit = unicode.IsDigit(r)
		lower = unicode.IsLower(r) || digit && (lower || capitals > 0) // a leading digit belongs to the word, as in 2FA
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
