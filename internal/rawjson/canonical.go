package rawjson

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
	c := canonicalizer{src: raw, dst: make([]byte, 0, len(raw))}
	if Valid(raw) == nil && c.writeValue() {
		return c.dst
	}
	return canonicalByDecoding(raw)
}

// canonicalByDecoding is Canonical for values that are not written plainly.
func canonicalByDecoding(raw json.RawMessage) []byte {
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

// A canonicalizer writes what is known to be JSON in its canonical form. Its methods begin at src[i] and leave i
// behind what they read. They say false of a text that could be written in another way than it is.
type canonicalizer struct {
	src, dst []byte
	pos      int
}

func (c *canonicalizer) writeValue() bool {
	c.pos = SkipSpace(c.src, c.pos)
	switch c.src[c.pos] {
	case '{':
		return c.writeObject()
	case '[':
		return c.writeArray()
	case '"':
		_, ok := c.copyString()
		return ok
	}
	start := c.pos
	for c.pos < len(c.src) && bytes.IndexByte([]byte(Whitespace+",]}"), c.src[c.pos]) < 0 {
		c.pos++
	}
	c.dst = append(c.dst, c.src[start:c.pos]...)
	return true
}

// copyString copies a string, and gives what it says.
func (c *canonicalizer) copyString() (inside []byte, ok bool) {
	start := c.pos
	for c.pos++; c.src[c.pos] != '"'; c.pos++ {
		switch b := c.src[c.pos]; {
		case b == '\\', b == '<', b == '>', b == '&', b >= 0x80:
			return nil, false
		}
	}
	c.pos++
	c.dst = append(c.dst, c.src[start:c.pos]...)
	return c.src[start+1 : c.pos-1], true
}

func (c *canonicalizer) writeArray() bool {
	c.dst = append(c.dst, '[')
	for c.pos = SkipSpace(c.src, c.pos+1); c.src[c.pos] != ']'; c.pos = SkipSpace(c.src, c.pos) {
		if c.src[c.pos] == ',' {
			c.dst = append(c.dst, ',')
			c.pos++
		}
		if !c.writeValue() {
			return false
		}
	}
	c.pos++
	c.dst = append(c.dst, ']')
	return true
}

// A canonMember is a member as it stands in dst, by its name.
type canonMember struct {
	name       []byte
	start, end int
}

func (c *canonicalizer) writeObject() bool {
	start := len(c.dst)
	c.dst = append(c.dst, '{')
	var room [8]canonMember
	all, sorted := room[:0], true
	for c.pos = SkipSpace(c.src, c.pos+1); c.src[c.pos] != '}'; c.pos = SkipSpace(c.src, c.pos) {
		if c.src[c.pos] == ',' {
			c.dst = append(c.dst, ',')
			c.pos = SkipSpace(c.src, c.pos+1)
		}
		m := canonMember{start: len(c.dst)}
		var ok bool
		if m.name, ok = c.copyString(); !ok {
			return false
		}
		c.pos = SkipSpace(c.src, c.pos) + 1
		c.dst = append(c.dst, ':')
		if !c.writeValue() {
			return false
		}
		m.end = len(c.dst)
		sorted = sorted && (len(all) == 0 || bytes.Compare(all[len(all)-1].name, m.name) < 0)
		all = append(all, m)
	}
	c.pos++
	if !sorted {
		c.dst = append(c.dst[:start+1], appendSortedMembers(c.dst, all)...)
	}
	c.dst = append(c.dst, '}')
	return true
}

// appendSortedMembers gives the members by their names. Of those of one name the last counts.
func appendSortedMembers(from []byte, all []canonMember) (out []byte) {
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
