package wire

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Canonical writes a JSON value so that two values which mean the same are the same bytes: members sorted, no blanks.
// Numbers stay as they are written, and so does what is no JSON. It is for comparing, and for nothing that is sent.
func Canonical(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return nil
	}
	c := canon{src: raw, dst: make([]byte, 0, len(raw))}
	if Valid(raw) == nil && c.value() {
		return c.dst
	}
	return decoded(raw)
}

// decoded is Canonical for values that are not written plainly.
func decoded(raw json.RawMessage) []byte {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// A canon writes what is known to be JSON in its canonical form. Its methods begin at src[i] and leave i behind what they read.
// They say false of a text that could be written in another way than it is.
type canon struct {
	src, dst []byte
	i        int
}

func (c *canon) value() bool {
	c.i = space(c.src, c.i)
	switch c.src[c.i] {
	case '{':
		return c.object()
	case '[':
		return c.array()
	case '"':
		_, ok := c.text()
		return ok
	}
	start := c.i
	for c.i < len(c.src) && bytes.IndexByte([]byte(blanks+",]}"), c.src[c.i]) < 0 {
		c.i++
	}
	c.dst = append(c.dst, c.src[start:c.i]...)
	return true
}

// text copies a string, and gives what it says.
func (c *canon) text() (inside []byte, ok bool) {
	start := c.i
	for c.i++; c.src[c.i] != '"'; c.i++ {
		switch b := c.src[c.i]; {
		case b == '\\', b == '<', b == '>', b == '&', b >= 0x80:
			return nil, false
		}
	}
	c.i++
	c.dst = append(c.dst, c.src[start:c.i]...)
	return c.src[start+1 : c.i-1], true
}

func (c *canon) array() bool {
	c.dst = append(c.dst, '[')
	for c.i = space(c.src, c.i+1); c.src[c.i] != ']'; c.i = space(c.src, c.i) {
		if c.src[c.i] == ',' {
			c.dst = append(c.dst, ',')
			c.i++
		}
		if !c.value() {
			return false
		}
	}
	c.i++
	c.dst = append(c.dst, ']')
	return true
}

// A canonMember is a member as it stands in dst, by its name.
type canonMember struct {
	name       []byte
	start, end int
}

func (c *canon) object() bool {
	start := len(c.dst)
	c.dst = append(c.dst, '{')
	var room [8]canonMember
	all, sorted := room[:0], true
	for c.i = space(c.src, c.i+1); c.src[c.i] != '}'; c.i = space(c.src, c.i) {
		if c.src[c.i] == ',' {
			c.dst = append(c.dst, ',')
			c.i = space(c.src, c.i+1)
		}
		m := canonMember{start: len(c.dst)}
		var ok bool
		if m.name, ok = c.text(); !ok {
			return false
		}
		c.i = space(c.src, c.i) + 1
		c.dst = append(c.dst, ':')
		if !c.value() {
			return false
		}
		m.end = len(c.dst)
		sorted = sorted && (len(all) == 0 || bytes.Compare(all[len(all)-1].name, m.name) < 0)
		all = append(all, m)
	}
	c.i++
	if !sorted {
		c.dst = append(c.dst[:start+1], sortedMembers(c.dst, all)...)
	}
	c.dst = append(c.dst, '}')
	return true
}

// sortedMembers gives the members by their names. Of those of one name the last counts.
func sortedMembers(from []byte, all []canonMember) (out []byte) {
	slices.SortStableFunc(all, func(a, b canonMember) int { return bytes.Compare(a.name, b.name) })
	for i, m := range all {
		if i+1 < len(all) && bytes.Equal(m.name, all[i+1].name) {
			continue
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(out, from[m.start:m.end]...)
	}
	return out
}
