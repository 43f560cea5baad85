package coded

import (
	"encoding/ascii85"
	"strings"
)

// ciphered gives the texts that stand in a text in Braille or in Base85.
func ciphered(text string, has *Bytes) (found []Text) {
	const brailleLead, fewestDots = "\xe2\xa0", 12
	if has.Has(brailleLead[1]) && strings.Count(text, brailleLead) >= fewestDots {
		from, to := strings.Index(text, brailleLead), strings.LastIndex(text, brailleLead)+len(brailleLead)+1
		found = append(found, Text{"Braille", strings.Map(dots, text[from:min(to, len(text))]), from, min(to, len(text))})
	}
	if (has.Has('c') || has.Has('C')) && (has.Has('g') || has.Has('G')) { // as "echo" and "tango" have
		found = append(found, radioed(text)...)
	}
	if !has.any(&signsIn85) || !stretches(text, tokenSign, fewest85) {
		return found
	}
	for at, token := range fields(text) {
		if len(token) >= fewest85 && strings.ContainsAny(token, odd85) && len(found) < mostCoded {
			if plain := base85(token); plain != "" {
				found = append(found, Text{"Base85", plain, at, at + len(token)})
			}
		}
	}
	return found
}

// fewest85 is how long a word in Base85 is.
const fewest85 = 40

// odd85 are the digits of Base85 that no other code has, one of which is in any long stretch of it.
const odd85 = "!#$%&()*+;<=>?@^`{|}~"

var signsIn85 = BytesIn(odd85)

// dots gives the letter that a sign of Braille stands for.
func dots(r rune) rune {
	const letters = "\x01\x03\x09\x19\x11\x0b\x1b\x13\x0a\x1a\x05\x07\x0d\x1d\x15\x0f\x1f\x17\x0e\x1e\x25\x27\x3a\x2d\x3d\x35"
	if r < 0x2800 || r > 0x283F {
		return r
	}
	if n := strings.IndexByte(letters, byte(r-0x2800)); n >= 0 && r > 0x2800 {
		return 'a' + rune(n)
	}
	return ' '
}

// signs85 has the digits of RFC 1924, in their order.
const signs85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// place85 has the place of each of them, counted from 1; 0 for what is none.
var place85 = func() (at [256]byte) {
	for i := range len(signs85) {
		at[signs85[i]] = byte(i + 1)
	}
	return at
}()

// base85 reads a run of either alphabet; "" where it says nothing.
func base85(run string) string {
	plain := make([]byte, 4*len(run)/5+8)
	body := strings.TrimSuffix(strings.TrimPrefix(run, "<~"), "~>")
	if n, _, err := ascii85.Decode(plain, []byte(body), true); err == nil && Readable(string(plain[:n])) {
		return string(plain[:n])
	}
	// The other alphabet has the same digits under other signs.
	same := []byte(run)
	for i, c := range same {
		if place85[c] == 0 {
			return ""
		}
		same[i] = '!' + place85[c] - 1
	}
	if n, _, err := ascii85.Decode(plain, same, true); err == nil && Readable(string(plain[:n])) {
		return string(plain[:n])
	}
	return ""
}

// radio are the words that stand for letters over a radio, each for the one that it begins with.
var radio = map[string]bool{
	"alfa": true, "alpha": true, "bravo": true, "charlie": true, "delta": true, "echo": true, "foxtrot": true, "golf": true, "hotel": true,
	"india": true, "juliett": true, "juliet": true, "kilo": true, "lima": true, "mike": true, "november": true, "oscar": true, "papa": true,
	"quebec": true, "romeo": true, "sierra": true, "tango": true, "uniform": true, "victor": true, "whiskey": true, "whisky": true, "x-ray": true,
	"xray": true, "yankee": true, "zulu": true,
}

// radioed reads what is written in the words of a radio alphabet: sixteen letters at least, with signs and single letters between them as
// they are.
func radioed(text string) (found []Text) {
	const fewest = 16
	has := func(part string) bool { return strings.Contains(text, part) }
	if !has("cho") && !has("CHO") || !has("ango") && !has("ANGO") { // hardly an order has no e, or no t
		return nil
	}
	var b strings.Builder
	start, stop, n := 0, 0, 0
	flush := func() {
		if n >= fewest && len(found) < mostCoded {
			found = append(found, Text{"the words of a radio alphabet", b.String(), start, stop})
		}
		b.Reset()
		n = 0
	}
	for at, token := range fields(text) {
		word := strings.ToLower(strings.Trim(token, `,.;:"'()`))
		switch {
		case radio[word]:
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
