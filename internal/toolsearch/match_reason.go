package toolsearch

import (
	"slices"
	"strings"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// minTermLetters is the length of the shortest word in a reason, and maxTerms the most words per place.
const minTermLetters, maxTerms = 3, 4

// A term is a word of a query with its stem.
type term struct{ word, stem string }

// queryTerms returns the distinct words of a query that can explain a match, in their order.
func queryTerms(query string) (out []term) {
	if len(query) > 2<<10 {
		query = query[:2<<10]
	}
	for _, word := range strings.FieldsFunc(strings.ToLower(query), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	}) {
		one := term{word, word}
		for _, ending := range []string{"ing", "es", "s", "ed"} {
			if short, ok := strings.CutSuffix(word, ending); ok && len(short) > minTermLetters {
				one.stem = short
				break
			}
		}
		known := func(other term) bool { return other.stem == one.stem }
		if len(one.stem) >= minTermLetters && !slices.ContainsFunc(out, known) && !slices.Contains(stopWords, word) {
			out = append(out, one)
		}
	}
	return out
}

// stopWords are words of queries without a meaning of their own.
var stopWords = []string{"the", "and", "for", "with", "from", "that", "this", "all", "any", "can", "are", "you", "into",
	"please", "want", "need", "how", "what", "which", "tool"}

// matchReason returns which words of a query are in a tool's name, description or parameters. A word counts in the
// first of these.
func matchReason(asked []term, spec drawbridge.Spec) string {
	var parameters strings.Builder
	for m := range rawjson.Members(rawjson.Get(spec.Definition, "inputSchema", "properties")) {
		name, _ := rawjson.DecodeString(m.Name)
		parameters.WriteString(strings.ToLower(name) + " ")
	}
	var said []string
	left := asked
	for _, place := range []struct{ name, text string }{
		{"name", strings.ToLower(string(spec.Name))},
		{"description", strings.ToLower(spec.Title + " " + rawjson.GetString(spec.Definition, "description"))},
		{"parameters", parameters.String()},
	} {
		var here []string
		var others []term
		for _, one := range left {
			if strings.Contains(place.text, one.stem) {
				here = append(here, one.word)
			} else {
				others = append(others, one)
			}
		}
		if left = others; len(here) > 0 {
			said = append(said, place.name+": "+strings.Join(here[:min(len(here), maxTerms)], ", "))
		}
	}
	return strings.Join(said, "; ")
}
