package shield

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/shield/words"
)

// A Report is what came of looking at a definition or a result.
type Report struct {
	Verdict Verdict
	Reasons []Reason
	// Canonical is what may be shown to a model: the bytes that came but for the texts that were changed.
	Canonical json.RawMessage
	// Renamed has, by the names in Canonical, the names of properties and arguments as they came, where they are others.
	// A name that would stand for two is not among them. Nil is none.
	Renamed map[string]string
}

// errJSON is for what is not JSON, which no definition is.
var errJSON = errors.New("not JSON")

// Definition judges what a server declares: a tool, a prompt, a resource or a template of resources, or what it asks people
// (an elicitation). Every text in it is looked at, at every depth, names and the members of schemas too. An error means that
// it is not JSON, and may not be shown.
func (s *Shield) Definition(raw json.RawMessage) (Report, error) {
	return s.walk(raw, func(w *walker, text string, key bool) string { return w.definition(text, key) })
}

// Result judges the answer to a call, text by text, as ResultText does. Data of images and sounds is not looked at.
func (s *Shield) Result(raw json.RawMessage) (Report, error) {
	return s.walk(raw, func(w *walker, text string, key bool) string {
		if key || w.member() == "data" || w.member() == "blob" {
			return text
		}
		out, reasons := w.shield.result(text, "", words.Answer)
		w.note(reasons)
		return out
	})
}

func (s *Shield) walk(raw json.RawMessage, look func(*walker, string, bool) string) (Report, error) {
	if !json.Valid(raw) {
		return Report{}, errJSON
	}
	w := &walker{shield: s, in: raw, look: look, worst: Clean}
	w.run()
	out := raw
	if w.out != nil {
		out = append(w.out, raw[w.copied:]...)
	}
	return Report{verdict(w.reasons), w.reasons, out, w.unique()}, nil
}

// A walker goes through JSON, shows each text to look, and writes what it gave in its place.
type walker struct {
	shield  *Shield
	in      []byte
	out     []byte // nil until something was changed
	copied  int    // how much of in is in out
	look    func(w *walker, text string, key bool) string
	stack   []frame
	reasons []Reason
	worst   Verdict // that comes of the reasons
	renamed map[string]string
	about   words.Topic // what the definition is about, once asked for
}

// A frame is an object or array that the walker is in.
type frame struct {
	array bool
	key   string // of an object's member, as it came; of an array, of the member that it is the value of
	index int
	value bool // a value comes next, not a key
}

func (w *walker) run() {
	for i := 0; i < len(w.in); {
		switch c := w.in[i]; c {
		case '{', '[':
			f := frame{array: c == '[', value: c == '['}
			if f.array {
				f.key = w.member()
			}
			w.stack = append(w.stack, f)
			i++
		case '}', ']':
			w.stack = w.stack[:len(w.stack)-1]
			i++
		case ',':
			if top := &w.stack[len(w.stack)-1]; top.array {
				top.index++
			} else {
				top.value = false
			}
			i++
		case ':':
			w.stack[len(w.stack)-1].value = true
			i++
		case '"':
			i = w.literal(i)
		default:
			i++
		}
	}
}

// literal looks at the string that begins at i, and gives where it ends.
func (w *walker) literal(i int) int {
	end := i + 1
	for w.in[end] != '"' {
		if w.in[end] == '\\' {
			end++
		}
		end++
	}
	end++
	text := ""
	if body := w.in[i+1 : end-1]; !slices.Contains(body, '\\') && utf8.Valid(body) {
		text = string(body)
	} else if json.Unmarshal(w.in[i:end], &text) != nil {
		text = Sanitized
	}
	key := len(w.stack) > 0 && !w.stack[len(w.stack)-1].value
	if key {
		w.stack[len(w.stack)-1].key = text
	}
	if text == "" {
		return end
	}
	if now := w.look(w, text, key); now != text {
		w.out = append(append(w.out, w.in[w.copied:i]...), quote(now)...)
		w.copied = end
	}
	return end
}

// quote gives a JSON string in which nothing is escaped that need not be.
func quote(text string) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return []byte(strconv.Quote(Sanitized))
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// What a report says is bounded, however often and however deep a definition gives cause: mostReasons is how many reasons there are,
// and more only where they make the verdict worse; mostPath is how many bytes of a pointer are given.
const (
	mostReasons = 4096
	mostPath    = 512
)

// pointer is where the walker is. Of one that is longer it is the beginning.
func (w *walker) pointer() string {
	var b strings.Builder
	for _, f := range w.stack {
		if size := b.Len(); size+len(f.key) > mostPath {
			return b.String() + "/" + segment(safetext.Truncate(f.key, mostPath-min(size, mostPath), safetext.Bytes, ""))
		}
		b.WriteByte('/')
		if f.array {
			b.WriteString(strconv.Itoa(f.index))
		} else {
			b.WriteString(segment(f.key))
		}
	}
	return b.String()
}

// segment is a key as a part of a JSON pointer.
func segment(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// member is the name of the member whose value, or part of whose value, the walker is at.
func (w *walker) member() string {
	if n := len(w.stack); n > 0 {
		return w.stack[n-1].key
	}
	return ""
}

// definition looks at a text of a definition: a name is renamed where another text would be blanked.
func (w *walker) definition(text string, key bool) string {
	name := key || len(w.stack) == 1 && w.member() == "name" || w.named()
	most := w.shield.caps.Schema
	if len(w.stack) == 1 {
		switch w.member() {
		case "instructions":
			most = w.shield.caps.Instructions
		default:
			most = w.shield.caps.Description
		}
	}
	if key && len(text) < 12 && short(text) || !key && w.member() == "type" && typed(text) {
		return text
	}
	if name {
		most = words.MostText
	}
	at := w.place(key)
	if name && !sentence(text) {
		at = words.Nowhere // a name is no order
	}
	out, reasons := w.shield.text(text, "", most, at, w.topic)
	if name && (out == Sanitized && text != Sanitized || out == "") {
		out = "sanitized_" + sum(text)
		for i := range reasons {
			if reasons[i].Did == "blanked" {
				reasons[i].Did = "renamed"
			}
		}
	}
	if name && out == text && !sentence(text) {
		reasons = slices.DeleteFunc(reasons, func(r Reason) bool { return r.Did == "flagged" && r.Rule != words.Drawn }) // a name is no order
	}
	if !name && verdict(reasons) == Clean && at == words.Member && w.shield.misplaced(w.member(), text) {
		reasons = append(reasons, Reason{Rule: "misplaced", Did: "flagged", Why: "has an order where a value or a title belongs", Excerpt: excerpt(text)})
	}
	if name && len(reasons) == 0 && sentence(text) {
		reasons = append(reasons, Reason{Rule: "name", Did: "flagged", Why: "reads as a sentence, and is a name", Excerpt: excerpt(text)})
	}
	w.note(reasons)
	if name && out != text && (key || len(w.stack) > 1) {
		w.rename(out, text)
	}
	return out
}

// topic gives what a definition is about: the words of its name, its description and the names of its properties.
func (w *walker) topic() words.Topic {
	if w.about != nil {
		return w.about
	}
	var whole struct{ Name, Description string }
	texts := []string{}
	if json.Unmarshal(w.in, &whole) == nil {
		texts = append(texts, whole.Name, whole.Description)
	}
	names := &walker{in: w.in, look: func(w *walker, text string, key bool) string {
		if n := len(w.stack); key && n > 1 && w.stack[n-2].key == "properties" && !sentence(text) {
			texts = append(texts, text)
		}
		return text
	}}
	names.run()
	w.about = w.shield.in.Topic(texts...)
	return w.about
}

// place says how much prose belongs where the walker is.
func (w *walker) place(key bool) words.Place {
	top := len(w.stack) == 1
	switch m := w.member(); {
	case key:
		return words.Member
	case m == "description" && !top:
		return words.Schema
	case m == "description":
		return words.Description
	case top && m == "message":
		return words.Nowhere
	case top && m == "instructions":
		return words.Instructions
	case (m == "default" || m == "examples" || m == "example") && spoken(w.property()):
		return words.Instructions
	}
	return words.Member
}

// property is the name of the property whose schema the walker is in, "" for none.
func (w *walker) property() string {
	for n := len(w.stack) - 1; n > 1; n-- {
		if w.stack[n-2].key == "properties" {
			return w.stack[n-1].key
		}
	}
	return ""
}

// typed says whether a text is one of the types of JSON Schema.
func typed(text string) bool {
	switch text {
	case "string", "object", "number", "integer", "boolean", "array", "null":
		return true
	}
	return false
}

// spoken says whether a property has what is said to somebody: what stands there by default is a sentence.
func spoken(property string) bool {
	switch strings.ToLower(property) {
	case "message", "text", "body", "content", "prompt", "question", "comment", "reason", "subject", "greeting", "instructions", "query":
		return true
	}
	return false
}

// rename keeps that a name takes the place of another: of two none, which is kept as "".
func (w *walker) rename(now, own string) {
	if w.renamed == nil {
		w.renamed = map[string]string{}
	}
	if before, ok := w.renamed[now]; ok && before != own {
		own = ""
	}
	w.renamed[now] = own
}

// unique are the new names that stand for one name each: some may be those of others from the beginning.
func (w *walker) unique() map[string]string {
	if w.renamed == nil {
		return nil
	}
	again := &walker{in: w.in, look: func(_ *walker, text string, key bool) string {
		if _, ok := w.renamed[text]; ok && key {
			w.renamed[text] = ""
		}
		return text
	}}
	again.run()
	maps.DeleteFunc(w.renamed, func(_, own string) bool { return own == "" })
	return w.renamed
}

// note keeps reasons, which are for the text that the walker is at.
func (w *walker) note(reasons []Reason) {
	if len(reasons) == 0 {
		return
	}
	worst := verdict(reasons)
	if len(w.reasons) >= mostReasons && worst >= w.worst {
		return
	}
	w.worst = min(w.worst, worst)
	path := w.pointer()
	for i := range reasons {
		reasons[i].Path = path
	}
	w.reasons = append(w.reasons, reasons...)
}

// misplaced says whether a member that has a value, or a title of few words, has a sentence which tells somebody what to do.
func (s *Shield) misplaced(member, text string) bool {
	const fewest = 7
	switch member {
	case "title", "default", "const", "enum", "examples", "example", "$comment", "format", "pattern":
	default:
		return false
	}
	if strings.Count(text, " ") < fewest {
		return false
	}
	return s.in.Orders(text)
}

// named says whether the value that the walker is at names a property, since "required" and its like must go on to match, or
// the argument of a prompt.
func (w *walker) named() bool {
	n := len(w.stack)
	if n == 3 && w.stack[1].array && w.stack[0].key == "arguments" && w.stack[2].key == "name" {
		return true
	}
	return n > 1 && w.stack[n-1].array && !w.stack[n-2].array && w.stack[n-2].key == "required"
}

// short says whether a key is a plain word, as nearly all are.
func short(key string) bool {
	for i := range len(key) {
		if b := key[i]; b >= utf8.RuneSelf || b < '$' {
			return false
		}
	}
	return true
}

// sentence says whether a name has as many words as a sentence.
func sentence(name string) bool {
	const most = 8
	return strings.Count(name, "_")+strings.Count(name, "-") >= most || strings.Count(name, " ") > 2*most
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:3])
}
