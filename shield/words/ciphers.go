package words

import (
	"encoding/ascii85"
	"strings"
)

// ciphered gives the texts that stand in a text in Braille or in Base85.
func ciphered(text string) (found []coded) {
	const brailleLead, fewestDots = "\xe2\xa0", 12
	if strings.Count(text, brailleLead) >= fewestDots {
		from, to := strings.Index(text, brailleLead), strings.LastIndex(text, brailleLead)+len(brailleLead)+1
		found = append(found, coded{"Braille", strings.Map(dots, text[from:min(to, len(text))]), from, min(to, len(text))})
	}
	const fewest85, signs = 40, "!#$%&()*+;<=>?@^`{|}~"
	at := 0
	for token := range strings.FieldsSeq(text) {
		at += strings.Index(text[at:], token)
		if len(token) >= fewest85 && strings.ContainsAny(token, signs) && len(found) < mostCoded {
			if plain := base85(token); plain != "" {
				found = append(found, coded{"Base85", plain, at, at + len(token)})
			}
		}
		at += len(token)
	}
	return found
}

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

// base85 reads a run of either alphabet; "" where it says nothing.
func base85(run string) string {
	plain := make([]byte, 4*len(run)/5+8)
	body := strings.TrimSuffix(strings.TrimPrefix(run, "<~"), "~>")
	if n, _, err := ascii85.Decode(plain, []byte(body), true); err == nil && readable(string(plain[:n])) {
		return string(plain[:n])
	}
	// The other alphabet has the same digits under other signs.
	same := strings.Map(func(r rune) rune {
		if n := strings.IndexRune(signs85, r); n >= 0 {
			return '!' + rune(n)
		}
		return -1
	}, run)
	if n, _, err := ascii85.Decode(plain, []byte(same), true); len(same) == len(run) && err == nil && readable(string(plain[:n])) {
		return string(plain[:n])
	}
	return ""
}

// pigLatin gives a text whose words have had their beginnings put behind them, with "ay"; "" where most are plain.
func (in *Inspector) pigLatin(words []word) string {
	const fewest = 5
	moved, all := 0, 0
	for i := range words {
		if len(words[i].folded) > 2 {
			all++
			if strings.HasSuffix(words[i].folded, "ay") && len(words[i].folded) > 3 {
				moved++
			}
		}
	}
	if moved < fewest || moved*2 < all {
		return ""
	}
	in.scale.once.Do(in.scale.load)
	var b strings.Builder
	for i := range words {
		b.WriteString(in.unmoved(words[i].folded))
		b.WriteByte(' ')
	}
	return b.String()
}

// unmoved gives what a word of pig latin was: of several, one that is known.
func (in *Inspector) unmoved(word string) string {
	rest, ok := strings.CutSuffix(word, "ay")
	if !ok || rest == "" {
		return word
	}
	known := func(w string) bool {
		return in.scale.kinds[w] != 0 || in.scale.stem(w) != 0 || in.reader.lex.has(w)
	}
	if w := strings.TrimSuffix(rest, "w"); w != rest && known(w) {
		return w
	}
	guess := rest
	for n := 1; n <= 3 && n < len(rest) && strings.IndexByte("aeiou", rest[len(rest)-n]) < 0; n++ {
		guess = rest[len(rest)-n:] + rest[:len(rest)-n]
		if known(guess) {
			return guess
		}
	}
	return guess
}

// voiceless says whether a text of many letters has next to no vowels: they were left out for a reader who puts them back.
func voiceless(words []word, text string) bool {
	const fewest, percent, longest = 40, 10, 16
	letters, vowels := 0, 0
	for _, w := range words {
		if raw := text[w.at:w.end]; raw != w.folded || len(raw) > longest || strings.Trim(raw, "abcdefghijklmnopqrstuvwxyz") != "" {
			continue
		}
		for i := range len(w.folded) {
			letters++
			if strings.IndexByte("aeiou", w.folded[i]) >= 0 {
				vowels++
			}
		}
	}
	return letters >= fewest && vowels*100 < letters*percent
}
