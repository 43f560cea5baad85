package flow

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// The limits of a run. Texts beyond them are forgotten, the oldest first: then their values count as made by the model.
// So a run takes less than 200 KB, however much it reads.
const (
	maxTyped   = 32 << 10
	maxTexts   = 96 << 10
	maxOrigins = 64
	// MaxText is how much of one text is examined.
	MaxText = 32 << 10
)

// A Source is something that a run has read, with its label.
type Source struct {
	// Kind and Name say what it is, such as "file" and its path. Server is the server that returned a result.
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Server string `json:"server,omitempty"`
	Label  Label  `json:"label"`
}

// CallSource is the kind of the source for the arguments of a call that a run has made before it had read anything.
// Their values are as trusted as the run was, but the model may have them from the description of a tool.
const CallSource = "call"

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
	// texts are what the run has read, the newest last, and textSize is their size.
	texts    []readText
	textSize int
}

// A readText is a text that a run has read. It is prepared when it is searched for the first time.
type readText struct {
	source Source
	// raw and arguments are the JSON of the text and of the arguments of the call that returned it, until they are
	// prepared. Then text and asked are the texts and numbers in them, in lower case.
	raw, arguments json.RawMessage
	text, asked    string
	// size is what counts against maxTexts.
	size int
}

// NewRun returns a run that has read sources before, such as one that is restored. Its label is at most the given one.
func NewRun(label Label, origins []Source) *Run {
	r := &Run{label: label}
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

// Origins returns the sources that have lowered the label or that are private, the first ones first. There are at most
// 64.
func (r *Run) Origins() []Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.origins)
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

// Join lowers the label of the run to the join with the label of a source.
func (r *Run) Join(s Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.label
	r.label = before.Join(s.Label)
	if r.label != before && s.Label.Taints() || s.Label.Integrity == Untrusted || s.Label.Confidentiality == Private {
		r.addOrigin(s)
	}
}

// addOrigin adds a source to the origins, unless it is there.
func (r *Run) addOrigin(s Source) {
	switch {
	case slices.Contains(r.origins, s):
	case len(r.origins) == maxOrigins:
		r.lost++
	default:
		r.origins = append(r.origins, s)
	}
}

// Read notes the text of a source, so that its values are recognised in arguments. The text is JSON, whose texts and
// numbers count. arguments are those of the call that returned the text: it does not vouch for values that it may only
// repeat. The label must be joined before.
func (r *Run) Read(s Source, raw, arguments json.RawMessage) {
	if len(raw) == 0 || len(arguments) > MaxText {
		return // what is not noted counts as made by the model
	}
	size := min(len(raw), MaxText)
	r.mu.Lock()
	defer r.mu.Unlock()
	text := readText{source: s, raw: bytes.Clone(raw[:size]), arguments: bytes.Clone(arguments), size: size + len(arguments)}
	if size < len(raw) { // the JSON is cut
		text.raw, text.text = nil, strings.ToLower(string(raw[:size]))
	}
	r.texts, r.textSize = append(r.texts, text), r.textSize+text.size
	for r.textSize > maxTexts || len(r.texts) > maxTexts/64 {
		r.textSize -= r.texts[0].size
		r.texts[0] = readText{} // so that its memory is free
		r.texts = r.texts[1:]
	}
}

// find returns the text with the best label in which a value stands as whole words. The value is in lower case.
func (r *Run) find(value string) *readText {
	return r.findIn(value, func(*readText) bool { return true })
}

// findIn is like find, for some of the texts. A server that was asked for a value does not vouch for it afterwards: it
// may only repeat what it was told.
func (r *Run) findIn(value string, counts func(*readText) bool) (best *readText) {
	var told []string // servers
	for i := range r.texts {
		t := &r.texts[i]
		t.prepare()
		if strings.Contains(t.asked, value) {
			if t.source.Server != "" && contains(t.asked, value) {
				told = append(told, t.source.Server)
			}
			continue
		}
		if counts(t) && (best == nil || moreTrusted(t.source.Label, best.source.Label)) && contains(t.text, value) &&
			(t.source.Server == "" || !slices.Contains(told, t.source.Server)) {
			best = t
		}
	}
	return best
}

// prepare replaces the JSON of a text and of its arguments by the texts and numbers in them.
func (t *readText) prepare() {
	if t.raw != nil {
		t.raw, t.text = nil, flatText(t.raw)
	}
	if t.arguments != nil {
		t.arguments, t.asked = nil, flatText(t.arguments)
	}
}

// flatText returns the texts and numbers in JSON in lower case, one in a line.
func flatText(raw json.RawMessage) string {
	var b strings.Builder
	walk("", raw, false, func(path, text string) bool {
		if !strings.HasSuffix(path, nameSuffix) {
			b.WriteString(strings.ToLower(text))
			b.WriteByte('\n')
		}
		return true
	})
	return b.String()
}

// moreTrusted reports whether a is the better label for a value that stands in sources with both.
func moreTrusted(a, b Label) bool {
	if a.Integrity != b.Integrity {
		return a.Integrity > b.Integrity
	}
	return a.Confidentiality < b.Confidentiality
}

// contains reports whether a text has a value as whole words. Both are in lower case. A part of a path, an address or a
// number is no whole word.
func contains(text, value string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], value)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(value)
		if endsBefore(text, start) && beginsAfter(text, end) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[start:])
		from = start + size
	}
}

// joiners are the signs that join words to paths, addresses and numbers.
const joiners = `-_/@+#~&%\`

// endsBefore reports whether a word ends before a place in a text.
func endsBefore(text string, place int) bool {
	c, size := utf8.DecodeLastRuneInString(text[:place])
	return size == 0 || !isWord(c) && c != '.' && !strings.ContainsRune(joiners, c) &&
		(c != ',' || !digitAt(text[:place-size], true))
}

// beginsAfter reports whether a word begins only after a place in a text.
func beginsAfter(text string, place int) bool {
	c, size := utf8.DecodeRuneInString(text[place:])
	switch {
	case size == 0:
		return true
	case isWord(c), strings.ContainsRune(joiners, c):
		return false
	case c == ',':
		return !digitAt(text[place+size:], false)
	case c == '.', c == ':':
		next, n := utf8.DecodeRuneInString(text[place+size:])
		return n == 0 || !isWord(next) && !strings.ContainsRune(joiners, next)
	}
	return true
}

// digitAt reports whether a text begins with a digit, or with atEnd ends with one.
func digitAt(text string, atEnd bool) bool {
	if text == "" {
		return false
	}
	c := text[0]
	if atEnd {
		c = text[len(text)-1]
	}
	return c >= '0' && c <= '9'
}

func isWord(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

// maxSpace is how many bytes of space around a value do not count. More could carry text.
const maxSpace = 2

// plain returns a value as it is searched for.
func plain(value string) string {
	trimmed := strings.TrimSpace(value)
	if len(value)-len(trimmed) > maxSpace {
		trimmed = value
	}
	return strings.ToLower(trimmed)
}

// LabelOf returns the label of a value of an argument. It is that of the person's texts or of the source in which the
// value stands as it is. Any other value was made by the model, from everything that the run has read. origin is a
// source that explains the label: nil if the value is trusted and not private.
func (r *Run) LabelOf(value string) (label Label, origin *Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := plain(value)
	if wanted == "" || slices.ContainsFunc(r.typed, func(text string) bool { return contains(text, wanted) }) {
		return Clean, nil
	}
	if t := r.find(wanted); t != nil {
		if !t.source.Label.Taints() {
			return t.source.Label, nil
		}
		source := t.source
		return source.Label, &source
	}
	return r.label, r.originOfParts(wanted)
}

// originOfParts returns the source of a value that the model made: the one in which a word of the value stands, or the
// first one with the lowest integrity.
func (r *Run) originOfParts(value string) *Source {
	lowest := -1
	for i, s := range r.origins {
		if lowest < 0 || s.Label.Integrity < r.origins[lowest].Label.Integrity {
			lowest = i
		}
	}
	for i, word := range strings.Fields(value) {
		if i == maxParts {
			break
		}
		if word = strings.Trim(word, `.,:;!?"'()`); len(word) < 4 {
			continue
		}
		if t := r.find(word); t != nil && lowest >= 0 && t.source.Label.Integrity <= r.origins[lowest].Label.Integrity && t.source.Label.Taints() {
			source := t.source
			return &source
		}
	}
	if lowest < 0 {
		return nil
	}
	return &r.origins[lowest]
}

// maxParts is how many words of a value are searched for its origin.
const maxParts = 16
