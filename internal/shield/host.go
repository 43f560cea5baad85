package shield

import (
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/net/idna"
)

// maxHostBytes is the maximum size of a host that is not ASCII. A longer host would exceed the 253 bytes of a domain
// name in its ASCII form.
const maxHostBytes = 1024

// idnaProfile returns the profile that converts hosts to ASCII as browsers do. Browsers accept an underscore, and
// hyphens at any position.
var idnaProfile = sync.OnceValue(func() *idna.Profile {
	return idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false),
		idna.CheckHyphens(false), idna.VerifyDNSLength(true))
})

// NormalizeHost returns the ASCII form of a host, in which no letter can imitate another letter. ok is false if the
// host has invisible or bidirectional characters or is not a valid name. A host in ASCII is returned unchanged.
func NormalizeHost(host string) (ascii string, ok bool) {
	if isASCII(host) {
		return host, true
	}
	if len(host) > maxHostBytes || strings.ContainsFunc(host, isInvisibleInHost) {
		return "", false
	}
	if shown, _ := CanonicalText(host); shown != host {
		return "", false
	}
	ascii, err := idnaProfile().ToASCII(host)
	if err != nil || strings.ContainsFunc(ascii, isNotHostRune) {
		return "", false
	}
	return ascii, true
}

// isInvisibleInHost reports whether a rune is invisible in a host. It returns false for joiners, because package idna
// allows them in the scripts that need them. CanonicalText removes variation selectors.
func isInvisibleInHost(r rune) bool {
	return r != '\u200c' && r != '\u200d' && unicode.In(r, unicode.C, unicode.Z,
		unicode.Other_Default_Ignorable_Code_Point)
}

// isNotHostRune reports whether a rune in the ASCII form of a host is invalid in a domain name. For example, the ASCII
// form of a full-width slash is "/".
func isNotHostRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// mixesAlphabets reports whether a label of a host mixes alphabets, which is typical of a host that imitates another
// host. Han may be mixed with kana, hangul and bopomofo, and each of them with Latin.
func mixesAlphabets(host string) bool {
	if isASCII(host) && !strings.Contains(strings.ToLower(host), "xn--") || len(host) > maxHostBytes {
		return false
	}
	shown, _ := idnaProfile().ToUnicode(host) // a label that cannot be decoded is unchanged
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

// alphabetOf returns the alphabet of a letter, or "" for a character that all alphabets use. Alphabets that are written
// together count as one alphabet: Han, kana, hangul and bopomofo.
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
