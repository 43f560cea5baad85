package shield

import (
	"encoding/ascii85"
	"strings"
)

// decodeBrailleAndBase85 returns the parts of a text that are written in Braille, in words of the radio alphabet, or in
// Base85. Each part is returned with its decoded form.
func decodeBrailleAndBase85(text string, has *byteSet) (found []decodedText) {
	const brailleLead, fewestDots = "\xe2\xa0", 12
	if has.Has(brailleLead[1]) && strings.Count(text, brailleLead) >= fewestDots {
		from, to := strings.Index(text, brailleLead), strings.LastIndex(text, brailleLead)+len(brailleLead)+1
		found = append(found, decodedText{"Braille", strings.Map(brailleLetter, text[from:min(to, len(text))]), from,
			min(to, len(text))})
	}
	if (has.Has('c') || has.Has('C')) && (has.Has('g') || has.Has('G')) { // most texts have e (echo) and t (tango)
		found = append(found, decodeRadio(text)...)
	}
	if !has.intersects(&base85OnlySet) || !hasRunOf(text, codeToken, minBase85) {
		return found
	}
	for at, token := range spaceFields(text) {
		if len(token) >= minBase85 && strings.ContainsAny(token, base85OnlyDigits) && len(found) < maxDecoded {
			if plain := decodeBase85(token); plain != "" {
				found = append(found, decodedText{"Base85", plain, at, at + len(token)})
			}
		}
	}
	return found
}

// minBase85 is the smallest length of a Base85 word, in characters.
const minBase85 = 40

// base85OnlyDigits are the characters of Base85 that other encodings do not use. A long Base85 word contains at least
// one of them.
const base85OnlyDigits = "!#$%&()*+;<=>?@^`{|}~"

var base85OnlySet = bytesOf(base85OnlyDigits)

// brailleLetter returns the letter a to z for a Braille pattern, and a space for a pattern that is not a letter. It
// returns every other rune unchanged.
func brailleLetter(r rune) rune {
	const letters = "\x01\x03\x09\x19\x11\x0b\x1b\x13\x0a\x1a\x05\x07\x0d\x1d\x15\x0f\x1f\x17\x0e\x1e\x25\x27\x3a\x2d\x3d\x35"
	if r < 0x2800 || r > 0x283F {
		return r
	}
	if n := strings.IndexByte(letters, byte(r-0x2800)); n >= 0 && r > 0x2800 {
		return 'a' + rune(n)
	}
	return ' '
}

// base85Digits lists the Base85 digits of RFC 1924, in the order of their values.
const base85Digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// base85Values maps a byte to the value of its RFC 1924 digit plus 1. Other bytes map to 0.
var base85Values = func() (at [256]byte) {
	for i := range len(base85Digits) {
		at[base85Digits[i]] = byte(i + 1)
	}
	return at
}()

// decodeBase85 decodes a word as Ascii85 or as Base85 of RFC 1924. It returns "" if neither result is readable text.
func decodeBase85(run string) string {
	plain := make([]byte, 4*len(run)/5+8)
	body := strings.TrimSuffix(strings.TrimPrefix(run, "<~"), "~>")
	if n, _, err := ascii85.Decode(plain, []byte(body), true); err == nil && isReadable(string(plain[:n])) {
		return string(plain[:n])
	}
	// RFC 1924 uses other characters for the same digit values, so its digits are translated to the digits of Ascii85.
	same := []byte(run)
	for i, c := range same {
		if base85Values[c] == 0 {
			return ""
		}
		same[i] = '!' + base85Values[c] - 1
	}
	if n, _, err := ascii85.Decode(plain, same, true); err == nil && isReadable(string(plain[:n])) {
		return string(plain[:n])
	}
	return ""
}

// radioWords is the set of words of the NATO radio alphabet. Each word stands for its first letter.
var radioWords = map[string]bool{
	"alfa": true, "alpha": true, "bravo": true, "charlie": true, "delta": true, "echo": true, "foxtrot": true,
	"golf": true, "hotel": true,
	"india": true, "juliett": true, "juliet": true, "kilo": true, "lima": true, "mike": true, "november": true,
	"oscar": true, "papa": true,
	"quebec": true, "romeo": true, "sierra": true, "tango": true, "uniform": true, "victor": true, "whiskey": true,
	"whisky": true, "x-ray": true,
	"xray": true, "yankee": true, "zulu": true,
}

// decodeRadio decodes sequences of at least sixteen words of the radio alphabet. Single characters between the words
// are copied; separators and the word "space" become a space.
func decodeRadio(text string) (found []decodedText) {
	const fewest = 16
	has := func(part string) bool { return strings.Contains(text, part) }
	if !has("cho") && !has("CHO") || !has("ango") && !has("ANGO") { // most texts contain the letters e and t
		return nil
	}
	var b strings.Builder
	start, stop, n := 0, 0, 0
	flush := func() {
		if n >= fewest && len(found) < maxDecoded {
			found = append(found, decodedText{"the words of a radio alphabet", b.String(), start, stop})
		}
		b.Reset()
		n = 0
	}
	for at, token := range spaceFields(text) {
		word := strings.ToLower(strings.Trim(token, `,.;:"'()`))
		switch {
		case radioWords[word]:
			if n == 0 {
				start = at
			}
			b.WriteByte(word[0])
			n++
			stop = at + len(token)
		case n > 0 && (token == "/" || token == "|" || token == "-" || word == "space"):
			b.WriteByte(' ')
		case n > 0 && len(token) == 1:
			b.WriteString(token)
		default:
			flush()
		}
	}
	flush()
	return found
}
