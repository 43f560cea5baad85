package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// readObject reads an object. None at all is an empty one. Of its members only that with a name is kept, however it is written;
// with no name all are. The rest is looked at all the same: an object in which a name stands twice is refused, since whoever
// carries out the call might take the one that no rule looked at. Names that differ in case only count as one, as they do to
// many readers.
func readObject(raw json.RawMessage, only string) (map[string]any, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]any{}, nil
	}
	if len(raw) > maxArguments {
		return nil, errors.New("the arguments are too large to be judged")
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("the arguments are no UTF-8")
	}
	if !json.Valid(raw) {
		return nil, errors.New("the arguments are no JSON")
	}
	r := reader{src: raw, only: only}
	if r.next() != '{' {
		return nil, errors.New("the arguments are no object")
	}
	return r.object(0, true)
}

// A reader goes through what is known to be one JSON value. Its methods start at src[i], and leave i behind what they read.
type reader struct {
	src  []byte
	i    int
	only string // the name that is kept of the outermost object, folded; empty for all
}

// next passes over blanks and commas, and gives the byte after them.
func (r *reader) next() byte {
	for {
		switch c := r.src[r.i]; c {
		case ' ', '\n', '\r', '\t', ',', ':':
			r.i++
		default:
			return c
		}
	}
}

// value reads a value, and gives it where it is to be kept.
func (r *reader) value(depth int, keep bool) (any, error) {
	switch c := r.next(); c {
	case '{':
		object, err := r.object(depth, keep)
		if object == nil {
			return nil, err
		}
		return object, err
	case '[':
		return r.array(depth, keep)
	case '"':
		if token := r.token(); keep {
			return textOf(token)
		}
		return nil, nil
	default:
		start := r.i
		for r.i < len(r.src) && bytes.IndexByte([]byte(" \n\r\t,]}"), r.src[r.i]) < 0 {
			r.i++
		}
		switch {
		case !keep || c == 'n':
			return nil, nil
		case c == 't' || c == 'f':
			return c == 't', nil
		}
		return json.Number(r.src[start:r.i]), nil
	}
}

func (r *reader) array(depth int, keep bool) (any, error) {
	if depth >= maxDepth {
		return nil, errTooDeep
	}
	list := []any{}
	for r.i++; r.next() != ']'; {
		v, err := r.value(depth+1, keep)
		if err != nil {
			return nil, err
		}
		if keep {
			list = append(list, v)
		}
	}
	r.i++
	return list, nil
}

func (r *reader) object(depth int, keep bool) (map[string]any, error) {
	if depth >= maxDepth {
		return nil, errTooDeep
	}
	var object map[string]any
	if keep {
		object = map[string]any{}
	}
	var seen names
	for r.i++; r.next() != '}'; {
		token := r.token()
		same, err := foldedName(token)
		if err != nil {
			return nil, err
		}
		if !seen.add(same) {
			return nil, errors.New("an argument is there twice")
		}
		mine := keep && (depth > 0 || r.only == "" || string(same) == r.only)
		v, err := r.value(depth+1, mine)
		if err != nil {
			return nil, err
		}
		if mine {
			name, err := textOf(token)
			if err != nil {
				return nil, err
			}
			object[name] = v
		}
	}
	r.i++
	return object, nil
}

// token reads a text, with its quotes.
func (r *reader) token() []byte {
	start := r.i
	for r.i++; r.src[r.i] != '"'; r.i++ {
		if r.src[r.i] == '\\' {
			r.i++
		}
	}
	r.i++
	return r.src[start:r.i]
}

var errTooDeep = errors.New("the arguments nest too deeply to be judged")

// textOf gives what a token says.
func textOf(token []byte) (string, error) {
	if bytes.IndexByte(token, '\\') < 0 {
		return string(token[1 : len(token)-1]), nil
	}
	var text string
	if json.Unmarshal(token, &text) != nil {
		return "", errors.New("the arguments are no JSON")
	}
	return text, nil
}

// foldedName gives the name that a token says as foldName does, and of nearly all names the very bytes.
func foldedName(token []byte) ([]byte, error) {
	inside := token[1 : len(token)-1]
	for _, c := range inside {
		if c >= utf8.RuneSelf || c == '\\' || 'A' <= c && c <= 'Z' {
			text, err := textOf(token)
			return []byte(foldName(text)), err
		}
	}
	return inside, nil
}

// names are those of one object, as far as it was read: the first few, and where there are more all of them.
type names struct {
	few  [8][]byte
	n    int
	many map[string]bool
}

// add takes a name in. It says false where it is there already.
func (n *names) add(name []byte) bool {
	if n.many == nil {
		for _, other := range n.few[:n.n] {
			if bytes.Equal(other, name) {
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
			n.many[string(other)] = true
		}
	}
	if n.many[string(name)] {
		return false
	}
	n.many[string(name)] = true
	return true
}
