package injection

import (
	"strings"
	"unicode/utf8"
)

// foldWords finds how each word is to be matched: folded, with lookalikes and signs read as the letters they stand
// for, and the pieces of words that were taken apart put together.
func (r *wordReader) foldWords(words []textWord, text string) []textWord {
	singles, longest := 0, 0
	for i := range words {
		w := &words[i]
		w.folded = text[w.at:w.end]
		if w.signs != classLower && w.signs != classDigit { // as most words are: nothing in them can be read otherwise
			w.folded = r.foldSpelling(w.folded, w)
		}
		if isSingleLetter(w, text) {
			singles++
		}
		longest = max(longest, len(w.folded))
	}
	if singles >= minLettersApart {
		words = r.joinLetters(words, text)
		longest = minGlued
	}
	if longest >= minGlued {
		words = r.splitGlued(words)
	}
	i := 0
	for i < len(words) && r.countPieces(words[i:], text) == 1 {
		i++
	}
	out := words[:i] // most texts have no words in pieces, and are not moved
	for i < len(words) {
		n := r.countPieces(words[i:], text)
		w := words[i]
		for _, p := range words[i+1 : i+n] {
			w.folded += p.folded
			w.end = p.end
			w.signs = classAny
		}
		out = append(out, w)
		i += n
	}
	return out
}

func (r *wordReader) foldSpelling(raw string, w *textWord) string {
	folded := raw
	switch {
	case w.signs&classNonASCII != 0:
		folded = foldWord(raw)
	case w.signs&classUpper != 0:
		folded = strings.ToLower(raw)
	}
	if w.signs&^(classLower|classUpper) == 0 {
		return folded
	}
	if i := strings.IndexByte(folded, '\''); i >= 0 {
		folded = strings.ReplaceAll(folded, "'", "")
	}
	if w.signs&classNonASCII != 0 && !isASCII(folded) {
		w.mixedAlphabets = r.fold.mixesAlphabets(raw)
		if read, ok := r.fold.readAsLatin(folded); ok && (w.mixedAlphabets || !r.lexicon.hasEntry(folded) &&
			r.lexicon.hasEntry(read)) {
			return read
		}
	} else if len(folded) >= 4 && strings.IndexFunc(folded, isLetterSign) >= 0 && !r.lexicon.hasEntry(folded) {
		if read, ok := r.fold.readLeet(folded); ok {
			if r.lexicon.hasEntry(read) {
				return read
			}
			if other := strings.ReplaceAll(folded, "1", "l"); other != folded {
				if read, ok := r.fold.readLeet(other); ok && r.lexicon.hasEntry(read) {
					return read
				}
			}
		}
	}
	return folded
}

// isLetterSign reports whether a sign is one that is written for a letter.
func isLetterSign(c rune) bool {
	switch c {
	case '0', '1', '3', '4', '5', '7', '8', '@', '$', '!':
		return true
	}
	return false
}

// minLettersApart is how many letters a word has that is put together, and minGlued how long one is that is taken
// apart.
const minLettersApart, minGlued = 5, 14

// joinLetters puts words together that are written letter by letter. What stands between the first two stands between
// all letters of a word; anything else ends it.
func (r *wordReader) joinLetters(words []textWord, text string) []textWord {
	out := words[:0]
	for i := 0; i < len(words); {
		n := i
		for n < len(words) && isSingleLetter(&words[n], text) && (n == i || words[n].at-words[n-1].end <= 6) {
			n++
		}
		if n-i < minLettersApart {
			n = max(n, i+1)
			out = append(out, words[i:n]...)
			i = n
			continue
		}
		first := i
		gap := usualGap(words[i:n], text)
		for ; i < n; i++ {
			last := len(out) - 1
			if i > first && len(out[last].folded) < maxEntryBytes && text[words[i-1].end:words[i].at] == gap {
				out[last].folded += words[i].folded
				out[last].end = words[i].end
				out[last].lettersApart = true
				out[last].signs = classAny
				continue
			}
			out = append(out, words[i])
		}
	}
	return out
}

// usualGap returns what stands between most of the letters.
func usualGap(words []textWord, text string) string {
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

// isSingleLetter reports whether a word is one letter, as it is written or as it is matched: a syllable of Hangul is
// matched as several.
func isSingleLetter(w *textWord, text string) bool {
	if w.signs&classNonASCII == 0 {
		return len(w.folded) == 1
	}
	return utf8.RuneCountInString(w.folded) == 1 || w.end-w.at <= utf8.UTFMax &&
		utf8.RuneCountInString(text[w.at:w.end]) == 1
}

// splitGlued takes words apart that were written as one: three entries at least that make up nearly all of it, or four
// that make up half.
func (r *wordReader) splitGlued(words []textWord) []textWord {
	var out []textWord // nil as long as all words are as they were
	for i := range words {
		w := &words[i]
		var parts []string
		covered := 0
		if len(w.folded) >= minGlued && isMostlyLetters(w.folded) && isASCII(w.folded) &&
			!r.lexicon.hasEntry(w.folded) {
			parts, covered = r.entryParts(w.folded)
		}
		whole := len(parts) < 3 || covered*10 < len(w.folded)*7 && (len(parts) < 4 || covered*10 < len(w.folded)*5)
		switch {
		case whole && out == nil:
			continue
		case whole:
			out = append(out, *w)
			continue
		case out == nil:
			out = append(make([]textWord, 0, len(words)+8), words[:i]...)
		}
		for _, p := range parts {
			out = append(out, textWord{at: w.at, end: w.end, folded: p, signs: w.signs})
		}
	}
	if out == nil {
		return words
	}
	return out
}

// isMostlyLetters reports whether a word has as many letters as other signs: a number or a digest has not, and is made
// of no entries.
func isMostlyLetters(folded string) bool {
	letters := 0
	for i := range len(folded) {
		if folded[i] >= 'a' {
			letters++
		}
	}
	return letters*2 >= len(folded)
}

// entryParts returns the entries that a word is made of, and how many bytes they are.
func (r *wordReader) entryParts(folded string) (parts []string, covered int) {
	text := []byte(folded)
	for i := 0; i < len(folded); {
		size := 0
		if i+1 < len(text) && r.lexicon.mayBegin(text[i], text[i+1]) {
			_, size = r.lexicon.conceptsAt(text, i, true)
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

// countPieces returns how many words, from the first on, are one that was taken apart: by signs, or in two by a space.
func (r *wordReader) countPieces(words []textWord, text string) int {
	const most = 6
	if len(words) < 2 || words[0].at == words[1].at {
		return 1
	}
	if gap := words[1].at - words[0].end; gap == 1 && text[words[0].end] == ' ' { // as between most words
		if len(words[0].folded)+len(words[1].folded) >= 5 && r.lexicon.isJoinedEntry(words[:2]) &&
			r.arePieces(words[:2]) {
			return 2
		}
		return 1
	}
	apart, signs := 1, 1 // so many words have what parts a word between them, and so many signs only
	for apart < min(most, len(words)) {
		gap := gapBefore(words, apart, text)
		if isSignGap(gap) {
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
		if (size >= 5 || size == 4 && signs >= n) && r.lexicon.isJoinedEntry(words[:n]) && r.arePieces(words[:n]) {
			return n
		}
	}
	return 1
}

// gapBefore returns what stands before a word and after the one before it.
func gapBefore(words []textWord, i int, text string) string {
	return text[words[i-1].end:max(words[i-1].end, words[i].at)]
}

func isSignGap(gap string) bool {
	return gap != "" && len(gap) <= 4 && !strings.ContainsAny(gap, " \n\t_/")
}

// arePieces reports whether words are pieces rather than words: of two neither is an entry, of more not all.
func (r *wordReader) arePieces(words []textWord) bool {
	known := 0
	for i := range words {
		if r.lexicon.hasEntry(words[i].folded) {
			known++
		}
	}
	return known == 0 || len(words) > 2 && known < len(words)
}

// isJoinedEntry reports whether the words put together are an entry.
func (l *conceptLexicon) isJoinedEntry(words []textWord) bool {
	at := TreePosition{}
	for w := range words {
		folded := words[w].folded
		for i := range len(folded) {
			if at.IsNone() {
				at = l.entries.Begin(folded[i])
			} else {
				at = l.entries.Next(at, folded[i])
			}
			if at.IsNone() {
				return false
			}
		}
	}
	return l.entries.Value(at) != 0
}
