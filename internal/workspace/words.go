package workspace

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxWord is the maximum size of a word of a search in bytes; a longer word is cut.
const maxWord = 200

// Words returns the words of a text for a search, in their order: letters and digits in lower case, without accents.
// Each character of a script that has no spaces between words is a word.
func Words(text string) (words []string) {
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for _, r := range norm.NFKD.String(text) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			word.WriteRune(r)
			end()
		case unicode.IsLetter(r), unicode.IsDigit(r):
			if word.Len() < maxWord {
				word.WriteRune(unicode.ToLower(r))
			}
		case unicode.Is(unicode.Mn, r): // an accent: it belongs to the word
		default:
			end()
		}
	}
	end()
	return words
}
