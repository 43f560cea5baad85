package toolsearch

import (
	"slices"
	"strings"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// minTermLetters is the minimum length in bytes of a word in the reason for a match. maxTerms is the maximum number
// of words that the reason lists for each place, such as the tool's name.
const minTermLetters, maxTerms = 3, 4

// A term is a word of a query and its stem.
type term struct{ word, stem string }

// queryTerms returns the distinct words of a query that may appear in the reason for a match, in the order of the
// query. It omits stop words and short words.
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

// stopWords contains words that do not appear in the reason for a match.
var stopWords = []string{"the", "and", "for", "with", "from", "that", "this", "all", "any", "can", "are", "you", "into",
	"please", "want", "need", "how", "what", "which", "tool"}

// matchReason returns the reason why a tool matches a query, as a text. The text lists the words of the query that
// occur in the tool's name, description and parameters. Each word is listed only for the first of these places. The
// text is empty if no word occurs.
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
