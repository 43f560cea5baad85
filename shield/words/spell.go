package words

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// spell finds how each word is to be matched: folded, with lookalikes and signs read as the letters they stand for, and
// the pieces of words that were taken apart put together.
func (r *reader) spell(words []word, text string) []word {
	for i := range words {
		words[i].folded = r.spelt(text[words[i].at:words[i].end], &words[i])
	}
	words = r.letters(words, text)
	out := words[:0]
	for i := 0; i < len(words); {
		n := r.pieces(words[i:], text)
		w := words[i]
		for _, p := range words[i+1 : i+n] {
			w.folded += p.folded
			w.end = p.end
		}
		out = append(out, w)
		i += n
	}
	return out
}

func (r *reader) spelt(raw string, w *word) string {
	folded := fold(raw)
	if i := strings.IndexByte(folded, '\''); i >= 0 {
		folded = strings.ReplaceAll(folded, "'", "")
	}
	if !ascii(folded) {
		w.mixed = r.fold.mixed(raw)
		if read, ok := r.fold.latin(folded); ok && (w.mixed || !r.lex.has(folded) && r.lex.has(read)) {
			return read
		}
	} else if len(folded) >= 4 && strings.ContainsAny(folded, "0134578@$!") && !r.lex.has(folded) {
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

// letters puts words together that are written letter by letter. What stands between the first two stands between all
// letters of a word; anything else ends it.
func (r *reader) letters(words []word, text string) []word {
	const fewest = 5
	out := words[:0]
	for i := 0; i < len(words); {
		n := i
		for n < len(words) && single(words[n]) && (n == i || words[n].at-words[n-1].end <= 6) {
			n++
		}
		if n-i < fewest {
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
				continue
			}
			out = append(out, words[i])
		}
	}
	return r.glued(out)
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

func single(w word) bool { return utf8.RuneCountInString(w.folded) == 1 }

// glued takes words apart that were written as one: three entries at least that make up nearly all of it, or four that make
// up half.
func (r *reader) glued(words []word) []word {
	const fewest = 14
	long := func(w word) bool { return len(w.folded) >= fewest && ascii(w.folded) && !r.lex.has(w.folded) }
	if !slices.ContainsFunc(words, long) {
		return words
	}
	out := make([]word, 0, len(words)+8)
	for _, w := range words {
		parts, covered := []string(nil), 0
		if long(w) {
			parts, covered = r.parts(w.folded)
		}
		if len(parts) < 3 || covered*10 < len(w.folded)*7 && (len(parts) < 4 || covered*10 < len(w.folded)*5) {
			out = append(out, w)
			continue
		}
		for _, p := range parts {
			out = append(out, word{at: w.at, end: w.end, folded: p})
		}
	}
	return out
}

// parts gives the entries that a word is made of, and how many bytes they are.
func (r *reader) parts(folded string) (parts []string, covered int) {
	text := []byte(folded)
	for i := 0; i < len(folded); {
		_, size := r.lex.at(text, i, true)
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
	for n := min(most, len(words)); n > 1; n-- {
		length, known := 0, 0
		apart, spaced := true, false
		for i, w := range words[:n] {
			length += len(w.folded)
			if r.lex.has(w.folded) {
				known++
			}
			if i > 0 {
				gap := words[i].at - words[i-1].end
				between := ""
				if gap > 0 {
					between = text[words[i-1].end:words[i].at]
				}
				signs := gap > 0 && gap <= 4 && !strings.ContainsAny(between, " \n\t_/")
				spaced = spaced || !signs
				apart = apart && (signs || n == 2 && between == " " || strings.Trim(between, "'\"+ ") == "" && strings.Contains(between, "+"))
			}
		}
		if apart && (length >= 5 || length == 4 && !spaced) && known < n && (known == 0 || n > 2) && r.lex.joined(words[:n]) {
			return n
		}
	}
	return 1
}

// joined says whether the words put together are an entry.
func (l *lexicon) joined(words []word) bool {
	n := int32(0)
	for _, w := range words {
		for i := range len(w.folded) {
			if n = l.step(n, w.folded[i]); n == 0 {
				return false
			}
		}
	}
	return l.nodes[n].word != 0 || l.nodes[n].stem != 0
}
