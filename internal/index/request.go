package index

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A ParsedRequest is a search request, split into words and parts.
type ParsedRequest struct {
	// Words are the words of the request, in order.
	Words []RequestWord
	// Parts is the number of parts. Each part asks for a separate thing, as in "read the file and send a mail".
	Parts int
}

// A RequestWord is a word of a request.
type RequestWord struct {
	// Text is the word, in lower case.
	Text string
	// Part is the index of the part that contains the word, or BetweenParts.
	Part int
	// IsStopWord reports whether the word is a stop word: a word such as "the" that does not describe the wanted
	// thing.
	IsStopWord bool
}

const (
	// BetweenParts is the Part of words that join two parts, such as "then".
	BetweenParts = -1
	// WholeRequest selects all words of a request, including those between its parts.
	WholeRequest = -2
)

// Parse splits a request into words and parts. A part ends at the end of a sentence, at a comma, and at words such as
// "and" and "then". If a part has fewer than least words other than stop words, its words are added to the previous
// part.
func (s StopWords) Parse(text string, least int) ParsedRequest {
	r := ParsedRequest{Words: make([]RequestWord, 0, 1+len(text)/5)}
	start := 0
	for i := 0; i < len(text); {
		if 'a' <= text[i] && text[i] <= 'z' {
			i++
			continue
		}
		cut, next := partBoundary(text[i:])
		if cut {
			s.parsePart(&r, text[start:i], least)
			s.parseWords(&r, text[i:i+next], BetweenParts)
			start = i + next
		}
		i += next
	}
	s.parsePart(&r, text[start:], least)
	return r
}

// parsePart adds the words of text as a new part. If text has fewer than least words other than stop words, parsePart
// adds them to the previous part.
func (s StopWords) parsePart(r *ParsedRequest, text string, least int) {
	from := len(r.Words)
	s.parseWords(r, text, r.Parts)
	says := 0
	for _, w := range r.Words[from:] {
		if !w.IsStopWord {
			says++
		}
	}
	switch {
	case len(r.Words) == from:
	case r.Parts > 0 && says < least:
		for i := range r.Words[from:] {
			r.Words[from+i].Part--
		}
	default:
		r.Parts++
	}
}

// parseWords adds the words of a text. A word that is a piece of a name, such as "My" in "MySQL", is not a stop
// word.
func (s StopWords) parseWords(r *ParsedRequest, text string, part int) {
	splitEach(text, func(word string, joined bool) {
		if joined {
			r.Words[len(r.Words)-1].IsStopWord = false
		}
		r.Words = append(r.Words, RequestWord{word, part, !joined && s[word]})
	})
}

// ContentWords returns the words of a part without stop words. With part WholeRequest, it returns those of the whole
// request. If fewer than least words remain, it returns the stop words too.
func (r ParsedRequest) ContentWords(part, least int) []string {
	kept, all := 0, 0
	for _, w := range r.Words {
		if part == WholeRequest || w.Part == part {
			all++
			if !w.IsStopWord {
				kept++
			}
		}
	}
	if kept >= least {
		all = kept
	}
	out := make([]string, 0, all)
	for _, w := range r.Words {
		if (part == WholeRequest || w.Part == part) && (kept < least || !w.IsStopWord) {
			out = append(out, w.Text)
		}
	}
	return out
}

// partBoundary reports whether text begins with a boundary between two parts of a request. next is the number of
// bytes to skip: the length of the boundary if there is one, otherwise the length of the first character.
func partBoundary(text string) (cut bool, next int) {
	switch c := text[0]; c {
	case ' ':
		return joiningWord(text[1:])
	case '\n':
		return true, 1
	case '.', '!', '?', ';', ',', ':':
		after, _ := utf8.DecodeRuneInString(text[1:])
		return len(text) == 1 || unicode.IsSpace(after), 1
	default:
		if c < utf8.RuneSelf {
			return false, 1
		}
	}
	r, size := utf8.DecodeRuneInString(text)
	return strings.ContainsRune("。，；？！、", r), size
}

// joiningWord reports whether text begins with a word, such as "and", that joins two parts of a request. A blank
// precedes text. next is the number of bytes to skip from that blank: the blank and the word, or only the blank if no
// such word follows.
func joiningWord(text string) (cut bool, next int) {
	if text == "" || strings.IndexByte("atwp", text[0]|0x20) < 0 {
		return false, 1
	}
	for _, word := range [...]string{"and", "then", "also", "while", "plus", "as well as"} {
		if n := len(word); len(text) > n && text[n] == ' ' && strings.EqualFold(text[:n], word) {
			return true, 1 + n
		}
	}
	return false, 1
}
