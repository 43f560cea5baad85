package shield

import (
	"strings"
	"unicode/utf8"
)

// foldWords sets the folded form of each word, which is compared with the lexicon: lower case, with lookalike letters
// and digits replaced by plain letters. It also joins words that were split into letters or pieces, and splits words
// that were written without spaces. It returns the resulting words.
func (r *wordReader) foldWords(words []textWord, text string) []textWord {
	singles, longest := 0, 0
	for i := range words {
		w := &words[i]
		w.folded = text[w.at:w.end]
		if w.signs != classLower && w.signs != classDigit { // plain lower case or digits need no folding
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
	out := words[:i] // most texts have no split words and are not copied
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

// isLetterSign reports whether a character is a digit or sign that may stand for a letter, as "3" for "e".
func isLetterSign(c rune) bool {
	switch c {
	case '0', '1', '3', '4', '5', '7', '8', '@', '$', '!':
		return true
	}
	return false
}

// minLettersApart is the minimum number of successive single letters that are joined to a word. minGlued is the minimum
// length of a word that is split, in bytes.
const minLettersApart, minGlued = 5, 14

// joinLetters joins words that are written letter by letter, such as "s e n d". The gap is the text between two
// letters. The most frequent gap counts as the gap inside a word; any other gap separates two words.
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

// usualGap returns the most frequent text between the successive single letters in words.
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

// isSingleLetter reports whether a word is one letter, either as written or when folded. Folding decomposes a Hangul
// syllable into several letters, so the written form is checked too.
func isSingleLetter(w *textWord, text string) bool {
	if w.signs&classNonASCII == 0 {
		return len(w.folded) == 1
	}
	return utf8.RuneCountInString(w.folded) == 1 || w.end-w.at <= utf8.UTFMax &&
		utf8.RuneCountInString(text[w.at:w.end]) == 1
}

// splitGlued splits words that were written without spaces, such as "ignoreallinstructions". A word is split if at
// least three lexicon entries cover 70 % of it, or at least four cover 50 %.
func (r *wordReader) splitGlued(words []textWord) []textWord {
	var out []textWord // nil while no word was split
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

// isMostlyLetters reports whether at least half of a word's bytes are letters. It returns false for numbers and
// digests, which must not be split.
func isMostlyLetters(folded string) bool {
	letters := 0
	for i := range len(folded) {
		if folded[i] >= 'a' {
			letters++
		}
	}
	return letters*2 >= len(folded)
}

// entryParts returns the lexicon entries found one after the other in a word, and their total length in bytes.
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

// countPieces returns how many words at the beginning of words are pieces of one word, such as "ig-no-re" or "ign ore".
// It returns 1 if the first word is not such a piece.
func (r *wordReader) countPieces(words []textWord, text string) int {
	const most = 6
	if len(words) < 2 || words[0].at == words[1].at {
		return 1
	}
	if gap := words[1].at - words[0].end; gap == 1 && text[words[0].end] == ' ' { // the common case
		if len(words[0].folded)+len(words[1].folded) >= 5 && r.lexicon.isJoinedEntry(words[:2]) &&
			r.arePieces(words[:2]) {
			return 2
		}
		return 1
	}
	apart, signs := 1, 1 // number of words with any joining gap; number of words with sign gaps only
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

// gapBefore returns the text between word i and the word before it.
func gapBefore(words []textWord, i int, text string) string {
	return text[words[i-1].end:max(words[i-1].end, words[i].at)]
}

func isSignGap(gap string) bool {
	return gap != "" && len(gap) <= 4 && !strings.ContainsAny(gap, " \n\t_/")
}

// arePieces reports whether the words may be pieces of one word. If there are two words, neither may be a lexicon
// entry. If there are more words, at least one must not be an entry.
func (r *wordReader) arePieces(words []textWord) bool {
	known := 0
	for i := range words {
		if r.lexicon.hasEntry(words[i].folded) {
			known++
		}
	}
	return known == 0 || len(words) > 2 && known < len(words)
}

// isJoinedEntry reports whether the concatenation of the words is a lexicon entry.
func (l *conceptLexicon) isJoinedEntry(words []textWord) bool {
	at := treePosition{}
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
