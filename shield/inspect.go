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

// How much of one text is looked at. What a definition has beyond it is cut off.
const (
	mostText   = 64 << 10
	mostResult = 1 << 20
)

// look gives what a text in its canonical form has, by place.
func (in *inspector) look(text string, where whence) []finding {
	most := mostResult
	if where == definitions {
		most = mostText
	}
	text = text[:min(len(text), most)]
	left := 4*len(text) + mostText // of decoded text that is looked at
	return distinct(in.inspect(text, where, 0, &left))
}

// distinct leaves one of the findings of one rule that overlap: the one that asks for most, then the longest.
func distinct(found []finding) []finding {
	var out []finding
	for _, f := range found {
		n := slices.IndexFunc(out, func(o finding) bool { return o.rule == f.rule && f.at < o.end && o.at < f.end })
		switch {
		case n < 0:
			if len(out) < mostTraces {
				out = append(out, f)
			}
		case f.act > out[n].act:
			f.end = max(f.end, out[n].end)
			out[n] = f
		case f.act == out[n].act:
			out[n].end = max(f.end, out[n].end)
		}
	}
	return out
}

func (in *inspector) inspect(text string, where whence, depth int, left *int) []finding {
	if *left -= len(text); *left < 0 {
		return nil
	}
	words := in.reader.read(text)
	found := in.matcher.match(words, where)
	for _, f := range marked(in.marks, text, where) {
		if n := wordAt(words, f.at); (f.rule == "pipe" || f.rule == "shell") && n < len(words) && mentioned(words, n) {
			f.act = note
		}
		found = append(found, f)
	}
	found = append(found, drawn(words, text, where)...)
	if depth < deepest {
		for _, c := range decode(text) {
			found = append(found, in.decoded(c, found, where, depth, left)...)
		}
		found = append(found, in.turns(words, text, where, left)...)
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.at - b.at })
	return found
}

// wordAt gives the first word that ends after a place in the text.
func wordAt(words []word, at int) int {
	n, _ := slices.BinarySearchFunc(words, at+1, func(w word, at int) int { return w.end - at })
	return n
}

// decoded says what a coded stretch would say that was not found in plain: an order that is hidden so is meant to get past
// people.
func (in *inspector) decoded(c coded, plain []finding, where whence, depth int, left *int) []finding {
	worst := note
	why := ""
	for _, f := range in.inspect(c.text, where, depth+1, left) {
		if f.act > worst && !slices.ContainsFunc(plain, func(p finding) bool { return p.rule == f.rule }) {
			worst, why = f.act, f.why
		}
	}
	switch {
	case worst > note:
		return []finding{{"encoded", "in " + c.how + ": " + why, blank, c.at, c.end}}
	case prose(c.text) && c.how != "entities" && c.how != "escapes":
		return []finding{{"encoded", "has a sentence in " + c.how, flag, c.at, c.end}}
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
func (in *inspector) turns(words []word, text string, where whence, left *int) []finding {
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
		if found := in.decoded(c, nil, where, deepest-1, left); found != nil && found[0].act == blank {
			return found
		}
	}
	return nil
}

// drawn names words whose letters are of several alphabets that look the same, texts in letters of phonetics that are drawn
// as others turned round, and lines that no language has.
func drawn(words []word, text string, where whence) (found []finding) {
	const most = 8
	phonetic := 0
	for _, w := range words {
		if w.mixed {
			return []finding{{"lookalikes", "writes a word with the letters of several alphabets", flag, w.at, w.end}}
		}
		if where == definitions && !ascii(text[w.at:w.end]) {
			for _, r := range text[w.at:w.end] {
				if r >= 0x0250 && r <= 0x02AF || r >= 0x1D00 && r <= 0x1D7F {
					phonetic++
				}
			}
		}
		if phonetic > most {
			return []finding{{"lookalikes", "writes with letters that are drawn as others", flag, w.at, w.end}}
		}
	}
	if where == definitions {
		return garbled(words, text)
	}
	return nil
}

// seldom has, for each letter, a bit for each letter that hardly ever follows it in a language written with Latin letters:
// less than 60 times in a million pairs, counted in the descriptions of honest tools, their documents and the lists of words.
var seldom = [26]uint32{0x800000, 0x289942e, 0xe1306a, 0xa91420, 0x0, 0x2e1964e, 0x2a19024, 0x2e104e6, 0x0, 0x3c39eee, 0x2e0824a, 0x2830064, 0x2a10008, 0x830002, 0x10000, 0x2e13226, 0x3efb7ff, 0x810002, 0x800002, 0x21020a, 0x810000, 0x3e99eea, 0x2e1166a, 0x2f77e6e, 0x1a102c0, 0x2e30e66}

// garbled names a text whose pairs of letters are of no language: letters that were moved or replaced.
func garbled(words []word, text string) []finding {
	const fewest, percent = 40, 20
	pairs, odd := 0, 0
	for _, w := range words {
		if raw := text[w.at:w.end]; len(raw) != len(w.folded) || len(raw) < 3 || len(raw) > 16 || raw[1:] != w.folded[1:] {
			continue
		}
		for i := 1; i < len(w.folded); i++ {
			a, b := w.folded[i-1]-'a', w.folded[i]-'a'
			if a < 26 && b < 26 {
				pairs++
				odd += int(seldom[a] >> b & 1)
			}
		}
	}
	if pairs < fewest || odd*100 < pairs*percent {
		return nil
	}
	return []finding{{"garbled", "is written in no language, as if letters had been replaced", flag, words[0].at, words[len(words)-1].end}}
}
