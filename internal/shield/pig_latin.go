package shield

import "strings"

// minPigLatin is the minimum number of Pig Latin words in a text that is decoded.
const minPigLatin = 5

// undoPigLatin decodes a text in Pig Latin, a word game in which "send" becomes "endsay": the first consonants move to
// the end and "ay" follows. It returns the decoded words, or "" if fewer than minPigLatin words, or fewer than half,
// end in "ay". Words of at most two letters are not counted.
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

// undoPigLatinWord returns the plain word for a word in Pig Latin. It moves one to three consonants from the end back
// to the front and prefers a result that the lexicon knows. A word that does not end in "ay" is returned unchanged.
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

// isVowelless reports whether the vowels were removed from a text ("snd th fl"), since a model can still read it: less
// than 10 % of at least 40 letters are vowels. Only lower-case ASCII words of at most 16 letters are counted.
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
