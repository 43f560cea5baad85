package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
)

// An Edit changes one member of an object, by path. A nil Value removes the member. Any other value replaces the
// member's value, or adds the member at the end if it is missing. Missing objects on the path are created, except for a
// removal. A path has at least one name.
//
// If a name on the path is repeated, only its last member is edited, and the other members with that name are removed.
// Parsers do not agree on repeated names, so an edit must not leave the others.
type Edit struct {
	Path  []string
	Value json.RawMessage
}

// Put returns the edit that sets the member at path.
func Put(value json.RawMessage, path ...string) Edit { return Edit{path, value} }

// Drop returns the edit that removes the member at path.
func Drop(path ...string) Edit { return Edit{Path: path} }

// Apply performs the edits on the valid object obj, in order, and returns the new bytes. All other bytes are unchanged.
// Nil or empty obj counts as {}. Apply does not change obj, and returns obj if no edit has an effect. If a value on a
// path is not an object, it is replaced by an object; a removal does not change it.
func Apply(obj json.RawMessage, edits ...Edit) json.RawMessage {
	for _, e := range edits {
		obj = applyEdit(obj, e.Path, e.Value)
	}
	return obj
}

// MapValues replaces the value of each member of the valid object obj by the value that f returns for the member. All
// other bytes are unchanged. It returns obj itself if f changes nothing or obj is not an object. If a name is repeated,
// f is called for each member with that name.
func MapValues(obj json.RawMessage, f func(m Member) json.RawMessage) json.RawMessage {
	out := AppendObjectFunc(make([]byte, 0, len(obj)), obj,
		func(dst []byte, m Member) []byte { return append(dst, f(m)...) })
	if bytes.Equal(out, obj) {
		return obj
	}
	return out
}

// MapElements is like MapValues, for the elements of a valid array.
func MapElements(array json.RawMessage, f func(element json.RawMessage) json.RawMessage) json.RawMessage {
	out := AppendArrayFunc(make([]byte, 0, len(array)), array, func(dst []byte, element json.RawMessage) []byte {
		return append(dst, f(element)...)
	})
	if bytes.Equal(out, array) {
		return array
	}
	return out
}

// AppendObjectFunc appends the valid object obj to dst, with each member's value replaced by the bytes that f appends.
// All other bytes are unchanged. If obj is not an object, it is appended unchanged.
func AppendObjectFunc(dst []byte, obj json.RawMessage, f func(dst []byte, m Member) []byte) []byte {
	at := 0
	for m := range Members(obj) {
		dst = f(append(dst, obj[at:m.end-len(m.Value)]...), m)
		at = m.end
	}
	return append(dst, obj[at:]...)
}

// AppendArrayFunc is like AppendObjectFunc, for the elements of an array.
func AppendArrayFunc(dst []byte, array json.RawMessage, f func(dst []byte, element json.RawMessage) []byte) []byte {
	at := 0
	scanElements(array, func(start, end int) bool {
		dst = f(append(dst, array[at:start]...), array[start:end:end])
		at = end
		return true
	})
	return append(dst, array[at:]...)
}

func applyEdit(obj json.RawMessage, path []string, value json.RawMessage) json.RawMessage {
	if i := SkipSpace(obj, 0); i >= len(obj) || obj[i] != '{' {
		if value == nil {
			return obj
		}
		obj = json.RawMessage("{}")
	}
	var room [4]Member // almost always, one member has the name
	hits := room[:0]
	for m := range Members(obj) {
		if m.HasName(path[0]) {
			hits = append(hits, m)
		}
	}
	if len(hits) == 0 && value == nil {
		return obj
	}
	if len(path) > 1 {
		var inner json.RawMessage
		if len(hits) > 0 {
			inner = hits[len(hits)-1].Value
		}
		edited := applyEdit(inner, path[1:], value)
		if value == nil && len(edited) == len(inner) && len(hits) == 1 {
			return obj
		}
		value = edited
	}
	if len(hits) == 0 {
		return appendMember(obj, path[0], value)
	}
	return replaceMembers(obj, hits, value)
}

// appendMember adds a member at the end of obj.
func appendMember(obj json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	body := bytes.LastIndexByte(obj, '}')
	if body < 0 {
		return obj
	}
	out := make([]byte, 0, len(obj)+len(name)+len(value)+4)
	out = append(out, obj[:body]...)
	if i := SkipSpace(obj, SkipSpace(obj, 0)+1); i < body {
		out = append(out, ',')
	}
	out = AppendQuoted(out, name)
	out = append(out, ':')
	out = append(out, value...)
	return append(out, obj[body:]...)
}

// replaceMembers sets the value of the last of the given members and removes the others. If value is nil, it removes
// all of them.
func replaceMembers(obj json.RawMessage, members []Member, value json.RawMessage) json.RawMessage {
	out := slices.Grow(json.RawMessage(nil), len(obj)+len(value))
	at := 0
	for i, m := range members {
		if i == len(members)-1 && value != nil {
			out = append(append(out, obj[at:m.end-len(m.Value)]...), value...)
			at = m.end
			break
		}
		// The comma after a removed member is removed too. If the removed member is the object's last, the comma before
		// it is removed.
		out = append(out, obj[at:m.start]...)
		if next := SkipSpace(obj, m.end); next < len(obj) && obj[next] == ',' {
			at = SkipSpace(obj, next+1)
			continue
		}
		out = bytes.TrimSuffix(bytes.TrimRight(out, Whitespace), []byte(","))
		at = m.end
	}
	return append(out, obj[at:]...)
}
