package ledger

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// appendCanonical appends a JSON value in the one form that all ways to write it share. It says false, and appends
// nothing of use, where src is not one JSON value.
//
// The form is what JavaScript's JSON.stringify prints without blanks, of objects whose members were sorted by name
// before: names that are array indices come first, by their number, the others in the order of their UTF-8. Integers
// keep all their digits; other numbers are rounded to a double and printed as JavaScript prints it, one too large for
// a double as null.
func appendCanonical(dst, src []byte) ([]byte, bool) {
	w := canonicalWriter{jsonReader: jsonReader{src: src}, out: dst, members: make([]writtenMember, 0, 16)}
	ok := utf8.Valid(src) && w.writeValue(0) && w.atEnd()
	return w.out, ok
}

// A canonicalWriter writes the canonical form of what it reads.
type canonicalWriter struct {
	jsonReader
	out []byte
	// members has the members of all objects that are being written, those of the innermost last.
	members []writtenMember
	spare   []byte
}

// writtenMember is a member as it was written: what its name says, and where in dst name and value stand.
type writtenMember struct {
	name       []byte
	start, end int
}

func (w *canonicalWriter) writeValue(depth int) bool {
	switch c := w.peek(); c {
	case '{':
		return depth < maxDepth && w.writeObject(depth+1)
	case '[':
		return depth < maxDepth && w.writeArray(depth+1)
	case '"':
		said, ok := w.readString()
		w.out = appendQuoted(w.out, said)
		return ok
	case 't', 'f', 'n':
		word := w.readLiteral()
		w.out = append(w.out, word...)
		return word != ""
	default:
		start := w.i
		integer, ok := w.readNumber()
		w.out = appendNumber(w.out, w.src[start:w.i], integer)
		return ok
	}
}

func (w *canonicalWriter) writeArray(depth int) bool {
	w.out = append(w.out, '[')
	first := true
	ok := w.readArray(func() bool {
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		return w.writeValue(depth)
	})
	w.out = append(w.out, ']')
	return ok
}

// writeObject writes the members as they come, and puts them in order only where they were not.
func (w *canonicalWriter) writeObject(depth int) bool {
	w.out = append(w.out, '{')
	begin, outer := len(w.out), len(w.members)
	inOrder := true
	ok := w.readObject(func(name []byte) bool {
		if len(w.members) > outer {
			w.out = append(w.out, ',')
			inOrder = inOrder && compareNames(w.members[len(w.members)-1].name, name) < 0
		}
		start := len(w.out)
		w.out = append(appendQuoted(w.out, name), ':')
		ok := w.writeValue(depth)
		w.members = append(w.members, writtenMember{name, start, len(w.out)})
		return ok
	})
	if !inOrder {
		w.sortMembers(begin, w.members[outer:])
	}
	w.members = w.members[:outer]
	w.out = append(w.out, '}')
	return ok
}

// sortMembers writes the members of one object again, which stand in dst from begin on. Of two with one name the last
// stays.
func (w *canonicalWriter) sortMembers(begin int, members []writtenMember) {
	slices.SortStableFunc(members, func(a, b writtenMember) int { return compareNames(a.name, b.name) })
	w.spare = append(w.spare[:0], w.out[begin:]...)
	w.out = w.out[:begin]
	for i, m := range members {
		if i+1 < len(members) && bytes.Equal(m.name, members[i+1].name) {
			continue
		}
		if len(w.out) > begin {
			w.out = append(w.out, ',')
		}
		w.out = append(w.out, w.spare[m.start-begin:m.end-begin]...)
	}
}

// compareNames puts array indices first, as a JavaScript object has them whatever order they were put in.
func compareNames(a, b []byte) int {
	x, isIndex := arrayIndex(a)
	y, isIndexToo := arrayIndex(b)
	switch {
	case isIndex && isIndexToo:
		return cmp.Compare(x, y)
	case isIndex:
		return -1
	case isIndexToo:
		return 1
	}
	return bytes.Compare(a, b)
}

// arrayIndex says whether a name is an array index of ECMAScript: a number up to 2^32-2, written as it would be
// printed.
func arrayIndex(name []byte) (uint64, bool) {
	if len(name) == 0 || len(name) > len("4294967294") || name[0] == '0' && len(name) > 1 {
		return 0, false
	}
	var n uint64
	for _, c := range name {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, n <= math.MaxUint32-1
}

// appendNumber appends a number as JavaScript prints it, but for integers, which keep their digits.
func appendNumber(dst, number []byte, integer bool) []byte {
	if integer {
		if string(number) == "-0" {
			number = number[1:]
		}
		return append(dst, number...)
	}
	// The only error there can be is that the number is out of range, and then it is infinite or zero, which is right.
	f, _ := strconv.ParseFloat(string(number), 64)
	switch size := math.Abs(f); {
	case f == 0:
		return append(dst, '0')
	case math.IsInf(f, 0):
		return append(dst, "null"...)
	case size >= 1e-6 && size < 1e21:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst = append(dst[:n-2], dst[n-1]) // 1e-07: JavaScript writes 1e-7
	}
	return dst
}

// appendQuoted appends text as a JSON string with the escapes that JSON.stringify writes and no others.
func appendQuoted(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	plain := 0 // text from here on needs no escape, as far as it was looked at
	for i := 0; i < len(text); i++ {
		c := text[i]
		// half a surrogate pair, as jsonReader.readString gives it
		half := c == 0xED && i+2 < len(text) && text[i+1] >= 0xA0
		if c >= ' ' && c != '"' && c != '\\' && !half {
			continue
		}
		dst = append(dst, text[plain:i]...)
		switch {
		case half:
			unit := 0xD000 | uint16(text[i+1]&0x3F)<<6 | uint16(text[i+2]&0x3F)
			dst = append(dst, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
			i += 2
		case c >= ' ':
			dst = append(dst, '\\', c)
		case c >= '\b' && c <= '\r' && c != '\v':
			dst = append(dst, '\\', "btn.fr"[c-'\b'])
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		plain = i + 1
	}
	return append(append(dst, text[plain:]...), '"')
}
