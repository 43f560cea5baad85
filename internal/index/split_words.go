package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/width"
)

// SplitWords returns the words of a text in order, in lower case. Identifiers such as "readFile" are split into their
// words, and letters and digits are separate words. In Chinese, Japanese and Korean, each pair of neighbouring
// characters counts as a word, because these languages have no spaces or add endings to words.
func SplitWords(text string) []string {
	out := make([]string, 0, len(text)/6)
	splitEach(text, func(word string, _ bool) { out = append(out, word) })
	return out
}

// splitEach calls yield with each word of a text. joined reports whether no character separates the word from the
// previous word, as in an identifier.
func splitEach(text string, yield func(word string, joined bool)) {
	joined := false
	for rest := toHalfWidth(text); rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		var n int // bytes of the word at this position
		switch {
		case isUnspaced(r):
			n = runLength(rest, isUnspaced)
			eachBigram(rest[:n], func(pair string) { yield(pair, joined) })
		case isLetter(r):
			n = wordLen(rest)
			yield(strings.ToLower(rest[:n]), joined)
			n += possessiveLen(rest[n:])
		case isDigit(r):
			n = runLength(rest, isDigit)
			yield(rest[:n], joined)
		default:
			joined = false
			rest = rest[size:]
			continue
		}
		joined = true
		rest = rest[n:]
	}
}

// toHalfWidth replaces full-width letters and digits by their ASCII forms.
func toHalfWidth(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return width.Fold.String(text)
		}
	}
	return text
}

// isUnspaced reports whether a character belongs to Chinese, Japanese or Korean script. Text in these scripts is
// split into pairs of characters.
func isUnspaced(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// runLength returns the length in bytes of the longest prefix of text for whose characters class returns true.
func runLength(text string, class func(rune) bool) int {
	for i, r := range text {
		if !class(r) {
			return i
		}
	}
	return len(text)
}

// eachBigram calls yield with each pair of neighbouring characters of a text. If the text has only one character, it
// calls yield with that character.
func eachBigram(text string, yield func(string)) {
	_, before := utf8.DecodeRuneInString(text)
	if before == len(text) {
		yield(text)
	}
	for start, i := 0, before; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		yield(text[start : i+size])
		start, i = i, i+size
	}
}

// wordLen returns the length in bytes of the word at the start of text. The word ends before a character that is not
// a letter, and before a capital after a lower-case letter. In a sequence of capitals it ends before the last
// capital if a lower-case letter follows.
func wordLen(text string) int {
	var before rune
	for i, r := range text {
		switch {
		case 'a' <= r && r <= 'z':
		case !isLetter(r) && (r < utf8.RuneSelf || !unicode.IsMark(r)), isUnspaced(r):
			return i
		case i == 0 || !unicode.IsUpper(r):
		case unicode.IsLower(before):
			return i
		case unicode.IsUpper(before):
			rest := text[i+utf8.RuneLen(r):]
			if next, size := utf8.DecodeRuneInString(rest); unicode.IsLower(next) &&
				!isPluralEnding(next, rest[size:]) {
				return i
			}
		}
		before = r
	}
	return len(text)
}

// isLetter is unicode.IsLetter with a fast path for ASCII.
func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return unicode.IsLetter(r)
}

// isDigit is unicode.IsDigit with a fast path for ASCII.
func isDigit(r rune) bool {
	if r < utf8.RuneSelf {
		return '0' <= r && r <= '9'
	}
	return unicode.IsDigit(r)
}

// isPluralEnding reports whether a lower-case letter after capitals is a plural ending, as in "URLs". rest is the
// text after the letter.
func isPluralEnding(letter rune, rest string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	return letter == 's' && !unicode.IsLower(next)
}

// possessiveLen returns the length of an ending with an apostrophe, as in "Ada's", or 0.
func possessiveLen(text string) int {
	r, size := utf8.DecodeRuneInString(text)
	if r != '\'' && r != '’' {
		return 0
	}
	n := runLength(text[size:], isLetter)
	if n == 0 || n > 2 {
		return 0
	}
	return size + n
}

// StemWord returns the English stem of a word: "listing" and "lists" have the same stem. A word with other
// characters than a to z is returned unchanged.
func StemWord(word string) string {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	return english.Stem(word, true)
}
