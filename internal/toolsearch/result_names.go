package toolsearch

import (
	"maps"
	"slices"
	"strings"
)

const (
	// maxNameLength is the maximum length of a property's name in a ResultShape. A longer name is data.
	maxNameLength = 64
	// maxNameDigits is the maximum number of digits in such a name, and maxDigitRuns the maximum number of places with
	// digits. Names of ids, dates and addresses have more.
	maxNameDigits, maxDigitRuns = 3, 1
)

// isPropertyName reports whether the name of a member is an identifier that does not look like data.
func isPropertyName(name string) bool {
	if name == "" || len(name) > maxNameLength || !isLetter(name[0]) && name[0] != '_' {
		return false
	}
	digits, runs, inRun := 0, 0, false
	for i := range len(name) {
		c := name[i]
		switch isDigit := '0' <= c && c <= '9'; {
		case isDigit:
			if digits++; !inRun {
				runs++
			}
			inRun = true
		case isLetter(c) || c == '_' || c == '-':
			inRun = false
		default:
			return false
		}
	}
	return digits <= maxNameDigits && runs <= maxDigitRuns && !(digits > 0 && isHexID(name))
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// minHexID is the length from which a word of hexadecimal digits counts as an id.
const minHexID = 8

func isHexID(name string) bool {
	return len(name) >= minHexID && strings.Trim(name, "0123456789abcdefABCDEF-") == ""
}

// isAnnotationName reports whether a name is an annotation of a format, such as "@odata.context" and "$schema". A shape
// ignores such members.
func isAnnotationName(name string) bool {
	return len(name) > 1 && (name[0] == '@' || name[0] == '$')
}

// nameWords returns a name as words, so that a sentence that was written as one identifier can be examined.
func nameWords(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c == '_' || c == '-' {
			c = ' '
		}
		if i > 0 && 'A' <= c && c <= 'Z' && 'a' <= name[i-1] && name[i-1] <= 'z' {
			b.WriteByte(' ')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// A NameCheck examines the names in a shape. A nil function accepts all of them.
type NameCheck struct {
	// Instructs reports whether a text contains instructions to a model.
	Instructs func(text string) bool
	// IsSecret reports whether a name contains a secret.
	IsSecret func(name string) bool
}

// Apply removes the names that the check refuses from a shape: their objects become dictionaries. If the names together
// instruct a model, only the types of the outermost value are left.
func (c NameCheck) Apply(s *ResultShape) *ResultShape {
	names := s.appendNames(nil)
	instruct := c.instruct(names)
	refused := map[string]bool{}
	for _, name := range names {
		if c.IsSecret != nil && c.IsSecret(name) || instruct && c.instruct([]string{name}) {
			refused[name] = true
		}
	}
	if len(refused) > 0 {
		s.dropNames(refused)
		instruct = c.instruct(s.appendNames(nil))
	}
	if instruct {
		return &ResultShape{types: s.types}
	}
	return s
}

// instruct reports whether the words of the names, read one after the other, instruct a model.
func (c NameCheck) instruct(names []string) bool {
	if c.Instructs == nil || len(names) == 0 {
		return false
	}
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = nameWords(name)
	}
	return c.Instructs(strings.Join(words, " "))
}

// appendNames appends all names in the shape, in the order in which its schema has them.
func (s *ResultShape) appendNames(dst []string) []string {
	if s == nil {
		return dst
	}
	dst = s.elements.appendNames(dst)
	for _, name := range slices.Sorted(maps.Keys(s.properties)) {
		dst = s.properties[name].appendNames(append(dst, name))
	}
	return s.entries.appendNames(dst)
}

// dropNames makes each object with a refused name a dictionary.
func (s *ResultShape) dropNames(refused map[string]bool) {
	if s == nil {
		return
	}
	for _, p := range s.properties {
		p.dropNames(refused)
	}
	s.elements.dropNames(refused)
	for name := range refused {
		if s.properties[name] != nil {
			s.makeDictionary()
		}
	}
	s.entries.dropNames(refused)
}
