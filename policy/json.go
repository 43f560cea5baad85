package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// An object is one of JSON, whose names differ.
type object []member

type member struct {
	name  string
	value any
}

// fewMembers is how many members an object has room for that has any.
const fewMembers = 4

// get gives what a name has, in whichever case it is written; false where there is no such name.
func (o object) get(name string) (any, bool) {
	for i := range o {
		if o[i].name == name {
			return o[i].value, true
		}
	}
	for i := range o {
		if sameName(o[i].name, name) {
			return o[i].value, true
		}
	}
	return nil, false
}

// spelled gives a value with the names in it as they are spelled here, where they are the same but for their case: an expression takes
// them as it spells them. It says false where that changes nothing.
func spelled(v any, names []string) (out any, changed bool) {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			inside, is := spelled(item, names)
			list[i], changed = inside, changed || is
		}
		return list, changed
	case object:
		var all object
		for _, m := range v {
			inside, is := spelled(m.value, names)
			changed = changed || is
			same := foldName(m.name)
			known := len(all)
			for _, name := range names {
				if name == m.name || foldName(name) == same {
					all, changed = append(all, member{name, inside}), changed || name != m.name
				}
			}
			if len(all) == known {
				all = append(all, member{m.name, inside})
			}
		}
		return all, changed
	}
	return v, false
}

// maps gives a value in which objects are maps, and what is neither list nor object is what leaf makes of it.
func maps(v any, leaf func(any) any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = maps(item, leaf)
		}
		return out
	case object:
		out := make(map[string]any, len(v))
		for _, m := range v {
			out[m.name] = maps(m.value, leaf)
		}
		return out
	}
	return leaf(v)
}

// bare gives a value in which objects are maps.
func bare(v any) any { return maps(v, func(v any) any { return v }) }

// readObject reads an object. None at all is an empty one. Of its members only that with a name is kept, however it is written;
// with no name all are. The rest is looked at all the same: an object in which a name stands twice is refused, since whoever
// carries out the call might take the one that no rule looked at. Names that differ in case only count as one, as they do to
// many readers.
func readObject(raw json.RawMessage, only string) (object, error) {
	r := reader{src: string(raw), only: only}
	all, err := r.read()
	if err == nil && r.part.name != "" {
		var name string
		name, err = textOf(r.part.name, false)
		all = object{{name, r.part.value}}
	}
	return all, err
}

// readMember reads an object as readObject does, and gives the one member that is kept; nil where there is none.
func readMember(raw json.RawMessage, name string) (any, error) {
	r := reader{src: string(raw), only: name}
	if _, err := r.read(); err != nil {
		return nil, err
	}
	return r.part.value, nil
}

var (
	errNoJSON  = errors.New("the arguments are no JSON")
	errTooDeep = errors.New("the arguments nest too deeply to be judged")
	errTwice   = errors.New("an argument is there twice")
	errNoUTF8  = errors.New("the arguments are no UTF-8")
)

// A reader goes through JSON once, and believes nothing of it. Its methods start at src[i], and leave i behind what they read.
type reader struct {
	src string
	i   int
	// only is the name that is kept of the outermost object, folded, and part what it has; with no name all of it is kept.
	only string
	part struct {
		name  string
		value any
	}
	// loose has it read what is not quite JSON, see readText.
	loose bool
}

// read reads all that there is: one object, of which it gives nothing where one member is kept only.
func (r *reader) read() (object, error) {
	if r.src == "" || r.src == "null" {
		return nil, nil
	}
	if len(r.src) > maxArguments {
		return nil, errors.New("the arguments are too large to be judged")
	}
	if r.next() != '{' {
		return nil, r.wrong(errors.New("the arguments are no object"))
	}
	all, err := r.object(0, true)
	if err != nil {
		return nil, r.wrong(err)
	}
	if r.next(); r.i < len(r.src) {
		return nil, r.wrong(errNoJSON)
	}
	return all, nil
}

// wrong is what is wrong with all that there is, where err is what was found first: it may be no UTF-8 further on.
func (r *reader) wrong(err error) error {
	if !utf8.ValidString(r.src) {
		return errNoUTF8
	}
	return err
}

// next passes over blanks, and gives the byte after them; 0 at the end.
func (r *reader) next() byte {
	if c := r.peek(); c > ' ' {
		return c
	}
	return r.afterBlanks()
}

// peek gives the next byte; 0 at the end.
func (r *reader) peek() byte {
	if r.i < len(r.src) {
		return r.src[r.i]
	}
	return 0
}

func (r *reader) afterBlanks() byte {
	for ; r.i < len(r.src); r.i++ {
		switch c := r.src[r.i]; c {
		case ' ', '\n', '\r', '\t':
		default:
			return c
		}
	}
	return 0
}

// value reads a value, and gives it where it is to be kept.
func (r *reader) value(depth int, keep bool) (any, error) {
	switch r.next() {
	case '"':
		text, plain, err := r.token()
		if !keep || err != nil {
			return nil, err
		}
		return textOf(text, plain)
	case '{':
		all, err := r.object(depth, keep)
		if !keep || err != nil {
			return nil, err
		}
		return all, nil
	case '[':
		list, err := r.array(depth, keep)
		if !keep || err != nil {
			return nil, err
		}
		return list, nil
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	case 'n':
		return nil, r.word("null")
	}
	start := r.i
	if r.loose {
		for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
			if r.word(word) == nil {
				return word, nil
			}
		}
	}
	err := r.number()
	if !keep || err != nil {
		return nil, err
	}
	return json.Number(r.src[start:r.i]), nil
}

func (r *reader) array(depth int, keep bool) (list []any, err error) {
	if depth >= maxDepth {
		return nil, errTooDeep
	}
	list = []any{}
	r.i++
	if r.next() == ']' {
		r.i++
		return list, nil
	}
	for {
		v, err := r.value(depth+1, keep)
		if err != nil {
			return nil, err
		}
		if keep {
			list = append(list, v)
		}
		switch r.next() {
		case ',':
			r.i++
		case ']':
			r.i++
			return list, nil
		default:
			return nil, errNoJSON
		}
	}
}

// object reads an object; it gives nil where none of it is kept, or one member only.
func (r *reader) object(depth int, keep bool) (all object, err error) {
	if depth >= maxDepth {
		return nil, errTooDeep
	}
	part := keep && depth == 0 && r.only != ""
	r.i++
	if r.next() == '}' {
		r.i++
		return all, nil
	}
	var seen names
	for {
		r.next()
		name, plain, err := r.token()
		if err != nil {
			return nil, err
		}
		same := name
		if !plain {
			if same, err = foldedName(name); err != nil {
				return nil, err
			}
		}
		if !r.loose && !seen.add(same) {
			return nil, errTwice
		}
		if r.next() != ':' {
			return nil, errNoJSON
		}
		r.i++
		mine := keep && (!part || alike(same, r.only))
		v, err := r.value(depth+1, mine)
		if err != nil {
			return nil, err
		}
		switch {
		case mine && part:
			r.part.name, r.part.value = name, v
		case mine:
			text, err := textOf(name, plain)
			if err != nil {
				return nil, err
			}
			if all == nil {
				all = make(object, 0, fewMembers)
			}
			all = append(all, member{text, v})
		}
		switch r.next() {
		case ',':
			r.i++
		case '}':
			r.i++
			return all, nil
		default:
			return nil, errNoJSON
		}
	}
}

// token reads a text, and gives what is between its quotes. It is plain where that is ASCII, and nothing in it is escaped.
func (r *reader) token() (text string, plain bool, err error) {
	if r.peek() != '"' {
		return "", false, errNoJSON
	}
	rest := r.src[r.i+1:]
	end := strings.IndexByte(rest, '"')
	if end < 0 {
		return "", false, errNoJSON
	}
	if text = rest[:end]; !isPlain(text) {
		text, err = r.intricate()
		return text, false, err
	}
	r.i += end + 2
	return text, true, nil
}

// isPlain says whether a text has neither backslashes nor control characters, and is ASCII. It looks at eight bytes at a time: of each
// the highest bit is set in the sum where it is too large, below a blank, or a backslash.
func isPlain(text string) bool {
	const each, highest = 0x0101010101010101, 0x8080808080808080
	for ; len(text) >= 8; text = text[8:] {
		eight := uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
			uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56
		if (eight|(eight-each*' ')|((eight^each*'\\')-each))&highest != 0 {
			return false
		}
	}
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// intricate is token for one that may be anything.
func (r *reader) intricate() (string, error) {
	r.i++
	for start := r.i; r.i < len(r.src); r.i++ {
		switch c := r.src[r.i]; {
		case c == '"':
			text := r.src[start:r.i]
			if r.i++; !r.loose && !utf8.ValidString(text) {
				return "", errNoUTF8
			}
			return text, nil
		case c < ' ':
			return "", errNoJSON
		case c == '\\':
			if r.i++; !r.escaped() {
				return "", errNoJSON
			}
		}
	}
	return "", errNoJSON
}

// escaped says whether what follows a backslash may, and goes on to the last byte of it.
func (r *reader) escaped() bool {
	if r.i == len(r.src) {
		return false
	}
	switch r.src[r.i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if r.i++; r.i == len(r.src) || !isHex(r.src[r.i]) {
				return false
			}
		}
		return true
	}
	return false
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// word reads true, false or null.
func (r *reader) word(word string) error {
	if !strings.HasPrefix(r.src[r.i:], word) {
		return errNoJSON
	}
	r.i += len(word)
	return nil
}

// number reads a number: RFC 8259, section 6.
func (r *reader) number() error {
	if r.peek() == '-' {
		r.i++
	}
	if r.peek() == '0' {
		r.i++
	} else if !r.digits() {
		return errNoJSON
	}
	if c := r.peek(); c == '.' || c|0x20 == 'e' {
		return r.fraction()
	}
	return nil
}

// fraction reads what may follow the whole part of a number.
func (r *reader) fraction() error {
	if r.one('.', '.') && !r.digits() {
		return errNoJSON
	}
	if r.one('e', 'E') {
		r.one('+', '-')
		if !r.digits() {
			return errNoJSON
		}
	}
	return nil
}

// one passes over one of two bytes, if it is there.
func (r *reader) one(this, that byte) bool {
	c := r.peek()
	if c != this && c != that {
		return false
	}
	r.i++
	return true
}

func (r *reader) digits() bool {
	start := r.i
	for r.i < len(r.src) && '0' <= r.src[r.i] && r.src[r.i] <= '9' {
		r.i++
	}
	return r.i > start
}

// textOf gives what a token says. It may be plain without being called so.
func textOf(token string, plain bool) (string, error) {
	if plain || strings.IndexByte(token, '\\') < 0 {
		return token, nil
	}
	return unescapedText(token)
}

func unescapedText(token string) (text string, err error) {
	if json.Unmarshal([]byte(`"`+token+`"`), &text) != nil {
		return "", errNoJSON
	}
	return text, nil
}

// foldedName gives the name that a token says as it is compared: of nearly all names those are the very bytes, in letters of either
// case, see alike.
func foldedName(token string) (string, error) {
	text, err := textOf(token, false)
	return foldName(text), err
}

// sameName says whether two names are the same as foldName has them.
func sameName(a, b string) bool {
	return alike(a, b) || !(isASCII(a) && isASCII(b)) && foldName(a) == foldName(b)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// alike says whether two names are the same but for the case of letters of ASCII.
func alike(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] && small(a[i]) != small(b[i]) {
			return false
		}
	}
	return true
}

func small(c byte) byte {
	if isCapital(c) {
		c += 'a' - 'A'
	}
	return c
}

// names are those of one object, as far as it was read: the first few, and where there are more all of them.
type names struct {
	few  [8]string
	n    int
	many map[string]bool
}

// add takes a name in. It says false where it is there already.
func (n *names) add(name string) bool {
	if n.many == nil {
		for _, other := range n.few[:n.n] {
			if alike(other, name) {
				return false
			}
		}
		if n.n < len(n.few) {
			n.few[n.n] = name
			n.n++
			return true
		}
		n.many = map[string]bool{}
		for _, other := range n.few {
			n.many[strings.ToLower(other)] = true
		}
	}
	same := strings.ToLower(name)
	if n.many[same] {
		return false
	}
	n.many[same] = true
	return true
}
