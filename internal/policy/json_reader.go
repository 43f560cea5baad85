package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A jsonObject contains the members of a JSON object. No two members have the same name, unless the jsonReader was
// lenient.
type jsonObject []jsonMember

type jsonMember struct {
	name  string
	value any
}

// fewMembers is the initial capacity for the members of an object.
const fewMembers = 4

// get returns the value of a member, and false if the member does not exist. If no member has exactly the name, a
// member whose name differs only in letter case is returned.
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

// respellNames returns a copy of v for an expression that uses the member names in names. A member whose name differs
// from one of them only in letter case gets the expression's spelling. changed is false if v needs no change.
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

// toMaps returns a copy of v in which objects are maps and each scalar is replaced by the result of leaf.
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

// toPlainMaps returns a copy of v in which objects are maps.
func toPlainMaps(v any) any { return toMaps(v, func(v any) any { return v }) }

// readObject parses an object. Empty raw is an empty object. If only is not "", the result has only the member with
// that name, in any letter case; the other members are still checked. An object that repeats a name is refused.
// Otherwise the server might read a value that no rule checked. Names that differ only in letter case count as
// repeated, because many parsers ignore case.
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

// readOneMember parses an object like readObject and returns the value of one member; nil if the member is missing.
func readOneMember(raw json.RawMessage, name string) (any, error) {
	r := jsonReader{raw: raw, src: string(raw), onlyName: name}
	if _, err := r.readAll(); err != nil {
		return nil, err
	}
	return r.keptMember.value, nil
}

var (
	errNotJSON           = errors.New("arguments are not valid JSON")
	errTooDeep           = errors.New("arguments nest too deeply")
	errDuplicateArgument = errors.New("an argument is repeated")
	errNotUTF8           = errors.New("arguments are not UTF-8")
)

// A jsonReader parses JSON in one pass, and refuses repeated names. It uses package rawjson to find the ends of tokens.
// The methods start at src[i] and set i to the index after the text that they parsed.
type jsonReader struct {
	raw []byte
	src string // the same text as raw; the parsed values are substrings of it
	i   int
	// onlyName is the name, in any letter case, of the only member of the outermost object that is returned. The member
	// is returned in keptMember. If onlyName is empty, all members are returned.
	onlyName   string
	keptMember struct {
		name  string
		value any
	}
	// lenient makes the reader accept text that is not strict JSON, such as repeated names, see readText.
	lenient bool
}

// readAll parses the whole text, which must be one object. If onlyName is set, it sets keptMember and returns nil.
func (r *jsonReader) readAll() (jsonObject, error) {
	if r.src == "" || r.src == "null" {
		return nil, nil
	}
	if len(r.src) > maxArguments {
		return nil, errors.New("arguments are too large")
	}
	if r.nextNonBlank() != '{' {
		return nil, r.firstError(errors.New("arguments must be a JSON object"))
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

// firstError returns errNotUTF8 if any part of the text is not UTF-8. Otherwise it returns err.
func (r *jsonReader) firstError(err error) error {
	if !utf8.ValidString(r.src) {
		return errNotUTF8
	}
	return err
}

// nextNonBlank skips white space and returns the next byte, without consuming it; 0 at the end.
func (r *jsonReader) nextNonBlank() byte {
	if r.i = rawjson.SkipSpace(r.raw, r.i); r.i < len(r.src) {
		return r.src[r.i]
	}
	return 0
}

// readValue parses a value. If keep is true, it returns the value; otherwise it only checks the syntax and returns nil.
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

// readLiteral parses a number, true, false or null.
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

// readObject parses an object. If keep is false, it returns nil. For the outermost object it also returns nil if
// onlyName is set, and sets keptMember.
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

// readToken parses a string and returns the text between its quotes, without decoding its escapes. plain reports
// whether the text is ASCII and has no escapes.
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

// isPlainASCII reports whether text is ASCII without backslashes and control characters. It checks eight bytes at a
// time. In the combined value, the highest bit of a byte is set if the byte is above ASCII, less than a space, or a
// backslash.
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

// tokenText returns the text of a token with its escapes decoded.
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

// foldedTokenName returns the name in a token with its escapes decoded and its letter case folded.
func foldedTokenName(token string) (string, error) {
	text, err := tokenText(token, false)
	return foldArgumentName(text), err
}

// equalNames reports whether two names are equal after foldArgumentName.
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

// equalFoldASCII reports whether two names are equal except for the case of ASCII letters.
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

// A nameSet is the set of names that were parsed in one object. The first eight names are stored in an array. If there
// are more, all names are stored in a map.
type nameSet struct {
	few  [8]string
	n    int
	many map[string]bool
}

// add adds a name. It returns false if the set already contains the name, in any letter case.
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
