package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clauses cuts a request into the parts that ask for something of their own: at the ends of sentences, at commas, and at
// words such as "and" and "then". A part with fewer than least words besides stop words is joined to the one before it. There
// is at least one part, which may be the whole text.
func Clauses(text string, stops Stops, least int) []string {
	var out []string
	add := func(part string) {
		part = strings.TrimSpace(part)
		switch {
		case part == "":
		case len(out) > 0 && len(stops.Keep(part, 0)) < least:
			out[len(out)-1] += " " + part
		default:
			out = append(out, part)
		}
	}
	start := 0
	for i := 0; i < len(text); {
		cut, next := boundary(text[i:])
		if !cut {
			i += next
			continue
		}
		add(text[start:i])
		i += next
		start = i
	}
	add(text[start:])
	if len(out) == 0 {
		return []string{text}
	}
	return out
}

// boundary says whether a part ends where text begins, and how many bytes stand between the parts; if none does, how many
// bytes to go on.
func boundary(text string) (cut bool, next int) {
	r, size := utf8.DecodeRuneInString(text)
	switch r {
	case '。', '，', '；', '？', '！', '、', '\n':
		return true, size
	case '.', '!', '?', ';', ',', ':':
		after, _ := utf8.DecodeRuneInString(text[size:])
		return size == len(text) || unicode.IsSpace(after), size
	case ' ':
		for _, word := range joints {
			if len(text) > size+len(word) && strings.EqualFold(text[size:size+len(word)], word) && text[size+len(word)] == ' ' {
				return true, size + len(word)
			}
		}
	}
	return false, size
}

// joints are the words that join what is asked for.
var joints = [...]string{"and", "then", "also", "while", "plus", "as well as"}
