package main

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// mostAlike limits how often a sentence may occur in a package, names aside, before it carries no information.
const mostAlike = 6

// mostSentences is how many sentences of an entry are kept.
const mostSentences = 6

// withoutCommon leaves out what a package says of many things alike, as generated code does, and the entries of which
// nothing is left.
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

// A commoner counts the sentences of a package, with names masked.
type commoner struct {
	stems map[string]string
	count map[string]int
}

// masked returns a sentence with a mark in the place of words from the entry's names.
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
