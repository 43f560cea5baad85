package words

import (
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/shield/tree"
)

// spell finds how each word is to be matched: folded, with lookalikes and signs read as the letters they stand for, and
// the pieces of words that were taken apart put together.
func (r *reader) spell(words []word, text string) []word {
	singles, longest := 0, 0
	for i := range words {
		w := &words[i]
		w.folded = text[w.at:w.end]
		if w.signs != smallSign && w.signs != figureSign { // as most words are: nothing in them can be read otherwise
			w.folded = r.spelt(w.folded, w)
		}
		if single(w, text) {
			singles++
		}
		longest = max(longest, len(w.folded))
	}
	if singles >= fewestLettersApart {
		words = r.letters(words, text)
		longest = fewestGlued
	}
	if longest >= fewestGlued {
		words = r.glued(words)
	}
	i := 0
	for i < len(words) && r.pieces(words[i:], text) == 1 {
		i++
	}
	out := words[:i] // most texts have no words in pieces, and are not moved
	for i < len(words) {
		n := r.pieces(words[i:], text)
		w := words[i]
		for _, p := range words[i+1 : i+n] {
			w.folded += p.folded
			w.end = p.end
			w.signs = anySign
		}
		out = append(out, w)
		i += n
	}
	return out
}

func (r *reader) spelt(raw string, w *word) string {
	folded := raw
	switch {
	case w.signs&foreignSign != 0:
		folded = fold(raw)
	case w.signs&capitalSign != 0:
		folded = strings.ToLower(raw)
	}
	if w.signs&^(smallSign|capitalSign) == 0 {
		return folded
	}
	if i := strings.IndexByte(folded, '\''); i >= 0 {
		folded = strings.ReplaceAll(folded, "'", "")
	}
	if w.signs&foreignSign != 0 && !ascii(folded) {
		w.mixed = r.fold.mixed(raw)
		if read, ok := r.fold.latin(folded); ok && (w.mixed || !r.lex.has(folded) && r.lex.has(read)) {
			return read
		}
	} else if len(folded) >= 4 && strings.IndexFunc(folded, stands) >= 0 && !r.lex.has(folded) {
		if read, ok := r.fold.unleet(folded); ok {
			if r.lex.has(read) {
				return read
			}
			if other := strings.ReplaceAll(folded, "1", "l"); other != folded {
				if read, ok := r.fold.unleet(other); ok && r.lex.has(read) {
					return read
				}
			}
		}
	}
	return folded
}

// stands says whether a sign is one that is written for a letter.
func stands(c rune) bool {
	switch c {
	case '0', '1', '3', '4', '5', '7', '8', '@', '$', '!':
		return true
	}
	return false
}

// fewestLettersApart is how many letters a word has that is put together, and fewestGlued how long one is that is taken apart.
const fewestLettersApart, fewestGlued = 5, 14

// letters puts words together that are written letter by letter. What stands between the first two stands between all
// letters of a word; anything else ends it.
func (r *reader) letters(words []word, text string) []word {
	out := words[:0]
	for i := 0; i < len(words); {
		n := i
		for n < len(words) && single(&words[n], text) && (n == i || words[n].at-words[n-1].end <= 6) {
			n++
		}
		if n-i < fewestLettersApart {
			n = max(n, i+1)
			out = append(out, words[i:n]...)
			i = n
			continue
		}
		first := i
		gap := usualGap(words[i:n], text)
		for ; i < n; i++ {
			last := len(out) - 1
			if i > first && len(out[last].folded) < longest && text[words[i-1].end:words[i].at] == gap {
				out[last].folded += words[i].folded
				out[last].end = words[i].end
				out[last].apart = true
				out[last].signs = anySign
				continue
			}
			out = append(out, words[i])
		}
	}
	return out
}

// usualGap gives what stands between most of the letters.
func usualGap(words []word, text string) string {
	seen := map[string]int{}
	best := ""
	for i := 1; i < len(words); i++ {
		gap := text[words[i-1].end:words[i].at]
		if seen[gap]++; seen[gap] > seen[best] {
			best = gap
		}
	}
	return best
}

// single says whether a word is one letter, as it is written or as it is matched: a syllable of Hangul is matched as several.
func single(w *word, text string) bool {
	if w.signs&foreignSign == 0 {
		return len(w.folded) == 1
	}
	return utf8.RuneCountInString(w.folded) == 1 || w.end-w.at <= utf8.UTFMax && utf8.RuneCountInString(text[w.at:w.end]) == 1
}

// glued takes words apart that were written as one: three entries at least that make up nearly all of it, or four that make
// up half.
func (r *reader) glued(words []word) []word {
	var out []word // nil as long as all words are as they were
	for i := range words {
		w := &words[i]
		var parts []string
		covered := 0
		if len(w.folded) >= fewestGlued && lettered(w.folded) && ascii(w.folded) && !r.lex.has(w.folded) {
			parts, covered = r.parts(w.folded)
		}
		whole := len(parts) < 3 || covered*10 < len(w.folded)*7 && (len(parts) < 4 || covered*10 < len(w.folded)*5)
		switch {
		case whole && out == nil:
			continue
		case whole:
			out = append(out, *w)
			continue
		case out == nil:
			out = append(make([]word, 0, len(words)+8), words[:i]...)
		}
		for _, p := range parts {
			out = append(out, word{at: w.at, end: w.end, folded: p, signs: w.signs})
		}
	}
	if out == nil {
		return words
	}
	return out
}

// lettered says whether a word has as many letters as other signs: a number or a digest has not, and is made of no entries.
func lettered(folded string) bool {
	letters := 0
	for i := range len(folded) {
		if folded[i] >= 'a' {
			letters++
		}
	}
	return letters*2 >= len(folded)
}

// parts gives the entries that a word is made of, and how many bytes they are.
func (r *reader) parts(folded string) (parts []string, covered int) {
	text := []byte(folded)
	for i := 0; i < len(folded); {
		size := 0
		if i+1 < len(text) && r.lex.begins(text[i], text[i+1]) {
			_, size = r.lex.at(text, i, true)
		}
		if size < 3 {
			i++
			continue
		}
		parts = append(parts, folded[i:i+size])
		covered += size
		i += size
	}
	return parts, covered
}

// pieces says how many words, from the first on, are one that was taken apart: by signs, or in two by a space.
func (r *reader) pieces(words []word, text string) int {
	const most = 6
	if len(words) < 2 || words[0].at == words[1].at {
		return 1
	}
	if gap := words[1].at - words[0].end; gap == 1 && text[words[0].end] == ' ' { // as between most words
		if len(words[0].folded)+len(words[1].folded) >= 5 && r.lex.joined(words[:2]) && r.fewKnown(words[:2]) {
			return 2
		}
		return 1
	}
	apart, signs := 1, 1 // so many words have what parts a word between them, and so many signs only
	for apart < min(most, len(words)) {
		gap := between(words, apart, text)
		if partedBySigns(gap) {
			if signs == apart {
				signs++
			}
		} else if !strings.Contains(gap, "+") || strings.Trim(gap, "'\"+ ") != "" {
			break
		}
		apart++
	}
	for n := apart; n > 1; n-- {
		size := 0
		for i := range words[:n] {
			size += len(words[i].folded)
		}
		if (size >= 5 || size == 4 && signs >= n) && r.lex.joined(words[:n]) && r.fewKnown(words[:n]) {
			return n
		}
	}
	return 1
}

// between gives what stands before a word and after the one before it.
func between(words []word, i int, text string) string {
	return text[words[i-1].end:max(words[i-1].end, words[i].at)]
}

func partedBySigns(gap string) bool {
	return gap != "" && len(gap) <= 4 && !strings.ContainsAny(gap, " \n\t_/")
}

// fewKnown says whether words are pieces rather than words: of two neither is an entry, of more not all.
func (r *reader) fewKnown(words []word) bool {
	known := 0
	for i := range words {
		if r.lex.has(words[i].folded) {
			known++
		}
	}
	return known == 0 || len(words) > 2 && known < len(words)
}

// joined says whether the words put together are an entry.
func (l *lexicon) joined(words []word) bool {
	at := tree.Spot{}
	for w := range words {
		folded := words[w].folded
		for i := range len(folded) {
			if at.None() {
				at = l.tree.Begin(folded[i])
			} else {
				at = l.tree.Next(at, folded[i])
			}
			if at.None() {
				return false
			}
		}
	}
	return l.tree.Value(at) != 0
}
