package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A jsonObject is one of JSON, whose names differ.
type jsonObject []jsonMember

type jsonMember struct {
	name  string
	value any
}

// fewMembers is how many members an object has room for that has any.
const fewMembers = 4

// get returns what a name has, in whichever case it is written; false where there is no such name.
func (o jsonObject) get(name string) (any, bool) {
	for i := range o {
		if o[i].name == name {
			return o[i].value, true
		}
	}
	for i := range o {
		if equalNames(o[i].name, name) {
			return o[i].value, true
		}
	}
	return nil, false
}

// respellNames returns a value with the names in it as they are spelled here, where they are the same except for their
// case: an expression takes them as it spells them. It says false where that changes nothing.
func respellNames(v any, names []string) (out any, changed bool) {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			inside, is := respellNames(item, names)
			list[i], changed = inside, changed || is
		}
		return list, changed
	case jsonObject:
		var all jsonObject
		for _, m := range v {
			inside, is := respellNames(m.value, names)
			changed = changed || is
			same := foldArgumentName(m.name)
			known := len(all)
			for _, name := range names {
				if name == m.name || foldArgumentName(name) == same {
					all, changed = append(all, jsonMember{name, inside}), changed || name != m.name
				}
			}
			if len(all) == known {
				all = append(all, jsonMember{m.name, inside})
			}
		}
		return all, changed
	}
	return v, false
}

// toMaps returns a value in which objects are maps, and what is neither list nor object is what leaf makes of it.
func toMaps(v any, leaf func(any) any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = toMaps(item, leaf)
		}
		return out
	case jsonObject:
		out := make(map[string]any, len(v))
		for _, m := range v {
			out[m.name] = toMaps(m.value, leaf)
		}
		return out
	}
	return leaf(v)
}

// toPlainMaps returns a value in which objects are maps.
func toPlainMaps(v any) any { return toMaps(v, func(v any) any { return v }) }

// readObject reads an object. None at all is an empty one. Of its members only that with a name is kept, however it is
// written; with no name all are. The rest is looked at all the same: an object in which a name stands twice is
// refused, since whoever carries out the call might take the one that no rule looked at. Names that differ in case
// only count as one, as they do to many readers.
func readObject(raw json.RawMessage, only string) (jsonObject, error) {
	r := jsonReader{raw: raw, src: string(raw), onlyName: only}
	all, err := r.readAll()
	if err == nil && r.keptMember.name != "" {
		var name string
		name, err = tokenText(r.keptMember.name, false)
		all = jsonObject{{name, r.keptMember.value}}
	}
	return all, err
}

// readOneMember reads an object as readObject does, and gives the one member that is kept; nil where there is none.
func readOneMember(raw json.RawMessage, name string) (any, error) {
	r := jsonReader{raw: raw, src: string(raw), onlyName: name}
	if _, err := r.readAll(); err != nil {
		return nil, err
	}
	return r.keptMember.value, nil
}

var (
	errNotJSON           = errors.New("the arguments are no JSON")
	errTooDeep           = errors.New("the arguments nest too deeply to be judged")
	errDuplicateArgument = errors.New("an argument is there twice")
	errNotUTF8           = errors.New("the arguments are no UTF-8")
)

// A jsonReader builds values of JSON in one pass, and refuses repeated names. Package rawjson reads the tokens. Its
// methods start at src[i] and leave i behind the text they read.
type jsonReader struct {
	raw []byte
	src string // the same text as raw; the values are parts of it
	i   int
	// onlyName is the name that is kept of the outermost object, folded, and part what it has; with no name all of it
	// is kept.
	onlyName   string
	keptMember struct {
		name  string
		value any
	}
	// lenient has it read what is not quite JSON, see readText.
	lenient bool
}

// readAll reads all that there is: one object, of which it gives nothing where one member is kept only.
func (r *jsonReader) readAll() (jsonObject, error) {
	if r.src == "" || r.src == "null" {
		return nil, nil
	}
	if len(r.src) > maxArguments {
		return nil, errors.New("the arguments are too large to be judged")
	}
	if r.nextNonBlank() != '{' {
		return nil, r.firstError(errors.New("the arguments are no object"))
	}
	all, err := r.readObject(0, true)
	if err != nil {
		return nil, r.firstError(err)
	}
	if r.nextNonBlank(); r.i < len(r.src) {
		return nil, r.firstError(errNotJSON)
	}
	return all, nil
}

// firstError is what is wrong with all that there is, where err is what was found first: it may be no UTF-8 further on.
func (r *jsonReader) firstError(err error) error {
	if !utf8.ValidString(r.src) {
		return errNotUTF8
	}
	return err
}

// nextNonBlank skips white space and returns the next byte; 0 at the end.
func (r *jsonReader) nextNonBlank() byte {
	if r.i = rawjson.SkipSpace(r.raw, r.i); r.i < len(r.src) {
		return r.src[r.i]
	}
	return 0
}

// readValue reads a value, and gives it where it is to be kept.
func (r *jsonReader) readValue(depth int, keep bool) (any, error) {
	switch r.nextNonBlank() {
	case '"':
		text, plain, err := r.readToken()
		if !keep || err != nil {
			return nil, err
		}
		return tokenText(text, plain)
	case '{':
		all, err := r.readObject(depth, keep)
		if !keep || err != nil {
			return nil, err
		}
		return all, nil
	case '[':
		list, err := r.readArray(depth, keep)
		if !keep || err != nil {
			return nil, err
		}
		return list, nil
	}
	return r.readLiteral(keep)
}

// readLiteral reads a number, true, false or null.
func (r *jsonReader) readLiteral(keep bool) (any, error) {
	start := r.i
	if r.lenient {
		for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
			if strings.HasPrefix(r.src[start:], word) {
				r.i += len(word)
				return word, nil
			}
		}
	}
	end, err := rawjson.SkipScalar(r.raw, start)
	if err != nil {
		return nil, errNotJSON
	}
	r.i = end
	if !keep {
		return nil, nil
	}
	switch word := r.src[start:end]; word {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	default:
		return json.Number(word), nil
	}
}

func (r *jsonReader) readArray(depth int, keep bool) (list []any, err error) {
	if depth >= maxDepth {
		return nil, errTooDeep
	}
	list = []any{}
	r.i++
	if r.nextNonBlank() == ']' {
		r.i++
		return list, nil
	}
	for {
		v, err := r.readValue(depth+1, keep)
		if err != nil {
			return nil, err
		}
		if keep {
			list = append(list, v)
		}
		switch r.nextNonBlank() {
		case ',':
			r.i++
		case ']':
			r.i++
			return list, nil
		default:
			return nil, errNotJSON
		}
	}
}

// readObject reads an object; it gives nil where none of it is kept, or one member only.
func (r *jsonReader) readObject(depth int, keep bool) (all jsonObject, err error) {
	if depth >= maxDepth {
		return nil, errTooDeep
	}
	part := keep && depth == 0 && r.onlyName != ""
	r.i++
	if r.nextNonBlank() == '}' {
		r.i++
		return all, nil
	}
	var seen nameSet
	for {
		r.nextNonBlank()
		name, plain, err := r.readToken()
		if err != nil {
			return nil, err
		}
		same := name
		if !plain {
			if same, err = foldedTokenName(name); err != nil {
				return nil, err
			}
		}
		if !r.lenient && !seen.add(same) {
			return nil, errDuplicateArgument
		}
		if r.nextNonBlank() != ':' {
			return nil, errNotJSON
		}
		r.i++
		mine := keep && (!part || equalFoldASCII(same, r.onlyName))
		v, err := r.readValue(depth+1, mine)
		if err != nil {
			return nil, err
		}
		switch {
		case mine && part:
			r.keptMember.name, r.keptMember.value = name, v
		case mine:
			text, err := tokenText(name, plain)
			if err != nil {
				return nil, err
			}
			if all == nil {
				all = make(jsonObject, 0, fewMembers)
			}
			all = append(all, jsonMember{text, v})
		}
		switch r.nextNonBlank() {
		case ',':
			r.i++
		case '}':
			r.i++
			return all, nil
		default:
			return nil, errNotJSON
		}
	}
}

// readToken reads a string and returns the text between its quotes. The text is plain if it is ASCII without escapes.
func (r *jsonReader) readToken() (text string, plain bool, err error) {
	start := r.i + 1
	if r.i >= len(r.src) || r.src[r.i] != '"' {
		return "", false, errNotJSON
	}
	if r.i, err = rawjson.SkipScalar(r.raw, r.i); err != nil {
		return "", false, errNotJSON
	}
	if text = r.src[start : r.i-1]; isPlainASCII(text) {
		return text, true, nil
	}
	if !r.lenient && !utf8.ValidString(text) {
		return "", false, errNotUTF8
	}
	return text, false, nil
}

// isPlainASCII reports whether a text has neither backslashes nor control characters, and is ASCII. It looks at eight
// bytes at a time: of each the highest bit is set in the sum where it is too large, below a blank, or a backslash.
func isPlainASCII(text string) bool {
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

// tokenText returns what a token says. It may be plain without being called so.
func tokenText(token string, plain bool) (string, error) {
	if plain || strings.IndexByte(token, '\\') < 0 {
		return token, nil
	}
	return unescapeToken(token)
}

func unescapeToken(token string) (string, error) {
	text, ok := rawjson.DecodeString(json.RawMessage(`"` + token + `"`))
	if !ok {
		return "", errNotJSON
	}
	return text, nil
}

// foldedTokenName returns the name that a token says as it is compared: of nearly all names those are the very bytes,
// in letters of either case, see alike.
func foldedTokenName(token string) (string, error) {
	text, err := tokenText(token, false)
	return foldArgumentName(text), err
}

// equalNames reports whether two names are the same as foldArgumentName has them.
func equalNames(a, b string) bool {
	return equalFoldASCII(a, b) || !(isASCII(a) && isASCII(b)) && foldArgumentName(a) == foldArgumentName(b)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// equalFoldASCII reports whether two names are the same except for the case of letters of ASCII.
func equalFoldASCII(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] && lowerASCII(a[i]) != lowerASCII(b[i]) {
			return false
		}
	}
	return true
}

func lowerASCII(c byte) byte {
	if isUpperASCII(c) {
		c += 'a' - 'A'
	}
	return c
}

// nameSet are those of one object, as far as it was read: the first few, and where there are more all of them.
type nameSet struct {
	few  [8]string
	n    int
	many map[string]bool
}

// add takes a name in. It says false where it is there already.
func (n *nameSet) add(name string) bool {
	if n.many == nil {
		for _, other := range n.few[:n.n] {
			if equalFoldASCII(other, name) {
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
