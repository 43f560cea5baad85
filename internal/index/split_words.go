package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/width"
)

// SplitWords returns the words of a text, in their order and in lower case. A name is as many words as it is made of;
// letters and digits are words of their own. Of Chinese, Japanese and Korean, which are written without blanks or with
// endings, two neighbouring characters are a word.
func SplitWords(text string) []string {
	out := make([]string, 0, len(text)/6)
	splitEach(text, func(word string, _ bool) { out = append(out, word) })
	return out
}

// splitEach returns the words of a text; joined are those between which and the word before nothing stands.
func splitEach(text string, yield func(word string, joined bool)) {
	joined := false
	for rest := toHalfWidth(text); rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		var n int // bytes of the word that begins here
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

// toHalfWidth returns letters and digits of full width as those that programs are written in.
func toHalfWidth(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return width.Fold.String(text)
		}
	}
	return text
}

// isUnspaced reports whether a character is of a script that is read by pairs.
func isUnspaced(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// runLength is the number of bytes at the beginning of text whose characters are all of a class.
func runLength(text string, class func(rune) bool) int {
	for i, r := range text {
		if !class(r) {
			return i
		}
	}
	return len(text)
}

// eachBigram returns each two neighbouring characters of a text; one that is alone is given alone.
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

// wordLen is the number of bytes of the word that text begins with: it ends where the letters do, before a capital that
// follows a small letter, and before the last of several capitals if a small letter follows it.
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

// isLetter is unicode.IsLetter, and quick for the letters of most texts.
func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return unicode.IsLetter(r)
}

// isDigit is unicode.IsDigit, and as quick.
func isDigit(r rune) bool {
	if r < utf8.RuneSelf {
		return '0' <= r && r <= '9'
	}
	return unicode.IsDigit(r)
}

// isPluralEnding reports whether a small letter after capitals makes them several, as in URLs.
func isPluralEnding(letter rune, rest string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	return letter == 's' && !unicode.IsLower(next)
}

// possessiveLen is the number of bytes of an ending that is written with an apostrophe, as in Ada's.
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

// StemWord returns a word without its English endings, so that "listing" and "lists" are one. A word with other letters
// than a to z stays as it is.
func StemWord(word string) string {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return word
		}
	}
	return english.Stem(word, true)
}
