package configfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// A tomlStatement is one "[header]" or one "key = value" of a TOML document.
type tomlStatement struct {
	index  int
	header bool
	// path is the full name of the table or key. For an element in a list of tables it contains an indexStep. table is
	// the path of the table that contains a key, and equals path for a header.
	path, table []string
	// start and end are the offsets of the statement; value is the offset of a key's value.
	start, value, end int
}

// indexStep returns the path step of the element with index n in a list of tables.
func indexStep(n int) string { return "\x00" + strconv.Itoa(n) }

// A statementScanner finds the statements of a TOML document and their offsets. It does not validate the document,
// because the decoder does.
type statementScanner struct {
	data  string
	at    int
	depth int
	// table is the path of the current table. lists maps the joined path of each list of tables to the number of
	// elements that were found so far.
	table      []string
	lists      map[string]int
	statements []tomlStatement
}

func (s *statementScanner) scan() error {
	for s.skipBlanks(); s.at < len(s.data); s.skipBlanks() {
		start := s.at
		if s.data[s.at] == '[' {
			s.readHeader()
		} else if err := s.readKeyValue(); err != nil {
			return err
		}
		if s.at == start { // not valid TOML
			s.at++
		}
		s.skipUntil("\n")
	}
	return nil
}

// skipBlanks skips white space, line endings and comments.
func (s *statementScanner) skipBlanks() {
	for s.skipAny(" \t\r\n"); strings.HasPrefix(s.data[s.at:], "#"); s.skipAny(" \t\r\n") {
		s.skipUntil("\n")
	}
}

func (s *statementScanner) skipAny(set string) {
	s.at = len(s.data) - len(strings.TrimLeft(s.data[s.at:], set))
}

// skipUntil skips to the next byte that is in set, or to the end.
func (s *statementScanner) skipUntil(set string) {
	if i := strings.IndexAny(s.data[s.at:], set); i >= 0 {
		s.at += i
		return
	}
	s.at = len(s.data)
}

func (s *statementScanner) readHeader() {
	start := s.at
	list := strings.HasPrefix(s.data[s.at:], "[[")
	s.skipAny("[")
	names := s.readKey()
	s.skipAny(" \t")
	s.skipAny("]")
	var path []string
	for i, name := range names {
		path = append(path, name)
		joined := strings.Join(path, "\x01")
		if list && i == len(names)-1 {
			s.lists[joined]++
		}
		if n := s.lists[joined]; n > 0 {
			path = append(path, indexStep(n-1))
		}
	}
	s.table = path
	s.statements = append(s.statements, tomlStatement{index: len(s.statements), header: true, path: path, table: path,
		start: start, value: start, end: s.at})
}

func (s *statementScanner) readKeyValue() error {
	start := s.at
	path := append(append([]string{}, s.table...), s.readKey()...)
	s.skipAny(" \t=")
	value := s.at
	if err := s.skipValue(); err != nil {
		return err
	}
	s.statements = append(s.statements, tomlStatement{index: len(s.statements), path: path, table: s.table,
		start: start, value: value, end: s.at})
	return nil
}

// readKey reads a dotted key and returns its names.
func (s *statementScanner) readKey() (names []string) {
	for {
		s.skipAny(" \t")
		start := s.at
		if rest := s.data[s.at:]; rest != "" && (rest[0] == '"' || rest[0] == '\'') {
			s.skipString()
			names = append(names, unquoteKey(s.data[start:s.at]))
		} else {
			s.skipUntil(" \t\r\n.=]#\"'")
			names = append(names, s.data[start:s.at])
		}
		blank := s.at
		s.skipAny(" \t")
		if !strings.HasPrefix(s.data[s.at:], ".") {
			s.at = blank
			return names
		}
		s.at++
	}
}

// unquoteKey returns the name without quotes and with its escapes decoded.
func unquoteKey(quoted string) string {
	var into struct{ K string }
	if _, err := toml.Decode("K = "+quoted, &into); err != nil {
		return quoted // an invalid name; the decoder returns an error
	}
	return into.K
}

func (s *statementScanner) skipValue() error {
	s.depth++
	defer func() { s.depth-- }()
	if s.depth > maxNesting {
		return fmt.Errorf("values nest deeper than %d", maxNesting)
	}
	if s.at >= len(s.data) {
		return nil
	}
	switch s.data[s.at] {
	case '"', '\'':
		s.skipString()
	case '[', '{':
		return s.skipCollection()
	default:
		start := s.at
		s.skipUntil(",]}#\r\n")
		s.at = start + len(strings.TrimRight(s.data[start:s.at], " \t"))
	}
	return nil
}

// skipCollection skips a list or an inline table. It does not distinguish names from values.
func (s *statementScanner) skipCollection() error {
	s.at++
	for s.skipBlanks(); s.at < len(s.data); s.skipBlanks() {
		switch s.data[s.at] {
		case ']', '}':
			s.at++
			return nil
		case ',', '=', '.':
			s.at++
		default:
			start := s.at
			if s.data[s.at] == '"' || s.data[s.at] == '\'' || s.data[s.at] == '[' || s.data[s.at] == '{' {
				if err := s.skipValue(); err != nil {
					return err
				}
			} else {
				s.skipUntil(" \t,]}=#\r\n\"'[{")
			}
			if s.at == start {
				s.at++
			}
		}
	}
	return nil
}

// skipString skips a string: basic or literal, on one line or several.
func (s *statementScanner) skipString() {
	quote := s.data[s.at : s.at+1]
	triple := strings.Repeat(quote, 3)
	end, lines := quote, false
	if strings.HasPrefix(s.data[s.at:], triple) {
		end, lines = triple, true
	}
	s.at += len(end)
	for s.at < len(s.data) && !strings.HasPrefix(s.data[s.at:], end) && (lines || s.data[s.at] != '\n') {
		if quote == `"` && s.data[s.at] == '\\' {
			s.at++
		}
		s.at++
	}
	s.at = min(s.at+len(end), len(s.data))
	for range 2 { // up to two quotes may precede the closing three
		if lines && strings.HasPrefix(s.data[s.at:], quote) {
			s.at++
		}
	}
}
