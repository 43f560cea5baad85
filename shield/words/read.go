package words

import (
	"slices"
	"strings"
	"sync"
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
	apart    bool // written letter by letter
	signs    sign // what is in it as it is written, or may be
	fact
}

// A sign is what may stand in a word.
type sign uint8

const (
	smallSign   sign = 1 << iota // a small letter of ASCII
	figureSign                   // a digit of ASCII
	capitalSign                  // a capital of ASCII
	jointSign                    // what else of ASCII there is: a sign that stands for a letter or joins two halves, or what is not seen
	foreignSign                  // what is beyond ASCII
	anySign     = 1<<iota - 1
)

// signOf has what each byte of ASCII is that a word may have, 0 for none.
var signOf = func() (of [256]sign) {
	for b := range byte(utf8.RuneSelf) {
		switch {
		case 'a' <= b && b <= 'z':
			of[b] = smallSign
		case '0' <= b && b <= '9':
			of[b] = figureSign
		case 'A' <= b && b <= 'Z':
			of[b] = capitalSign
		case strings.IndexByte("'$!@", b) >= 0, unseen(rune(b)):
			of[b] = jointSign
		}
	}
	return of
}()

// A reader turns texts into words.
type reader struct {
	lex   *lexicon
	fold  *folder
	known map[string]fact
	// rooms are for the words of short texts, each for one text at a time.
	rooms sync.Pool
}

// A room is where the words of a text are, and all of it that is matched.
type room struct {
	all   []word // the words as they were read
	words []word // where they were split, which may be too small for all
	norm  []byte
}

// mostRoom is how many words a room may have that is used again, and mostNorm how many bytes of them.
const (
	mostRoom = 4096
	mostNorm = 64 << 10
)

// read gives the words of a text in a room, which is the caller's until it is freed.
func (r *reader) read(text string) *room {
	in, _ := r.rooms.Get().(*room)
	if in == nil {
		in = &room{words: make([]word, 0, 64)}
	}
	in.words = r.split(in.words[:0], text)
	all := r.spell(in.words, text)
	r.sentences(all, text)
	in.all, in.norm = r.lookUp(all, text, in.norm[:0])
	for i := range in.all {
		w := &in.all[i]
		w.fact = r.known[w.folded]
	}
	return in
}

func (r *reader) free(in *room) {
	if cap(in.words) > mostRoom || cap(in.norm) > mostNorm {
		return
	}
	clear(in.words[:min(max(len(in.words), len(in.all)), cap(in.words))]) // nothing of a text is kept
	clear(in.norm)
	in.all = nil
	r.rooms.Put(in)
}

// split appends the words of a text as they are written.
func (r *reader) split(words []word, text string) []word {
	start, prev := -1, rune(0)
	signs := sign(0)
	for i := 0; i < len(text); {
		c, size, is := rune(text[i]), 1, signOf[text[i]]
		if is&(smallSign|figureSign) != 0 { // of one word, whatever stands before
			if start < 0 {
				start = i
			}
			for ; is&(smallSign|figureSign) != 0; is = signOf[text[i]] {
				signs |= is
				if i++; i == len(text) {
					break
				}
			}
			prev = rune(text[i-1])
			continue
		}
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(text[i:])
			is = foreignSign
		}
		ends, begins := false, false
		switch {
		case is == capitalSign:
			ends, begins = start >= 0 && hump(text, start, i), true
		case is == foreignSign:
			begins = inWord(c)
			ends = !begins && (start < 0 || !unseen(c))
		case is == jointSign && start >= 0 && (unseen(c) || within(text, c, prev, i)):
		default:
			ends = true
			if c == '\\' && i+1 < len(text) && strings.IndexByte("nrt", text[i+1]) >= 0 {
				size = 2 // a line end as JSON has it, and no letter of the word behind
			}
		}
		if ends && start >= 0 {
			words = append(words, word{at: start, end: i, signs: signs})
			start, signs = -1, 0
		}
		if begins && start < 0 {
			start = i
		}
		if start >= 0 {
			signs |= is
		}
		prev = c
		i += size
	}
	if start >= 0 {
		words = append(words, word{at: start, end: len(text), signs: signs})
	}
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

// sentences numbers the sentences, and notes what stands in quotation marks.
func (r *reader) sentences(words []word, text string) {
	number, since := 0, 0 // the sentence, and how many words since the last place that might end one
	var open rune
	opened := -1
	for i := range words {
		before := lastEnd(words, i)
		if n := words[i].at - before; n <= 0 || n == 1 && text[before] == ' ' {
			since++ // as between most words
			words[i].sentence = number
			continue
		}
		gap := text[before:words[i].at]
		rest := gap
		if open != 0 {
			if at := strings.IndexRune(gap, open); at >= 0 {
				quote(words, opened, i)
				rest, open = gap[at+utf8.RuneLen(open):], 0
			}
		}
		if hard := strings.Count(gap, "\n") > 1 || cell(gap); hard || ends(gap) || capital(gap, text[words[i].at:]) {
			if since >= 3 || hard && since != 1 || strings.ContainsAny(gap, "。！？") {
				number, open = number+1, 0
			}
			since = 0
		}
		since++
		for j, c := range rest {
			switch {
			case open == 0 && c == '\'' && j != len(rest)-1: // the end of a genitive
			case open != 0 && c == open:
				open = 0 // nothing stands between
			case open == 0 && closing(c) != 0:
				open, opened = closing(c), i
			}
		}
		words[i].sentence = number
	}
	if open != 0 && len(words) > 0 && strings.ContainsRune(text[words[len(words)-1].end:], open) {
		quote(words, opened, len(words))
	}
}

// quote notes that the words stand in quotation marks, if they are not too many for that.
func quote(words []word, from, to int) {
	const most = 40
	for i := from; i < to && to-from < most; i++ {
		words[i].quoted = true
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

// cell says whether a value ends or begins in what stands between two words, as JSON and tables have them: a quotation mark beside a
// sign that parts values, with nothing between. In prose a space follows the sign.
func cell(gap string) bool {
	if strings.IndexByte(gap, '"') >= 0 {
		for _, edge := range [...]string{`,"`, `;"`, `:"`, `["`, `":`, `"]`, `"}`, `", "`} {
			if strings.Contains(gap, edge) {
				return true
			}
		}
	}
	return false
}

// capital says whether a new line begins with a capital letter, with a figure that does not number it in a list, or with the name of a thing
// and a colon.
func capital(gap, rest string) bool {
	_, line, ok := strings.Cut(gap, "\n")
	return ok && (strings.Trim(line, " \t") != "" || rest[0] >= 'A' && rest[0] <= 'Z' || rest[0] >= '0' && rest[0] <= '9' && !numbered(rest))
}

// numbered says whether a line begins as an item of a list does: "1." or "12)".
func numbered(line string) bool {
	after := strings.TrimLeft(line[:min(len(line), 3)], "0123456789")
	return after != "" && (after[0] == '.' || after[0] == ')')
}

// ends says whether what stands between two words ends a sentence.
func ends(gap string) bool {
	stop := false
	for i, c := range gap {
		switch {
		case c == '.', c == '!', c == '?', c == ';':
			stop = true
		case strings.ContainsRune("。．｡！？؟।；", c):
			return true
		case stop && unicode.IsSpace(c):
			return true
		case c == '\n':
			if rest := strings.TrimLeft(gap[i+1:], " \t"); rest != "" && strings.ContainsAny(rest[:1], "-*#>|+") {
				return true
			}
		}
	}
	return false
}

// lookUp finds what the words are about, all of which it appends to norm.
func (r *reader) lookUp(words []word, text string, norm []byte) ([]word, []byte) {
	for i := range words {
		norm = append(append(norm, words[i].folded...), ' ')
	}
	at, n := 0, len(words)
	for i := range n {
		w := &words[i]
		if w.signs&foreignSign != 0 && gluedScript(w.folded) {
			for j := range w.folded {
				if has, _ := r.lex.at(norm, at+j, true); has != 0 {
					part := *w
					part.has = has
					part.folded = w.folded[:min(len(w.folded), longest)] // of a text without spaces there may be as many as it has letters
					words = append(words, part)
				}
			}
			w = &words[i]
		} else {
			w.has, _ = r.lex.at(norm, at, false)
			if w.end < len(text) && text[w.end] != ' ' || w.at > 0 && text[w.at-1] != ' ' {
				w.has |= shape(text, w)
			}
			if w.has&mention != 0 && inAddress(text, w) {
				w.has &^= mention // it says where something goes, and nothing about attacks
			}
			if w.has&address != 0 && i > 0 && (words[i-1].has&mention != 0 || among(" as g example like eg ", words[i-1].folded)) || strings.HasPrefix(text[w.end:], "@example.") {
				w.has &^= address // an example
			}
			if i > 0 && strings.HasPrefix(w.folded, "address") && (words[i-1].folded == "email" || words[i-1].folded == "mail") {
				words[i-1].has &^= out | send // a thing, not what to do
			}
		}
		at += len(w.folded) + 1
	}
	if len(words) > n {
		slices.SortStableFunc(words, func(a, b word) int { return a.at - b.at })
	}
	return words, norm
}

// inAddress says whether a word is a part of a URL, or of where mail goes.
func inAddress(text string, w *word) bool {
	const most = 256
	token := until(text[w.at:])
	before := text[max(0, w.at-most):w.at]
	if n := strings.LastIndexAny(before, " \n\t"); n >= 0 {
		before = before[n+1:]
	}
	return strings.Contains(token, "@") || strings.Contains(before, "@") || strings.Contains(before, "://")
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
func shape(text string, w *word) (has concepts) {
	if w.end < len(text) {
		switch rest := text[w.end:]; rest[0] {
		case ':':
			if strings.HasPrefix(rest, "://") {
				has = address
			}
		case '@':
			if len(rest) > 3 && strings.ContainsRune(until(rest), '.') {
				has = address
			}
		case '_':
			if strings.Count(until(rest), "_") < 6 {
				has = ident
			}
		}
	}
	if w.at == 0 {
		return has
	}
	switch before := text[:w.at]; before[w.at-1] {
	case '.':
		if (w.at == 1 || !inWord(rune(before[w.at-2]))) && among(hiddenNames, w.folded) {
			has |= place
		}
	case '/':
		if (w.at == 1 || strings.IndexByte(" \n\t'\"`(~", before[w.at-2]) >= 0) && among(roots, w.folded) {
			has |= pathname
		}
	case '\'', '`', '"':
		if w.end < len(text) && text[w.end] == before[w.at-1] {
			has |= ident
		}
	}
	return has
}
