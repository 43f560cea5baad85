package flow

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The limits of a run. Texts beyond them are forgotten, the oldest first: then their values count as made by the model.
// maxTokens is the number of tokens in each of two generations; 1,000 reads of a run take less than 200 KB.
const (
	maxTokens  = 3500
	maxTyped   = 32 << 10
	maxOrigins = 64
	// MaxText is how much of one text is examined for its tokens, and maxLine the longest line that counts as a token.
	MaxText = 256 << 10
	maxLine = 4 << 10
)

// A Source is something that a run has read, with its label.
type Source struct {
	// Kind and Name say what it is, such as "file" and its path. Server is the server that returned a result.
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Server string `json:"server,omitempty"`
	Label  Label  `json:"label"`
}

// String returns the source for people, such as "result mail__message".
func (s Source) String() string {
	name := s.Name
	if s.Server != "" && !strings.HasPrefix(name, s.Server) {
		name = s.Server + " " + name
	}
	return s.Kind + " " + name
}

// A Run is the label of one run, and what is known of the texts that it has read. The methods may be called from
// several goroutines.
type Run struct {
	mu    sync.Mutex
	label Label
	// typed are the texts of the person, in lower case.
	typed     []string
	typedSize int
	// origins are the first sources that have lowered the label, or that are private; lost counts the others.
	origins []Source
	lost    int
	// newer and older map tokens to the source in which they stand. If newer is full, it becomes older.
	newer, older map[uint64]tokenSource
	seed         maphash.Seed
}

// A tokenSource is where a token stands: the label, and the place of the source in origins, from 1.
type tokenSource struct {
	label  Label
	origin uint8
}

// NewRun returns a run that has read sources before, such as one that is restored. Its label is at most the given one.
func NewRun(label Label, origins []Source) *Run {
	r := &Run{label: label, seed: maphash.MakeSeed(), newer: map[uint64]tokenSource{}}
	for _, s := range origins {
		r.addOrigin(s)
	}
	return r
}

// Label returns the join of the labels of all that the run has read.
func (r *Run) Label() Label {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.label
}

// Origins returns the sources that have lowered the label or that are private, the first ones first. more is the number
// of those that are left out.
func (r *Run) Origins() (origins []Source, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.origins), r.lost
}

// Typed adds a text that the person has typed. Values in it are trusted.
func (r *Run) Typed(text string) {
	text = strings.ToLower(text)
	if len(text) > maxTyped {
		text = text[:maxTyped]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.typed, text) {
		return
	}
	r.typed, r.typedSize = append(r.typed, text), r.typedSize+len(text)
	for r.typedSize > maxTyped {
		r.typedSize -= len(r.typed[0])
		r.typed = r.typed[1:]
	}
}

// Join lowers the label of the run to the join with the label of a source. It reports whether the label has changed.
func (r *Run) Join(s Source) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.label
	r.label = before.Join(s.Label)
	if s.Label.Taints() {
		r.addOrigin(s)
	}
	return r.label != before
}

// addOrigin adds a source to the origins, unless it is there. It returns its place from 1; 0 if there is no room.
func (r *Run) addOrigin(s Source) uint8 {
	if i := slices.Index(r.origins, s); i >= 0 {
		return uint8(i + 1)
	}
	if len(r.origins) == maxOrigins {
		r.lost++
		return 0
	}
	r.origins = append(r.origins, s)
	return uint8(len(r.origins))
}

// Read notes the text of a source, so that its values are recognised in arguments. The label must be joined before.
func (r *Run) Read(s Source, text string) {
	if len(text) > MaxText {
		text = text[:MaxText]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := tokenSource{label: s.Label}
	if s.Label.Taints() {
		at.origin = r.addOrigin(s)
	}
	for token := range tokens(text) {
		r.addToken(token, at)
	}
}

// addToken stores where a token stands. A token that stands in several sources keeps the most trusted label.
func (r *Run) addToken(token string, at tokenSource) {
	key := maphash.String(r.seed, token)
	if known, ok := r.find(key); ok && !moreTrusted(at.label, known.label) {
		return
	}
	if len(r.newer) >= maxTokens {
		r.older, r.newer = r.newer, make(map[uint64]tokenSource, maxTokens)
	}
	r.newer[key] = at
}

func (r *Run) find(key uint64) (tokenSource, bool) {
	if at, ok := r.newer[key]; ok {
		return at, true
	}
	at, ok := r.older[key]
	return at, ok
}

// moreTrusted reports whether a is the better label for a value that stands in sources with both.
func moreTrusted(a, b Label) bool {
	if a.Integrity != b.Integrity {
		return a.Integrity > b.Integrity
	}
	return a.Confidentiality < b.Confidentiality
}

// tokens iterates over the values that stand in a text: its words without the punctuation around them, the parts of
// words between signs, its lines, and the whole text.
func tokens(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line == "" {
				continue
			}
			if len(line) <= maxLine && !yield(fold(line)) {
				return
			}
			for word := range strings.FieldsFuncSeq(line, isSeparator) {
				if word = strings.TrimFunc(word, isMark); word != "" && len(word) <= maxLine && word != line && !yield(fold(word)) {
					return
				}
			}
		}
		if whole := strings.TrimSpace(text); len(whole) <= maxLine && strings.Contains(whole, "\n") {
			yield(fold(whole))
		}
	}
}

func fold(text string) string { return strings.ToLower(text) }

// isSeparator reports whether a character ends a word of a text.
func isSeparator(c rune) bool {
	return unicode.IsSpace(c) || strings.ContainsRune(`,;"'()[]{}<>|=`, c) || c == '`'
}

// isMark reports whether a character at an end of a word does not belong to it.
func isMark(c rune) bool { return strings.ContainsRune(".:!?*_", c) }

// contains reports whether a text has a value as whole words. Both are in lower case.
func contains(text, value string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], value)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(value)
		before, _ := utf8.DecodeLastRuneInString(text[:start])
		after, _ := utf8.DecodeRuneInString(text[end:])
		first, _ := utf8.DecodeRuneInString(value)
		last, _ := utf8.DecodeLastRuneInString(value)
		if (!isWord(before) || !isWord(first)) && (!isWord(after) || !isWord(last)) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[start:])
		from = start + size
	}
}

func isWord(c rune) bool { return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsDigit(c)) }

// LabelOf returns the label of a value of an argument. It is that of the person's texts or of the source in which the
// value stands as it is. Any other value was made by the model, from everything that the run has read. origin is a
// source that explains the label: nil if the value is trusted and not private.
func (r *Run) LabelOf(value string) (label Label, origin *Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	plain := fold(strings.TrimSpace(value))
	if plain == "" || slices.ContainsFunc(r.typed, func(text string) bool { return contains(text, plain) }) {
		return Clean, nil
	}
	if at, ok := r.find(maphash.String(r.seed, plain)); ok {
		if at.origin > 0 {
			return at.label, &r.origins[at.origin-1]
		}
		return at.label, nil
	}
	return r.label, r.originOfParts(value)
}

// originOfParts returns the source of a value that the model made: the one in which a part of the value stands, or the
// first one with the lowest integrity.
func (r *Run) originOfParts(value string) *Source {
	best := -1
	for i, s := range r.origins {
		if best < 0 || s.Label.Integrity < r.origins[best].Label.Integrity {
			best = i
		}
	}
	for token := range tokens(value) {
		if at, ok := r.find(maphash.String(r.seed, token)); ok && at.origin > 0 &&
			(best < 0 || at.label.Integrity <= r.origins[best].Label.Integrity) {
			return &r.origins[at.origin-1]
		}
	}
	if best < 0 {
		return nil
	}
	return &r.origins[best]
}
