package doc

import "strings"

// maxNames bounds the sum of the lengths of all keys' full names in a TOML file: the decoder spells each of them out.
const maxNames = 32 << 20

// scanTOML finds where the keys of a TOML file stand. It does not judge the file: that is the decoder's business, which
// comes after it. It refuses what would cost the decoder too much; that error is a *Error.
func scanTOML(data string) (*spot, error) {
	s := &tomlScanner{data: strings.TrimPrefix(data, byteOrderMark), line: 1}
	root := &spot{line: 1}
	open := root
	for s.blanks(); s.at < len(s.data) && s.err == nil; s.blanks() {
		if s.peek() == '[' {
			open = s.header(root)
		} else {
			s.pair(open)
		}
		s.restOfLine()
	}
	if s.err != nil {
		return nil, s.err
	}
	return root, nil
}

type tomlScanner struct {
	data     string
	at, line int
	depth    int
	names    int
	err      *Error
}

// peek gives the next byte; 0 at the end.
func (s *tomlScanner) peek() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *tomlScanner) has(prefix string) bool { return strings.HasPrefix(s.data[s.at:], prefix) }

// move passes over n bytes and counts their lines.
func (s *tomlScanner) move(n int) {
	n = min(n, len(s.data)-s.at)
	s.line += strings.Count(s.data[s.at:s.at+n], "\n")
	s.at += n
}

// skip passes over the bytes of set.
func (s *tomlScanner) skip(set string) {
	rest := s.data[s.at:]
	s.move(len(rest) - len(strings.TrimLeft(rest, set)))
}

// until passes over what comes before the next byte of set.
func (s *tomlScanner) until(set string) {
	if i := strings.IndexAny(s.data[s.at:], set); i >= 0 {
		s.move(i)
		return
	}
	s.move(len(s.data))
}

func (s *tomlScanner) restOfLine() { s.until("\n") }

// blanks passes over white space, line ends and comments.
func (s *tomlScanner) blanks() {
	for s.skip(" \t\r\n"); s.peek() == '#'; s.skip(" \t\r\n") {
		s.restOfLine()
	}
}

// header opens the table that "[name]" or "[[name]]" names: of an array of tables, its newest.
func (s *tomlScanner) header(root *spot) *spot {
	array := s.has("[[")
	s.skip("[")
	line := s.line
	names := s.key()
	at := root
	for i, name := range names {
		at = s.child(at, name, line)
		switch {
		case array && i == len(names)-1:
			at.items = append(at.items, &spot{line: line, path: at.path})
			fallthrough
		case len(at.items) > 0:
			at = at.items[len(at.items)-1]
		}
	}
	return at
}

// pair takes "key = value" into a table.
func (s *tomlScanner) pair(in *spot) {
	line := s.line
	at := in
	for _, name := range s.key() {
		at = s.child(at, name, line)
	}
	s.skip(" \t")
	if s.peek() == '=' {
		s.move(1)
		s.value(at)
	}
}

// key reads a dotted key. A name in quotes is taken as it stands: one with escapes in it is not found again, and then
// has the line of its table.
func (s *tomlScanner) key() []string {
	var names []string
	for s.err == nil {
		s.skip(" \t")
		start := s.at
		if c := s.peek(); c == '"' || c == '\'' {
			s.quoted()
			names = append(names, strings.Trim(s.data[start:s.at], string(c)))
		} else {
			s.until(" \t\r\n.=]}#\"'")
			names = append(names, s.data[start:s.at])
		}
		s.skip(" \t")
		if s.peek() != '.' {
			break
		}
		s.move(1)
		s.limit(s.depth + len(names))
	}
	return names
}

// child gives the spot of a name, which stands where it was seen first.
func (s *tomlScanner) child(in *spot, name string, line int) *spot {
	at := in.kids[name]
	if at == nil {
		at = &spot{line: line, path: in.path + len(name) + 1}
		if in.kids == nil {
			in.kids = map[string]*spot{}
		}
		in.kids[name] = at
		in.names = append(in.names, name)
	}
	if s.names += at.path; s.names > maxNames && s.err == nil {
		s.err = Wrong(line, "the keys of the file are too many or too long")
	}
	return at
}

func (s *tomlScanner) limit(depth int) {
	if depth > MaxDepth && s.err == nil {
		s.err = Wrong(s.line, "values nest deeper than %d", MaxDepth)
	}
}

// value passes over a value, and takes the keys of inline tables in it.
func (s *tomlScanner) value(at *spot) {
	s.depth++
	defer func() { s.depth-- }()
	s.limit(s.depth)
	s.skip(" \t")
	switch s.peek() {
	case '"', '\'':
		s.quoted()
	case '[':
		s.within(']', func() {
			item := &spot{line: s.line, path: at.path}
			at.items = append(at.items, item)
			s.value(item)
		})
	case '{':
		s.within('}', func() { s.pair(at) })
	default:
		s.until(",]}#\n")
	}
}

// within passes over an array or inline table; each takes one of its parts.
func (s *tomlScanner) within(end byte, each func()) {
	s.move(1)
	for s.err == nil {
		s.blanks()
		start := s.at
		switch s.peek() {
		case end:
			s.move(1)
			return
		case ',':
			s.move(1)
		default:
			each()
		}
		if s.at == start { // the end of the file, or no TOML
			return
		}
	}
}

// quoted passes over a string of any of the four sorts.
func (s *tomlScanner) quoted() {
	quote := s.data[s.at : s.at+1]
	triple := quote + quote + quote
	if !s.has(triple) {
		s.move(1)
		for s.at < len(s.data) && s.peek() != quote[0] && s.peek() != '\n' {
			s.char(quote)
		}
		if s.peek() == quote[0] {
			s.move(1)
		}
		return
	}
	s.move(3)
	for s.at < len(s.data) && !s.has(triple) {
		s.char(quote)
	}
	s.move(3)
	for range 2 { // up to two quotes may stand before the three that close
		if s.has(quote) {
			s.move(1)
		}
	}
}

// char passes over one byte of a string, or over an escape.
func (s *tomlScanner) char(quote string) {
	if quote == `"` && s.peek() == '\\' {
		s.move(2)
		return
	}
	s.move(1)
}
