package shield

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A textWord is a word of a text with its concepts and properties.
type textWord struct {
	at, end        int    // byte offsets in the text
	folded         string // the form in which the word is matched
	concepts       concepts
	sentence       int
	quoted         bool
	mixedAlphabets bool      // mixes similar letters of several alphabets
	lettersApart   bool      // was written letter by letter
	signs          charClass // classes of the characters as written
	wordFact
}

// A charClass is a set of classes of characters of a word.
type charClass uint8

const (
	classLower charClass = 1 << iota // ASCII lower-case letter
	classDigit                       // ASCII digit
	classUpper                       // ASCII upper-case letter
	// another ASCII character inside a word: an apostrophe, a sign that stands for a letter, or a control character
	classOther
	classNonASCII // any character outside ASCII
	classAny      = 1<<iota - 1
)

// byteClasses maps each ASCII byte to its class, or to 0 if it cannot be inside a word.
var byteClasses = func() (of [256]charClass) {
	for b := range byte(utf8.RuneSelf) {
		switch {
		case 'a' <= b && b <= 'z':
			of[b] = classLower
		case '0' <= b && b <= '9':
			of[b] = classDigit
		case 'A' <= b && b <= 'Z':
			of[b] = classUpper
		case strings.IndexByte("'$!@", b) >= 0, isInvisible(rune(b)):
			of[b] = classOther
		}
	}
	return of
}()

// A wordReader splits texts into words and looks them up in the lexicon.
type wordReader struct {
	lexicon *conceptLexicon
	fold    *wordFolder
	known   map[string]wordFact
	// buffers contains buffers for reuse. Each buffer is used for one text at a time.
	buffers sync.Pool
}

// A wordBuffer contains the words of a text, and the folded text in which concepts are looked up.
type wordBuffer struct {
	all   []textWord // all words of the text
	words []textWord // reusable memory for words; all may be larger
	norm  []byte
}

// maxBufferWords and maxBufferBytes are the capacity up to which a buffer is reused. A larger buffer is freed.
const (
	maxBufferWords = 4096
	maxBufferBytes = 64 << 10
)

// readText returns a buffer with the words of a text. After use, the caller must pass the buffer to releaseBuffer.
func (r *wordReader) readText(text string) *wordBuffer {
	in, _ := r.buffers.Get().(*wordBuffer)
	if in == nil {
		in = &wordBuffer{words: make([]textWord, 0, 64)}
	}
	in.words = r.splitWords(in.words[:0], text)
	all := r.foldWords(in.words, text)
	r.numberSentences(all, text)
	in.all, in.norm = r.lookUpConcepts(all, text, in.norm[:0])
	for i := range in.all {
		w := &in.all[i]
		w.wordFact = r.known[w.folded]
	}
	return in
}

func (r *wordReader) releaseBuffer(in *wordBuffer) {
	if cap(in.words) > maxBufferWords || cap(in.norm) > maxBufferBytes {
		return
	}
	clear(in.words[:min(max(len(in.words), len(in.all)), cap(in.words))]) // remove references to the text
	clear(in.norm)
	in.all = nil
	r.buffers.Put(in)
}

// splitWords appends the words of a text as written, not yet folded.
func (r *wordReader) splitWords(words []textWord, text string) []textWord {
	start, prev := -1, rune(0)
	signs := charClass(0)
	for i := 0; i < len(text); {
		c, size, is := rune(text[i]), 1, byteClasses[text[i]]
		if is&(classLower|classDigit) != 0 { // the common case: several lower-case letters or digits
			if start < 0 {
				start = i
			}
			for ; is&(classLower|classDigit) != 0; is = byteClasses[text[i]] {
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
			is = classNonASCII
		}
		ends, begins := false, false
		switch {
		case is == classUpper:
			ends, begins = start >= 0 && isCamelBoundary(text, start, i), true
		case is == classNonASCII:
			begins = isWordRune(c)
			ends = !begins && (start < 0 || !isInvisible(c))
		case is == classOther && start >= 0 && (isInvisible(c) || isInnerSign(text, c, prev, i)):
		default:
			ends = true
			if c == '\\' && i+1 < len(text) && strings.IndexByte("nrt", text[i+1]) >= 0 {
				size = 2 // skip "n" of a line end escaped as in JSON
			}
		}
		if ends && start >= 0 {
			words = append(words, textWord{at: start, end: i, signs: signs})
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
		words = append(words, textWord{at: start, end: len(text), signs: signs})
	}
	return words
}

func isWordRune(c rune) bool {
	if c < utf8.RuneSelf {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	}
	return unicode.IsLetter(c) || unicode.IsMark(c) || unicode.IsDigit(c) || c >= 0x24B6 && c <= 0x24E9 ||
		c >= 0x1F110 && c <= 0x1F189 || c >= 0x1F1E6 && c <= 0x1F1FF
}

// isCamelBoundary reports whether the capital at i begins a new word in a camel-case name: two lower-case letters
// precede it and one follows.
func isCamelBoundary(text string, start, i int) bool {
	small := func(j int) bool { return j < len(text) && text[j] >= 'a' && text[j] <= 'z' }
	return text[i] >= 'A' && text[i] <= 'Z' && i-start >= 2 && small(i-1) && small(i-2) && small(i+1) &&
		(i+2 >= len(text) || !isWordRune(rune(text[i+2])) || small(i+2))
}

// isInnerSign reports whether the sign c at i belongs to the word around it, as an apostrophe or in place of a letter.
func isInnerSign(text string, c, prev rune, i int) bool {
	if i+1 >= len(text) || !isWordRune(prev) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(text[i+1:])
	switch c {
	case '\'', '$', '!':
		return unicode.IsLetter(next) && unicode.IsLetter(prev)
	case '@':
		return unicode.IsLetter(next) && !strings.ContainsRune(untilSpace(text[i+1:]), '.')
	}
	return false
}

// untilSpace returns the text up to its first white space, at most 256 bytes.
func untilSpace(text string) string {
	text = text[:min(len(text), 256)]
	if n := strings.IndexAny(text, " \n\t"); n >= 0 {
		return text[:n]
	}
	return text
}

// numberSentences sets the sentence number of each word, and marks the words in quotation marks.
func (r *wordReader) numberSentences(words []textWord, text string) {
	number, since := 0, 0 // since: words after the last possible sentence end
	var open rune
	opened := -1
	for i := range words {
		before := previousEnd(words, i)
		if n := words[i].at - before; n <= 0 || n == 1 && text[before] == ' ' {
			since++ // the common case
			words[i].sentence = number
			continue
		}
		gap := text[before:words[i].at]
		rest := gap
		if open != 0 {
			if at := strings.IndexRune(gap, open); at >= 0 {
				markQuoted(words, opened, i)
				rest, open = gap[at+utf8.RuneLen(open):], 0
			}
		}
		if hard := strings.Count(gap, "\n") > 1 || isCellBoundary(gap); hard || endsSentence(gap) ||
			beginsWithCapital(gap, text[words[i].at:]) {
			if since >= 3 || hard && since != 1 || strings.ContainsAny(gap, "。！？") {
				number, open = number+1, 0
			}
			since = 0
		}
		since++
		for j, c := range rest {
			switch {
			case open == 0 && c == '\'' && j != len(rest)-1: // an apostrophe, as in "the users' files"
			case open != 0 && c == open:
				open = 0 // empty quotation marks
			case open == 0 && closingQuote(c) != 0:
				open, opened = closingQuote(c), i
			}
		}
		words[i].sentence = number
	}
	if open != 0 && len(words) > 0 && strings.ContainsRune(text[words[len(words)-1].end:], open) {
		markQuoted(words, opened, len(words))
	}
}

// markQuoted marks the words from index from up to index to as quoted. A sequence of 40 words or more is not a
// quotation, so it is not marked.
func markQuoted(words []textWord, from, to int) {
	const most = 40
	for i := from; i < to && to-from < most; i++ {
		words[i].quoted = true
	}
}

func previousEnd(words []textWord, i int) int {
	if i == 0 {
		return 0
	}
	return words[i-1].end
}

// closingQuote returns the quotation mark that closes a quotation opened with c, or 0 if c does not open a quotation.
func closingQuote(c rune) rune {
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

// isCellBoundary reports whether the text between two words separates two values, as in JSON or CSV: a quotation mark
// directly next to a separator. In prose, a space follows the separator.
func isCellBoundary(gap string) bool {
	if strings.IndexByte(gap, '"') >= 0 {
		for _, edge := range [...]string{`,"`, `;"`, `:"`, `["`, `":`, `"]`, `"}`, `", "`} {
			if strings.Contains(gap, edge) {
				return true
			}
		}
	}
	return false
}

// beginsWithCapital reports whether a new line starts a sentence: with a capital letter, with a number that is not a
// list number, or after a sign.
func beginsWithCapital(gap, rest string) bool {
	_, line, ok := strings.Cut(gap, "\n")
	return ok && (strings.Trim(line, " \t") != "" || rest[0] >= 'A' && rest[0] <= 'Z' || rest[0] >= '0' &&
		rest[0] <= '9' && !isNumberedItem(rest))
}

// isNumberedItem reports whether a line begins with a list number: "1." or "12)".
func isNumberedItem(line string) bool {
	after := strings.TrimLeft(line[:min(len(line), 3)], "0123456789")
	return after != "" && (after[0] == '.' || after[0] == ')')
}

// endsSentence reports whether the text between two words ends a sentence.
func endsSentence(gap string) bool {
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

// lookUpConcepts sets the concepts of each word. It returns the words, and norm with the folded text appended. In
// scripts without spaces, each lexicon entry inside a word becomes a separate word.
func (r *wordReader) lookUpConcepts(words []textWord, text string, norm []byte) ([]textWord, []byte) {
	for i := range words {
		norm = append(append(norm, words[i].folded...), ' ')
	}
	at, n := 0, len(words)
	for i := range n {
		w := &words[i]
		if w.signs&classNonASCII != 0 && isUnspacedWord(w.folded) {
			for j := range w.folded {
				if has, _ := r.lexicon.conceptsAt(norm, at+j, true); has != 0 {
					part := *w
					part.concepts = has
					// A text without spaces can have as many parts as letters, so the length of each is limited.
					part.folded = w.folded[:min(len(w.folded), maxEntryBytes)]
					words = append(words, part)
				}
			}
			w = &words[i]
		} else {
			w.concepts, _ = r.lexicon.conceptsAt(norm, at, false)
			if w.end < len(text) && text[w.end] != ' ' || w.at > 0 && text[w.at-1] != ' ' {
				w.concepts |= shapeConcepts(text, w)
				if w.concepts&conceptMe != 0 && isPartOfName(text, w) {
					w.concepts &^= conceptMe
				}
			}
			if w.concepts&conceptOther != 0 && isOfThisServer(text[w.at:]) {
				w.concepts &^= conceptOther
			}
			if w.concepts&conceptMention != 0 && isInAddress(text, w) {
				w.concepts &^= conceptMention // a part of an address, not a mention of an attack
			}
			if w.concepts&conceptAddress != 0 && i > 0 && (words[i-1].concepts&conceptMention != 0 ||
				isInWordList(" as g example like eg ", words[i-1].folded)) ||
				strings.HasPrefix(text[w.end:], "@example.") {
				w.concepts &^= conceptAddress // an example address
			}
			if i > 0 && strings.HasPrefix(w.folded, "address") && (words[i-1].folded == "email" ||
				words[i-1].folded == "mail") {
				words[i-1].concepts &^= conceptOut | conceptSend // "email address" is a noun, not an action
			}
		}
		at += len(w.folded) + 1
	}
	if len(words) > n {
		slices.SortStableFunc(words, func(a, b textWord) int { return a.at - b.at })
	}
	return words, norm
}

// isOfThisServer reports whether a text contains, near its beginning, words such as "of this server". A word for other
// tools then means tools of the same server.
func isOfThisServer(text string) bool {
	const most = 48
	text = text[:min(len(text), most)]
	return strings.Contains(text, " of this server") || strings.Contains(text, " on this server") ||
		strings.Contains(text, " in this server") || strings.Contains(text, " of this package")
}

// isPartOfName reports whether a word is part of a name or path, such as "set-my-status" or "/me".
func isPartOfName(text string, w *textWord) bool {
	before, after := w.at > 0 && strings.IndexByte("-_/", text[w.at-1]) >= 0, w.end < len(text) &&
		strings.IndexByte("-_", text[w.end]) >= 0
	return before || after
}

// isInAddress reports whether a word is part of a URL or an e-mail address.
func isInAddress(text string, w *textWord) bool {
	const most = 256
	token := untilSpace(text[w.at:])
	before := text[max(0, w.at-most):w.at]
	if n := strings.LastIndexAny(before, " \n\t"); n >= 0 {
		before = before[n+1:]
	}
	return strings.Contains(token, "@") || strings.Contains(before, "@") || strings.Contains(before, "://")
}

// isUnspacedWord reports whether a word belongs to a script that is written without spaces, or that joins particles to
// words, as Arabic and Hebrew do.
func isUnspacedWord(folded string) bool {
	c, _ := utf8.DecodeRuneInString(folded)
	return c >= 0x0590 && unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar,
		unicode.Hangul, unicode.Arabic, unicode.Hebrew, unicode.Tibetan, unicode.Ethiopic)
}

// secretDotfiles are names of files, without the leading dot, that contain secrets or that a shell runs at its start.
const secretDotfiles = " env ssh aws bashrc zshrc profile netrc npmrc kube gnupg pgpass pypirc gitconfig git-credentials docker htpasswd "

// rootDirs are the top-level directories of absolute paths.
const rootDirs = " home users root etc var tmp usr opt mnt srv proc data workspace "

// shapeConcepts returns the concepts that result from the characters around a word: an address, a path, a secret file
// or an identifier.
func shapeConcepts(text string, w *textWord) (has concepts) {
	if w.end < len(text) {
		switch rest := text[w.end:]; rest[0] {
		case ':':
			if strings.HasPrefix(rest, "://") {
				has = conceptAddress
			}
		case '@':
			if len(rest) > 3 && strings.ContainsRune(untilSpace(rest), '.') {
				has = conceptAddress
			}
		case '_':
			if strings.Count(untilSpace(rest), "_") < 6 {
				has = conceptIdent
			}
		}
	}
	if w.at == 0 {
		return has
	}
	switch before := text[:w.at]; before[w.at-1] {
	case '.':
		if (w.at == 1 || !isWordRune(rune(before[w.at-2]))) && isInWordList(secretDotfiles, w.folded) {
			has |= conceptPlace
		}
	case '/':
		if (w.at == 1 || strings.IndexByte(" \n\t'\"`(~", before[w.at-2]) >= 0) && isInWordList(rootDirs, w.folded) {
			has |= conceptPathname
		}
	case '\'', '`', '"':
		if w.end < len(text) && text[w.end] == before[w.at-1] {
			has |= conceptIdent
		}
	}
	return has
}
