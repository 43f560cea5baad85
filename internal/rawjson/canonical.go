package rawjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// A NumberForm selects how the canonical form represents numbers.
type NumberForm uint8

const (
	// ExactNumbers copies numbers as they are written: 1 and 1.0 differ. Use it to compare values that must not change.
	ExactNumbers NumberForm = iota
	// DoubleNumbers copies the digits of integers. It writes any other number as JavaScript writes the nearest double.
	// A number too large for a double becomes null. Content keys are hashes of this form, so it must never change.
	DoubleNumbers
)

// Canonical returns the canonical form of raw with exact numbers, see [AppendCanonical]. If [Valid] refuses raw,
// Canonical returns raw unchanged; for empty raw it returns nil.
func Canonical(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	if out, ok := AppendCanonical(make([]byte, 0, len(raw)), raw, ExactNumbers); ok {
		return out
	}
	return raw
}

// AppendCanonical appends the canonical form of src, which is the same for all spellings of a JSON value. If [Valid]
// refuses src, it returns dst and false.
//
// The form is the output of JavaScript's JSON.stringify for objects with sorted members, without white space. Names
// that are array indices come first, in numerical order; the other names follow in the order of their UTF-8. If a name
// is repeated, only its last member is written. Use the canonical form for comparing and hashing; it is never sent.
func AppendCanonical(dst, src []byte, numbers NumberForm) ([]byte, bool) {
	if Valid(src) != nil {
		return dst, false
	}
	w := canonicalWriter{src: src, out: dst, numbers: numbers, members: make([]writtenMember, 0, 16)}
	w.writeValue()
	return w.out, true
}

// A canonicalWriter writes the canonical form of valid JSON. Its methods start at src[i] and set i to the index after
// the bytes that they read.
type canonicalWriter struct {
	src     []byte
	i       int
	out     []byte
	numbers NumberForm
	// members are the members of all open objects. The members of the innermost object are last.
	members []writtenMember
	spare   []byte
}

// A writtenMember is a member of an object that is already written to out of a canonicalWriter. It has the decoded
// name, and the start and end of name and value in out.
type writtenMember struct {
	name       []byte
	start, end int
}

func (w *canonicalWriter) writeValue() {
	w.i = SkipSpace(w.src, w.i)
	switch c := w.src[w.i]; {
	case c == '{':
		w.writeObject()
	case c == '[':
		w.writeArray()
	case c == '"':
		w.out = appendStringified(w.out, w.readString())
	default:
		start := w.i
		w.i, _ = skipScalar(w.src, start) // the value is valid
		if scalar := w.src[start:w.i]; w.numbers == ExactNumbers || c >= 'a' {
			w.out = append(w.out, scalar...)
		} else {
			w.out = appendDouble(w.out, scalar)
		}
	}
}

func (w *canonicalWriter) writeArray() {
	w.out = append(w.out, '[')
	for w.i = SkipSpace(w.src, w.i+1); w.src[w.i] != ']'; w.i = SkipSpace(w.src, w.i) {
		if w.src[w.i] == ',' {
			w.out = append(w.out, ',')
			w.i++
		}
		w.writeValue()
	}
	w.i++
	w.out = append(w.out, ']')
}

// writeObject writes the members in their order in src, and sorts them afterwards only if that order is not canonical.
func (w *canonicalWriter) writeObject() {
	w.out = append(w.out, '{')
	begin, outer := len(w.out), len(w.members)
	inOrder := true
	for w.i = SkipSpace(w.src, w.i+1); w.src[w.i] != '}'; w.i = SkipSpace(w.src, w.i) {
		if w.src[w.i] == ',' {
			w.out = append(w.out, ',')
			w.i = SkipSpace(w.src, w.i+1)
		}
		start := len(w.out)
		name := w.readString()
		if len(w.members) > outer {
			inOrder = inOrder && compareIndicesFirst(w.members[len(w.members)-1].name, name) < 0
		}
		w.out = append(appendStringified(w.out, name), ':')
		w.i = SkipSpace(w.src, w.i) + 1 // the colon
		w.writeValue()
		w.members = append(w.members, writtenMember{name, start, len(w.out)})
	}
	w.i++
	if !inOrder {
		w.sortMembers(begin, w.members[outer:])
	}
	w.members = w.members[:outer]
	w.out = append(w.out, '}')
}

// sortMembers sorts the members of one object, which begin at out[begin]. If a name is repeated, only its last member
// remains.
func (w *canonicalWriter) sortMembers(begin int, members []writtenMember) {
	slices.SortStableFunc(members, func(a, b writtenMember) int { return compareIndicesFirst(a.name, b.name) })
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

// readString returns the decoded string at src[i]. If the string has no escapes, the result is a slice of src.
func (w *canonicalWriter) readString() []byte {
	start := w.i + 1
	w.i, _ = skipString(w.src, w.i) // the value is valid
	text := w.src[start : w.i-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	return appendDecoded(make([]byte, 0, len(text)), text)
}

// compareIndicesFirst compares two member names. Array indices come before other names and in numerical order, like the
// members of a JavaScript object.
func compareIndicesFirst(a, b []byte) int {
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

// arrayIndex parses an array index of ECMAScript: a number up to 2^32-2 without leading zeros.
func arrayIndex(name []byte) (n uint64, ok bool) {
	if len(name) == 0 || len(name) > len("4294967294") || name[0] == '0' && len(name) > 1 {
		return 0, false
	}
	for _, c := range name {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, n <= math.MaxUint32-1
}

// appendDouble appends a number in the form of DoubleNumbers.
func appendDouble(dst, number []byte) []byte {
	if !bytes.ContainsAny(number, ".eE") {
		if string(number) == "-0" {
			number = number[1:]
		}
		return append(dst, number...)
	}
	// The only possible error is a number out of range. The result is then infinite or zero, which is correct here.
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
