package toolsearch

import (
	"slices"
	"strings"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// minTermLetters is the minimum length of a word in a reason, in bytes. maxTerms is the maximum number of words for
// each place, such as the name.
const minTermLetters, maxTerms = 3, 4

// A term is a word of a query and its stem.
type term struct{ word, stem string }

// queryTerms returns the distinct words of a query that can explain a match, in the order of the query.
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

// stopWords contains words that do not explain a match.
var stopWords = []string{"the", "and", "for", "with", "from", "that", "this", "all", "any", "can", "are", "you", "into",
	"please", "want", "need", "how", "what", "which", "tool"}

// matchReason returns a text that lists the words of a query in a tool's name, description and parameters. A word is
// listed only for the first of these places.
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
