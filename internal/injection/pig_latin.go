package injection

import "strings"

// minPigLatin is how many words of pig latin a text has.
const minPigLatin = 5

// undoPigLatin returns a text whose words have had their beginnings put behind them, with "ay"; "" where most are
// plain.
func (in *Inspector) undoPigLatin(words []textWord) string {
	moved, all := 0, 0
	for i := range words {
		if len(words[i].folded) > 2 {
			all++
			if strings.HasSuffix(words[i].folded, "ay") && !strings.HasSuffix(words[i].folded, "day") &&
				len(words[i].folded) > 3 {
				moved++
			}
		}
	}
	if moved < minPigLatin || moved*2 < all {
		return ""
	}
	var b strings.Builder
	for i := range words {
		b.WriteString(in.undoPigLatinWord(words[i].folded))
		b.WriteByte(' ')
	}
	return b.String()
}

// undoPigLatinWord returns what a word of pig latin was: of several, one that is known.
func (in *Inspector) undoPigLatinWord(word string) string {
	rest, ok := strings.CutSuffix(word, "ay")
	if !ok || rest == "" {
		return word
	}
	if w := strings.TrimSuffix(rest, "w"); w != rest && in.isKnownWord(w) {
		return w
	}
	guess := rest
	for n := 1; n <= 3 && n < len(rest) && strings.IndexByte("aeiou", rest[len(rest)-n]) < 0; n++ {
		guess = rest[len(rest)-n:] + rest[:len(rest)-n]
		if in.isKnownWord(guess) {
			return guess
		}
	}
	return guess
}

// isVowelless reports whether a text of many letters has next to no vowels: they were left out for a reader who puts
// them back.
func isVowelless(words []textWord, text string) bool {
	const fewest, percent, longest = 40, 10, 16
	letters, vowels := 0, 0
	for _, w := range words {
		if raw := text[w.at:w.end]; raw != w.folded || len(raw) > longest ||
			strings.Trim(raw, "abcdefghijklmnopqrstuvwxyz") != "" {
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
