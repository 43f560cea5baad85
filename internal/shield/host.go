package shield

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/injection"
	"golang.org/x/net/idna"
)

// maxHostBytes is how many bytes a host may have that is not ASCII: one with more has more than the 253 bytes of a
// name, however it is written.
const maxHostBytes = 1024

// idnaProfile makes names of hosts ASCII as browsers do: an underscore and hyphens anywhere are theirs to take.
var idnaProfile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false),
	idna.CheckHyphens(false), idna.VerifyDNSLength(true))

// NormalizeHost returns the host of an address in its ASCII form, in which no letter looks like another; false where a
// host has characters that cannot be seen or turn the order of others, or is not a name of a host. One that is ASCII
// stays as it is.
func NormalizeHost(host string) (ascii string, ok bool) {
	if isASCII(host) {
		return host, true
	}
	if len(host) > maxHostBytes || strings.ContainsFunc(host, isInvisibleInHost) {
		return "", false
	}
	if shown, _ := injection.CanonicalText(host); shown != host {
		return "", false
	}
	ascii, err := idnaProfile.ToASCII(host)
	if err != nil || strings.ContainsFunc(ascii, isNotHostRune) {
		return "", false
	}
	return ascii, true
}

// isASCII reports whether a text is ASCII.
func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// isInvisibleInHost reports whether a rune has no place in a host because nobody sees it. Joiners are for idna to
// judge, which knows the scripts that need them, and selectors for injection.CanonicalText.
func isInvisibleInHost(r rune) bool {
	return r != '\u200c' && r != '\u200d' && unicode.In(r, unicode.C, unicode.Z,
		unicode.Other_Default_Ignorable_Code_Point)
}

// isNotHostRune reports whether a rune of an ASCII form is none of a name: a full-width slash becomes one.
func isNotHostRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// mixesAlphabets reports whether a label of a host has letters of several alphabets, as one has that is made to look
// like another. Han stands beside kana, hangul and bopomofo, and any of these beside Latin.
func mixesAlphabets(host string) bool {
	if isASCII(host) && !strings.Contains(strings.ToLower(host), "xn--") || len(host) > maxHostBytes {
		return false
	}
	shown, _ := idnaProfile.ToUnicode(host) // a label that it can not read stays as it is
	return slices.ContainsFunc(strings.Split(shown, "."), labelMixesAlphabets)
}

func labelMixesAlphabets(label string) bool {
	first := ""
	for _, r := range label {
		alphabet := alphabetOf(r)
		switch {
		case alphabet == "" || alphabet == first:
		case first == "":
			first = alphabet
		case alphabet == "Latin" && first == "Han":
		case alphabet == "Han" && first == "Latin":
			first = alphabet
		default:
			return true
		}
	}
	return false
}

// alphabetOf names the alphabet of a letter; "" for what belongs to all. What is written together is one: Han, kana,
// hangul and bopomofo.
func alphabetOf(r rune) string {
	if !unicode.IsLetter(r) || unicode.In(r, unicode.Common, unicode.Inherited) {
		return ""
	}
	if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo) {
		return "Han"
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return name
		}
	}
	return ""
}
