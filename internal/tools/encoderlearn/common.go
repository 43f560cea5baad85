package main

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// mostAlike is the maximum number of times that a sentence may occur in a package, if names are ignored. More
// frequent sentences contain no information and are removed.
const mostAlike = 6

// mostSentences is the maximum number of sentences of an entry.
const mostSentences = 6

// withoutCommon removes sentences that a package repeats for many entries, as generated code does, and sentences of
// one word. It drops entries whose text is then empty.
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

// A commoner counts equal sentences of a package. Names in the sentences are replaced by a mark.
type commoner struct {
	stems map[string]string
	count map[string]int
}

// masked returns a sentence in which words that occur in the entry's names are replaced by "_".
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
