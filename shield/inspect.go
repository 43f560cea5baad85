package shield

import (
	"slices"
	"strings"
)

// An inspector looks at texts. It keeps nothing between them.
type inspector struct {
	reader  *reader
	matcher *matcher
	marks   []mark
}

// mostText bounds how much of one text is looked at. What a definition has beyond it is cut off.
const mostText = 64 << 10

// inspect gives what a text in its canonical form has, by place.
func (in *inspector) inspect(text string, where whence, depth int) []finding {
	if len(text) > mostText && where == definitions {
		text = text[:mostText]
	}
	words := in.reader.read(text)
	found := in.matcher.match(words, where)
	found = append(found, marked(in.marks, text, where)...)
	found = append(found, drawn(words, where)...)
	if depth < deepest {
		for _, c := range decode(text) {
			found = append(found, in.decoded(c, found, where, depth)...)
		}
		found = append(found, in.turns(words, text, where)...)
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.at - b.at })
	return found
}

// decoded says what a coded stretch would say that was not found in plain: an order that is hidden so is meant to get past
// people.
func (in *inspector) decoded(c coded, plain []finding, where whence, depth int) []finding {
	worst := Note
	why := ""
	for _, f := range in.inspect(c.text, where, depth+1) {
		if f.act > worst && !slices.ContainsFunc(plain, func(p finding) bool { return p.rule == f.rule }) {
			worst, why = f.act, f.why
		}
	}
	switch {
	case worst > Note:
		return []finding{{"encoded", "in " + c.how + ": " + why, Blank, c.at, c.end}}
	case prose(c.text) && c.how != "entities" && c.how != "escapes":
		return []finding{{"encoded", "has a sentence in " + c.how, Flag, c.at, c.end}}
	}
	return nil
}

// prose says whether a decoded text is of words: four at least, with spaces between, in letters for the most part.
func prose(text string) bool {
	words := strings.Fields(text)
	letters := 0
	for _, w := range words {
		if strings.Trim(strings.ToLower(w), "abcdefghijklmnopqrstuvwxyz'.,!?") == "" {
			letters++
		}
	}
	return len(words) >= 4 && letters*4 >= len(words)*3
}

// turns looks at a text that seems to be read from its end, or to have its letters moved.
func (in *inspector) turns(words []word, text string, where whence) []finding {
	marks, first := 0, len(text)
	for _, w := range words {
		if w.has&mangled != 0 {
			marks++
			first = min(first, w.at)
		}
	}
	if marks < 2 {
		return nil
	}
	for _, c := range []coded{{"letters read from the end", turned(text), first, len(text)}, {"rot13", shifted(text), first, len(text)}} {
		if found := in.decoded(c, nil, where, deepest-1); found != nil && found[0].act == Blank {
			return found
		}
	}
	return nil
}

// drawn names words whose letters are of several alphabets that look the same.
func drawn(words []word, where whence) []finding {
	for _, w := range words {
		if w.mixed {
			return []finding{{"lookalikes", "writes a word with the letters of several alphabets", Flag, w.at, w.end}}
		}
	}
	return nil
}
