package shield

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A word of a text, and what it is about.
type word struct {
	at, end  int    // in the text
	folded   string // how it is matched
	has      concepts
	sentence int
	quoted   bool
	mixed    bool // letters of several alphabets
}

// A reader turns texts into words.
type reader struct {
	lex  *lexicon
	fold *folder
}

// read gives the words of a text that are about something, and all of them in all.
func (r *reader) read(text string) (all []word) {
	all = r.spell(r.split(text), text)
	r.sentences(all, text)
	return r.lookUp(all, text)
}

// split gives the words of a text as they are written.
func (r *reader) split(text string) []word {
	words := make([]word, 0, len(text)/6+4)
	start, prev := -1, rune(0)
	end := func(i int) {
		if start >= 0 {
			words = append(words, word{at: start, end: i})
			start = -1
		}
	}
	for i := 0; i < len(text); {
		c, size := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case inWord(c):
			if start >= 0 && c < utf8.RuneSelf && hump(text, start, i) {
				end(i)
			}
			if start < 0 {
				start = i
			}
		case start >= 0 && c < utf8.RuneSelf && within(text, c, prev, i):
		case start >= 0 && unseen(c):
		default:
			end(i)
		}
		prev = c
		i += size
	}
	end(len(text))
	return words
}

func inWord(c rune) bool {
	if c < utf8.RuneSelf {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	return unicode.IsLetter(c) || unicode.IsMark(c) || unicode.IsDigit(c) || c >= 0x24B6 && c <= 0x24E9 || c >= 0x1F110 && c <= 0x1F189 || c >= 0x1F1E6 && c <= 0x1F1FF
}

// hump says whether a capital at i begins a new word of a name as programs have them: two small letters before it, and
// one after.
func hump(text string, start, i int) bool {
	small := func(j int) bool { return j < len(text) && text[j] >= 'a' && text[j] <= 'z' }
	return text[i] >= 'A' && text[i] <= 'Z' && i-start >= 2 && small(i-1) && small(i-2) && small(i+1) && (i+2 >= len(text) || !inWord(rune(text[i+2])) || small(i+2))
}

// within says whether a sign at i stands for a letter, or joins two halves of a word.
func within(text string, c, prev rune, i int) bool {
	if i+1 >= len(text) || !inWord(prev) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(text[i+1:])
	switch c {
	case '\'', '$', '!':
		return unicode.IsLetter(next) && unicode.IsLetter(prev)
	case '@':
		return unicode.IsLetter(next) && !strings.ContainsRune(until(text[i+1:]), '.')
	}
	return false
}

// until gives a text up to its first white space, 256 bytes of it at most.
func until(text string) string {
	text = text[:min(len(text), 256)]
	if n := strings.IndexAny(text, " \n\t"); n >= 0 {
		return text[:n]
	}
	return text
}

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

// sentences numbers the sentences, and notes what stands in quotation marks.
func (r *reader) sentences(words []word, text string) {
	number, since := 0, 0 // the sentence, and how many words since the last place that might end one
	var open rune
	opened := -1
	for i := range words {
		gap := text[lastEnd(words, i):max(words[i].at, lastEnd(words, i))]
		if hard := strings.Count(gap, "\n") > 1; hard || ends(gap) || capital(gap, text[words[i].at:]) {
			if since >= 3 || hard && since != 1 {
				number, open = number+1, 0
			}
			since = 0
		}
		since++
		for j, c := range gap {
			switch {
			case open == 0 && c == '\'' && j != len(gap)-1: // the end of a genitive
			case open != 0 && c == open:
				for j := opened; j < i && i-opened < 40; j++ {
					words[j].quoted = true
				}
				open = 0
			case open == 0 && closing(c) != 0:
				open, opened = closing(c), i
			}
		}
		words[i].sentence = number
	}
	if open != 0 && len(words) > 0 && strings.ContainsRune(text[words[len(words)-1].end:], open) {
		for j := opened; j < len(words) && len(words)-opened < 40; j++ {
			words[j].quoted = true
		}
	}
}

func lastEnd(words []word, i int) int {
	if i == 0 {
		return 0
	}
	return words[i-1].end
}

// closing gives the mark that ends a quotation which c begins.
func closing(c rune) rune {
	switch c {
	case '"', '\'', '`':
		return c
	case '“':
		return '”'
	case '‘':
		return '’'
	case '«':
		return '»'
	case '「':
		return '」'
	}
	return 0
}

// capital says whether a new line begins with a capital letter, or with the name of a thing and a colon.
func capital(gap, rest string) bool {
	_, line, ok := strings.Cut(gap, "\n")
	return ok && (strings.Trim(line, " \t") != "" || rest[0] >= 'A' && rest[0] <= 'Z')
}

// ends says whether what stands between two words ends a sentence.
func ends(gap string) bool {
	for i, c := range gap {
		switch c {
		case '.', '!', '?', ';':
			rest := gap[i+1:]
			if rest != "" && strings.ContainsAny(rest, " \n\t") {
				return true
			}
		case '。', '！', '？', '؟', '।', '；':
			return true
		case '\n':
			if rest := strings.TrimLeft(gap[i+1:], " \t"); rest != "" && strings.ContainsAny(rest[:1], "-*#>|+") {
				return true
			}
		}
	}
	return false
}

// lookUp finds what the words are about.
func (r *reader) lookUp(words []word, text string) []word {
	size := 0
	for i := range words {
		size += len(words[i].folded) + 1
	}
	norm := make([]byte, 0, size)
	for i := range words {
		norm = append(append(norm, words[i].folded...), ' ')
	}
	at := 0
	for i, n := 0, len(words); i < n; i++ {
		w := &words[i]
		if g := gluedScript(w.folded); g {
			for j := range w.folded {
				if has, _ := r.lex.at(norm, at+j, true); has != 0 {
					part := *w
					part.has = has
					words = append(words, part)
				}
			}
			w = &words[i]
		} else {
			w.has, _ = r.lex.at(norm, at, false)
			w.has |= shape(text, *w)
			if w.has&address != 0 && i > 0 && (words[i-1].has&mention != 0 || strings.Contains(" as g example like eg ", " "+words[i-1].folded+" ")) || strings.HasPrefix(text[w.end:], "@example.") {
				w.has &^= address // an example
			}
			if i > 0 && strings.HasPrefix(w.folded, "address") && (words[i-1].folded == "email" || words[i-1].folded == "mail") {
				words[i-1].has &^= out | send // a thing, not what to do
			}
		}
		at += len(w.folded) + 1
	}
	slices.SortStableFunc(words, func(a, b word) int { return a.at - b.at })
	return words
}

// gluedScript says whether words of the script are written without spaces, or with small words put before them.
func gluedScript(folded string) bool {
	c, _ := utf8.DecodeRuneInString(folded)
	return c >= 0x0590 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
		unicode.Hangul, unicode.Arabic, unicode.Hebrew, unicode.Tibetan, unicode.Ethiopic)
}

// hiddenNames are the files whose names begin with a dot and that keep what is secret, or what a shell starts with.
const hiddenNames = " env ssh aws bashrc zshrc profile netrc npmrc kube gnupg pgpass pypirc gitconfig git-credentials docker htpasswd "

// roots are the directories that paths of a machine's own begin with.
const roots = " home users root etc var tmp usr opt mnt srv proc data workspace "

// shape gives what a word is about by what stands around it: an address, a path, a name of a program's.
func shape(text string, w word) (has concepts) {
	rest := text[w.end:]
	before := text[:w.at]
	switch {
	case strings.HasPrefix(rest, "://"):
		has |= address
	case strings.HasPrefix(rest, "@") && len(rest) > 3 && strings.ContainsRune(until(rest), '.'):
		has |= address
	case strings.HasPrefix(rest, "_") && strings.Count(until(rest), "_") < 6:
		has |= ident
	}
	if w.at == 0 {
		return has
	}
	switch before[w.at-1] {
	case '.':
		if (w.at == 1 || !inWord(rune(before[w.at-2]))) && strings.Contains(hiddenNames, " "+w.folded+" ") {
			has |= place
		}
	case '/':
		if (w.at == 1 || strings.IndexByte(" \n\t'\"`(~", before[w.at-2]) >= 0) && strings.Contains(roots, " "+w.folded+" ") {
			has |= pathname
		}
	case '\'', '`', '"':
		if strings.HasPrefix(rest, before[w.at-1:]) {
			has |= ident
		}
	}
	return has
}
