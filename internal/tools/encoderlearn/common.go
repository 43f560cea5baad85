package main

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// mostAlike is the maximum number of times that a sentence may occur in a package. Sentences that differ only in
// names are counted as equal. A more frequent sentence contains no information and is removed.
const mostAlike = 6

// mostSentences is the maximum number of sentences in the text of an entry; further sentences are removed.
const mostSentences = 6

// withoutCommon removes sentences that occur more than mostAlike times in a package, as in generated code. It also
// removes sentences of one word and sentences above mostSentences. It removes entries whose text is then empty.
func withoutCommon(all []entry) []entry {
	c := commoner{stems: map[string]string{}, count: map[string]int{}}
	said := make([][]string, len(all))
	for i := range all {
		for _, s := range sentences(all[i].Text) {
			m := c.masked(&all[i], s)
			said[i] = append(said[i], m)
			c.count[m]++
		}
	}
	var out []entry
	for i, e := range all {
		var kept []string
		for k, s := range sentences(e.Text) {
			if m := said[i][k]; len(kept) < mostSentences && strings.Count(m, " ") > 0 && c.count[m] <= mostAlike {
				kept = append(kept, s)
			}
		}
		if e.Text = strings.Join(kept, " "); e.Text != "" {
			out = append(out, e)
		}
	}
	return out
}

// A commoner counts the sentences of a package, after the names in each sentence are replaced by a mark.
type commoner struct {
	stems map[string]string
	count map[string]int
}

// masked returns the words of a sentence, separated by spaces. Words that occur in the names of the entry's server,
// function or parameters are replaced by "_".
func (c *commoner) masked(e *entry, sentence string) string {
	own := map[string]bool{}
	for _, text := range append([]string{e.Server, e.Name}, e.Params...) {
		for _, w := range index.SplitWords(text) {
			own[c.stem(w)] = true
		}
	}
	var out []string
	for _, w := range index.SplitWords(sentence) {
		if own[c.stem(w)] {
			w = "_"
		}
		if w != "_" || len(out) == 0 || out[len(out)-1] != "_" {
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}

func (c *commoner) stem(word string) string {
	s, ok := c.stems[word]
	if !ok {
		s = index.StemWord(word)
		c.stems[word] = s
	}
	return s
}
