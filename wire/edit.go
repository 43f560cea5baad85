package wire

import (
	"encoding/json"
	"slices"
)

// An Edit changes one member of an object, by path. A nil Value removes the member; any other value replaces it, or
// adds it at the end where it is missing. Objects on the way are made where they are missing (not for a removal).
// Where a name is repeated, all its members are removed and the last is replaced in place.
type Edit struct {
	Path  []string
	Value json.RawMessage
}

// Put is the edit that sets the member at path.
func Put(value json.RawMessage, path ...string) Edit { return Edit{path, value} }

// Drop is the edit that removes the member at path.
func Drop(path ...string) Edit { return Edit{Path: path} }

// Apply carries out the edits on the object obj and gives the new bytes; everything else stays as it is, byte for byte.
// Nil or empty obj counts as {}. obj is not changed; where no edit has an effect it is returned itself. A value on a
// path that is no object is replaced by one. Paths must not be prefixes of each other.
func Apply(obj json.RawMessage, edits ...Edit) json.RawMessage {
	for _, e := range edits {
		obj = apply(obj, e.Path, e.Value)
	}
	return obj
}

func apply(obj json.RawMessage, path []string, value json.RawMessage) json.RawMessage {
	if i := space(obj, 0); i >= len(obj) || obj[i] != '{' {
		if value == nil {
			return obj
		}
		obj = json.RawMessage("{}")
	}
	var hits []Member
	for m := range Members(obj) {
		if m.Is(path[0]) {
			hits = append(hits, m)
		}
	}
	if len(path) > 1 {
		if len(hits) == 0 && value == nil {
			return obj
		}
		var inner json.RawMessage
		if len(hits) > 0 {
			inner = hits[len(hits)-1].Value
		}
		edited := apply(inner, path[1:], value)
		if value == nil && len(edited) == len(inner) {
			return obj
		}
		value = edited
	}
	switch {
	case value == nil:
		return remove(obj, hits)
	case len(hits) == 0:
		return add(obj, path[0], value)
	}
	last := hits[len(hits)-1]
	at := last.end - len(last.Value)
	return slices.Concat(obj[:at], value, obj[last.end:])
}

// add puts a member at the end of obj.
func add(obj json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	end := len(obj)
	for end > 0 && obj[end-1] != '}' {
		end--
	}
	if end == 0 {
		return obj
	}
	body := end - 1
	first := true
	for range Members(obj) {
		first = false
		break
	}
	out := make([]byte, 0, len(obj)+len(name)+len(value)+4)
	out = append(out, obj[:body]...)
	if !first {
		out = append(out, ',')
	}
	out = AppendQuoted(out, name)
	out = append(out, ':')
	out = append(out, value...)
	return append(out, obj[body:]...)
}

// remove cuts members out of obj, each with one of the commas beside it.
func remove(obj json.RawMessage, hits []Member) json.RawMessage {
	for _, m := range slices.Backward(hits) {
		start, end := m.start, m.end
		if next := space(obj, end); next < len(obj) && obj[next] == ',' {
			end = space(obj, next+1)
		} else {
			for start > 0 && obj[start-1] != ',' && obj[start-1] != '{' {
				start--
			}
			if start > 0 && obj[start-1] == ',' {
				start--
			}
		}
		obj = slices.Concat(obj[:start], obj[end:])
	}
	return obj
}
