package words

import (
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/shield/coded"
)

// An Inspector looks at texts. It is safe for concurrent use, and keeps nothing between them.
type Inspector struct {
	reader  *reader
	matcher *matcher
	marks   *board
	scale   *Scale
}

// NewInspector makes an Inspector. The error is that of the lists of words, which were built in.
func NewInspector() (*Inspector, error) {
	lex, err := newLexicon()
	if err != nil {
		return nil, err
	}
	all := map[string]fact{}
	addParts(all)
	addMoved(all)
	scale := newScale(all)
	return &Inspector{&reader{lex: lex, fold: newFolder(), known: scale.known}, newMatcher(rules()), newBoard(marks()), scale}, nil
}

// deepest is how deep codes within codes are looked into.
const deepest = 3

const (
	// MostText is how many bytes of a definition's text are looked at. What it has beyond them is to be cut off.
	MostText = 64 << 10
	// mostResult is that of a result, which is flagged where it has more: nobody knows what it says there.
	mostResult = 1 << 20
)

// Drawn is the rule of a word whose letters are drawn as others.
const Drawn = "lookalikes"

// Look gives what a text in its canonical form has, by its bytes. Where it stands says how heavy its sentences may be, and about
// what it stands in; nil where nothing is around it.
func (in *Inspector) Look(text string, where Whence, at Place, about func() Topic) []Finding {
	most := mostResult
	if where == Definitions {
		most = MostText
	}
	unread := max(0, len(text)-most)
	text = text[:len(text)-unread]
	left := 4*len(text) + MostText // of decoded text that is looked at
	found := in.inspect(text, where, at, about, 0, &left)
	if unread > 0 && where == Results {
		found = append(found, Finding{"unread", "goes on beyond what is looked at", Flag, len(text), len(text) + unread})
	}
	return distinct(found)
}

// distinct leaves one of the findings of one rule that overlap: the one that asks for most, then the longest.
func distinct(found []Finding) []Finding {
	var out []Finding
	for _, f := range found {
		n := slices.IndexFunc(out, func(o Finding) bool { return o.Rule == f.Rule && f.At < o.End && o.At < f.End })
		switch {
		case n < 0:
			if len(out) < mostTraces {
				out = append(out, f)
			}
		case f.Act > out[n].Act:
			f.End = max(f.End, out[n].End)
			out[n] = f
		case f.Act == out[n].Act:
			out[n].End = max(f.End, out[n].End)
		}
	}
	return out
}

func (in *Inspector) inspect(text string, where Whence, at Place, about func() Topic, depth int, left *int) []Finding {
	if *left -= len(text); *left < 0 {
		return nil
	}
	room := in.reader.read(text)
	defer in.reader.free(room)
	words := room.all
	innocent := innocence{scale: in.scale, words: words, where: where}
	found := in.matcher.match(words, where, &innocent)
	has := coded.BytesIn(text)
	for _, f := range in.marks.marked(text, &has, where) {
		if n := wordAt(words, f.At); (f.Rule == "pipe" || f.Rule == "shell") && n < len(words) && (mentioned(words, n) || innocent.of(n)) {
			f.Act = Note
		}
		found = append(found, f)
	}
	if where == Definitions || has.Beyond() {
		found = append(found, drawn(words, text, where)...)
	}
	if !counting(found) {
		found = append(found, in.weighed(words, text, at, about)...)
	}
	if depth < deepest {
		for _, c := range coded.In(text, &has) {
			found = append(found, in.decoded(c, found, where, depth, left)...)
		}
		turned, moved := oddities(words)
		if turned {
			found = append(found, in.turns(words, text, where, left)...)
		}
		if !counting(found) {
			if moved {
				found = append(found, in.dressed(words, text, where, depth, left)...)
			}
			if has.Has('\\') || has.Has('%') || has.Has('=') || has.Has('&') {
				found = append(found, in.escapedRows(text, where, depth, left)...)
			}
		}
	}
	if len(found) > 1 {
		slices.SortStableFunc(found, func(a, b Finding) int { return a.At - b.At })
	}
	return found
}

// counting says whether one of the findings is more than a note.
func counting(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Act > Note })
}

// oddities says, by one look at the words, whether as many are odd as turns and dressed want at least.
func oddities(words []word) (turned, dressed bool) {
	mangled, latin, moved, apart, leet := 0, 0, 0, 0, 0
	for i := range words {
		w := &words[i]
		if w.mangled {
			mangled++
		}
		if w.way != 0 {
			moved++
		}
		if n := len(w.folded); n > 3 && w.folded[n-1] == 'y' && w.folded[n-2] == 'a' {
			latin++
		}
		if w.apart || w.signs&foreignSign != 0 {
			apart++
		}
		if w.signs&(figureSign|jointSign) != 0 && w.signs&(smallSign|capitalSign) != 0 {
			leet++
		}
	}
	return mangled >= 2 || latin >= fewestLatin, moved >= fewestMoved || apart >= fewestDressed || leet >= fewestDressed
}

// wordAt gives the first word that ends after a place in the text.
func wordAt(words []word, at int) int {
	n, _ := slices.BinarySearchFunc(words, at+1, func(w word, at int) int { return w.end - at })
	return n
}

// decoded says what a coded stretch would say that was not found in plain: an order that is hidden so is meant to get past
// people.
func (in *Inspector) decoded(c coded.Text, plain []Finding, where Whence, depth int, left *int) []Finding {
	worst := Note
	why := ""
	for _, f := range in.inspect(c.Text, where, Nowhere, nil, depth+1, left) {
		if f.Act > worst && !slices.ContainsFunc(plain, func(p Finding) bool { return p.Rule == f.Rule }) {
			worst, why = f.Act, f.Why
		}
	}
	switch {
	case worst > Note:
		return []Finding{{"encoded", "in " + c.How + ": " + why, Blank, c.At, c.End}}
	case prose(c.Text) && c.How != "entities" && c.How != "escapes":
		return []Finding{{"encoded", "has a sentence in " + c.How, Flag, c.At, c.End}}
	}
	return nil
}

// Orders says whether a text tells somebody what to do: a word of address or force, and one for what is to be done.
func (in *Inspector) Orders(text string) bool {
	has := concepts(0)
	room := in.reader.read(text)
	defer in.reader.free(room)
	for i := range room.all {
		has |= room.all[i].has
	}
	return has&(must|you|me|not|covert|call) != 0 && has&(read|send|ignore|change|removing|tell|you|call|wignore|wsend) != 0
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
func (in *Inspector) turns(words []word, text string, where Whence, left *int) []Finding {
	marks, first := 0, len(text)
	for _, w := range words {
		if w.mangled {
			marks++
			first = min(first, w.at)
		}
	}
	if plain := in.pigLatin(words); plain != "" {
		return in.decoded(coded.Text{How: "pig latin", Text: plain, At: words[0].at, End: len(text)}, nil, where, deepest-1, left)
	}
	if marks < 2 {
		return nil
	}
	for _, c := range [...]coded.Text{
		{How: "letters read from the end", Text: coded.Turned(text), At: first, End: len(text)},
		{How: "rot13", Text: coded.Shifted(text), At: first, End: len(text)},
	} {
		if found := in.decoded(c, nil, where, deepest-1, left); found != nil && found[0].Act == Blank {
			return found
		}
	}
	return nil
}

// drawn names words whose letters are of several alphabets that look the same, texts in letters of phonetics that are drawn
// as others turned round, and lines that no language has.
func drawn(words []word, text string, where Whence) (found []Finding) {
	const most = 8
	phonetic, seen := 0, 0 // seen is up to where: several words may have been one
	for _, w := range words {
		if w.mixed {
			return []Finding{{Drawn, "writes a word with the letters of several alphabets", Flag, w.at, w.end}}
		}
		if w.at < seen {
			continue
		}
		seen = w.end
		if where == Definitions && !ascii(text[w.at:w.end]) {
			for _, r := range text[w.at:w.end] {
				if r >= 0x0250 && r <= 0x02AF || r >= 0x1D00 && r <= 0x1D7F {
					phonetic++
				}
			}
		}
		if phonetic > most {
			return []Finding{{Drawn, "writes with letters that are drawn as others", Flag, w.at, w.end}}
		}
	}
	if where != Definitions {
		return nil
	}
	if voiceless(words, text) {
		return []Finding{{"garbled", "is written without vowels", Flag, words[0].at, words[len(words)-1].end}}
	}
	return garbled(words, text)
}

// seldom has, for each letter, a bit for each letter that hardly ever follows it in a language written with Latin letters:
// less than 60 times in a million pairs, counted in the descriptions of honest tools, their documents and the lists of words.
var seldom = [26]uint32{0x800000, 0x289942e, 0xe1306a, 0xa91420, 0x0, 0x2e1964e, 0x2a19024, 0x2e104e6, 0x0, 0x3c39eee, 0x2e0824a, 0x2830064, 0x2a10008, 0x830002, 0x10000, 0x2e13226, 0x3efb7ff, 0x810002, 0x800002, 0x21020a, 0x810000, 0x3e99eea, 0x2e1166a, 0x2f77e6e, 0x1a102c0, 0x2e30e66}

// garbled names a text whose pairs of letters are of no language: letters that were moved or replaced.
func garbled(words []word, text string) []Finding {
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
	return []Finding{{"garbled", "is written in no language, as if letters had been replaced", Flag, words[0].at, words[len(words)-1].end}}
}
