package configfile

import "strings"

// maxKeyBytes limits the total length of the full names of all keys in a TOML file, because the decoder stores all of
// them.
const maxKeyBytes = 32 << 20

// scanTOMLKeys returns the positions of the keys of a TOML file. It does not validate the file, because the decoder
// does. It rejects a file that would need too much memory or recursion in the decoder. Such an error is an *Error.
func scanTOMLKeys(data string) (*keyPosition, error) {
	s := &tomlKeyScanner{data: strings.TrimPrefix(data, byteOrderMark), line: 1}
	root := &keyPosition{line: 1}
	open := root
	for s.skipBlanks(); s.at < len(s.data) && s.err == nil; s.skipBlanks() {
		if s.peek() == '[' {
			open = s.readHeader(root)
		} else {
			s.readKeyValue(open)
		}
		s.skipLine()
	}
	if s.err != nil {
		return nil, s.err
	}
	return root, nil
}

type tomlKeyScanner struct {
	data     string
	at, line int
	depth    int
	names    int
	err      *Error
}

// peek returns the next byte, or 0 at the end of the data.
func (s *tomlKeyScanner) peek() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *tomlKeyScanner) hasPrefix(prefix string) bool {
	return strings.HasPrefix(s.data[s.at:], prefix)
}

// advance skips n bytes and counts the line endings in them.
func (s *tomlKeyScanner) advance(n int) {
	n = min(n, len(s.data)-s.at)
	s.line += strings.Count(s.data[s.at:s.at+n], "\n")
	s.at += n
}

// skipAny skips all bytes that are in set.
func (s *tomlKeyScanner) skipAny(set string) {
	rest := s.data[s.at:]
	s.advance(len(rest) - len(strings.TrimLeft(rest, set)))
}

// skipUntil skips to the next byte that is in set, or to the end.
func (s *tomlKeyScanner) skipUntil(set string) {
	if i := strings.IndexAny(s.data[s.at:], set); i >= 0 {
		s.advance(i)
		return
	}
	s.advance(len(s.data))
}

func (s *tomlKeyScanner) skipLine() { s.skipUntil("\n") }

// skipBlanks skips white space, line endings and comments.
func (s *tomlKeyScanner) skipBlanks() {
	for s.skipAny(" \t\r\n"); s.peek() == '#'; s.skipAny(" \t\r\n") {
		s.skipLine()
	}
}

// readHeader reads "[name]" or "[[name]]" and returns the position of its table. For an array of tables, this is the
// last table of the array.
func (s *tomlKeyScanner) readHeader(root *keyPosition) *keyPosition {
	array := s.hasPrefix("[[")
	s.skipAny("[")
	line := s.line
	names := s.readKey()
	at := root
	for i, name := range names {
		at = s.childPosition(at, name, line)
		switch {
		case array && i == len(names)-1:
			at.items = append(at.items, &keyPosition{line: line, path: at.path})
			fallthrough
		case len(at.items) > 0:
			at = at.items[len(at.items)-1]
		}
	}
	return at
}

// readKeyValue reads "key = value" and adds its keys to the table in.
func (s *tomlKeyScanner) readKeyValue(in *keyPosition) {
	line := s.line
	at := in
	for _, name := range s.readKey() {
		at = s.childPosition(at, name, line)
	}
	s.skipAny(" \t")
	if s.peek() == '=' {
		s.advance(1)
		s.scanValue(at)
	}
}

// readKey reads a dotted key and returns its names. Escapes in a quoted name are not decoded. A value under a name with
// escapes therefore has no position of its own, and gets the line of its table.
func (s *tomlKeyScanner) readKey() []string {
	var names []string
	for s.err == nil {
		s.skipAny(" \t")
		start := s.at
		if c := s.peek(); c == '"' || c == '\'' {
			s.skipString()
			names = append(names, strings.Trim(s.data[start:s.at], string(c)))
		} else {
			s.skipUntil(" \t\r\n.=]}#\"'")
			names = append(names, s.data[start:s.at])
		}
		s.skipAny(" \t")
		if s.peek() != '.' {
			break
		}
		s.advance(1)
		s.checkDepth(s.depth + len(names))
	}
	return names
}

// childPosition returns the position of a name in a table. It adds the position if the name is new.
func (s *tomlKeyScanner) childPosition(in *keyPosition, name string, line int) *keyPosition {
	at := in.children[name]
	if at == nil {
		at = &keyPosition{line: line, path: in.path + len(name) + 1}
		if in.children == nil {
			in.children = map[string]*keyPosition{}
		}
		in.children[name] = at
		in.names = append(in.names, name)
	}
	if s.names += at.path; s.names > maxKeyBytes && s.err == nil {
		s.err = ErrorAt(line, "the keys of the file are too many or too long")
	}
	return at
}

func (s *tomlKeyScanner) checkDepth(depth int) {
	if depth > MaxDepth && s.err == nil {
		s.err = ErrorAt(s.line, "values nest deeper than %d", MaxDepth)
	}
}

// scanValue skips a value, and adds the keys of inline tables in the value to at.
func (s *tomlKeyScanner) scanValue(at *keyPosition) {
	s.depth++
	defer func() { s.depth-- }()
	s.checkDepth(s.depth)
	s.skipAny(" \t")
	switch s.peek() {
	case '"', '\'':
		s.skipString()
	case '[':
		s.scanCollection(']', func() {
			item := &keyPosition{line: s.line, path: at.path}
			at.items = append(at.items, item)
			s.scanValue(item)
		})
	case '{':
		s.scanCollection('}', func() { s.readKeyValue(at) })
	default:
		s.skipUntil(",]}#\n")
	}
}

// scanCollection skips an array or inline table. At the start of each item, it calls the function each, which must skip
// the item.
func (s *tomlKeyScanner) scanCollection(end byte, each func()) {
	s.advance(1)
	for s.err == nil {
		s.skipBlanks()
		start := s.at
		switch s.peek() {
		case end:
			s.advance(1)
			return
		case ',':
			s.advance(1)
		default:
			each()
		}
		if s.at == start { // the end of the file, or invalid TOML
			return
		}
	}
}

// skipString skips a string: basic or literal, on one line or several.
func (s *tomlKeyScanner) skipString() {
	quote := s.data[s.at : s.at+1]
	triple := quote + quote + quote
	if !s.hasPrefix(triple) {
		s.advance(1)
		for s.at < len(s.data) && s.peek() != quote[0] && s.peek() != '\n' {
			s.skipChar(quote)
		}
		if s.peek() == quote[0] {
			s.advance(1)
		}
		return
	}
	s.advance(3)
	for s.at < len(s.data) && !s.hasPrefix(triple) {
		s.skipChar(quote)
	}
	s.advance(3)
	for range 2 { // up to two quotes may precede the closing three
		if s.hasPrefix(quote) {
			s.advance(1)
		}
	}
}

// skipChar skips one byte of a string, or an escape of two bytes.
func (s *tomlKeyScanner) skipChar(quote string) {
	if quote == `"` && s.peek() == '\\' {
		s.advance(2)
		return
	}
	s.advance(1)
}
