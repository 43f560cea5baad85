package flow

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An Act is what a call does with the values in its arguments.
type Act struct {
	// Needs is the integrity that each value must have. Untrusted needs nothing: the tool only reads.
	Needs Integrity
	// Sends is set if the values reach people or systems outside.
	Sends bool
	// Described returns the source of a value that stands in a text which the model always sees, such as the
	// description of a tool, and which is not trusted; nil if there is none, or as a function if there are no such
	// texts.
	Described func(value string) *Source
	// TextsOnly is set if numbers and booleans in the arguments can do no harm.
	TextsOnly bool
	// Known reports whether the name of an argument is one of those that the tool declares; nil knows all names. Other
	// names are values.
	Known func(name string) bool
	// Reads is private text that the call itself reads and may send; nil if there is none.
	Reads *Source
	// Server is the server that the values reach; empty for Drawbridge's own tools. What a server has returned may be
	// sent to the same server.
	Server string
}

// A Value is a value in the arguments of a call.
type Value struct {
	// Path is the place in the arguments, such as "to[0].address". Text is the value: the text itself, or the JSON of a
	// number or a boolean.
	Path, Text string
	// Label and Origin are as in [Run.LabelOf].
	Label  Label
	Origin *Source
}

// A Finding is what is wrong with a call: values that must be endorsed before it can be sent.
type Finding struct {
	// Values are the values whose integrity does not suffice. They can be endorsed one by one.
	Values []Value
	// Secret are the values that would carry private text outside. An endorsement of such a value is for one tool.
	Secret []Value
}

// Empty reports whether nothing is wrong.
func (f Finding) Empty() bool { return len(f.Values) == 0 && len(f.Secret) == 0 }

// maxValues is the number of values of a call that are judged one by one. With more, the arguments are one value.
const maxValues = 512

// Check judges the arguments of a call. endorsed reports whether a person has endorsed a value, with sends for carrying
// private text outside.
func (r *Run) Check(act Act, arguments json.RawMessage, endorsed func(path, text string, sends bool) bool) (f Finding) {
	label := r.Label()
	secret := act.Sends && (label.Confidentiality == Private && r.hasPrivateOf(act.Server) || act.Reads != nil)
	if label.Integrity >= act.Needs && !secret && (act.Described == nil || act.Needs == Untrusted) {
		return f
	}
	for path, text := range act.values(arguments) {
		v := Value{Path: path, Text: text}
		v.Label, v.Origin = r.LabelOf(text)
		if act.Reads != nil && (v.Label.Integrity < Trusted || r.Made(text)) {
			v.Label, v.Origin = v.Label.Join(act.Reads.Label), act.Reads
		}
		if act.Described != nil && v.Label.Integrity >= act.Needs && r.Made(text) {
			if s := act.Described(text); s != nil {
				v.Label, v.Origin = v.Label.Join(s.Label), s
			}
		}
		if v.Label.Integrity < act.Needs && !endorsed(path, text, false) {
			f.Values = append(f.Values, v)
		}
		own := v.Origin != nil && act.Server != "" && v.Origin.Server == act.Server && r.stands(text)
		if secret && !own && (v.Label.Integrity < Trusted || v.Label.Confidentiality == Private) && !endorsed(path, text, true) {
			if v.Label.Confidentiality < Private {
				v.Label, v.Origin = v.Label.Join(Label{Trusted, Private}), r.firstPrivate(act.Server)
			}
			f.Secret = append(f.Secret, v)
		}
	}
	return f
}

// Made reports whether the model made a value: no person typed it, and it stands in no source.
func (r *Run) Made(value string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := plain(value)
	return wanted != "" && !slices.ContainsFunc(r.typed, func(text string) bool { return contains(text, wanted) }) &&
		r.findIn(wanted, func(t *readText) bool { return t.source.Kind != CallSource }) == nil
}

// Contains reports whether a text has a value as whole words. The text is in lower case.
func Contains(text, value string) bool { return contains(text, plain(value)) }

// stands reports whether a value stands in a source as it is.
func (r *Run) stands(value string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(plain(value)) != nil
}

// hasPrivateOf reports whether the run has read private text that does not come from the server.
func (r *Run) hasPrivateOf(server string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost > 0 || len(r.origins) == 0 {
		return true // the source may be one that was left out
	}
	return r.privateElsewhere(server) != nil
}

func (r *Run) privateElsewhere(server string) *Source {
	for i, s := range r.origins {
		if s.Label.Confidentiality == Private && (server == "" || s.Server != server) {
			return &r.origins[i]
		}
	}
	return nil
}

func (r *Run) firstPrivate(server string) *Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.privateElsewhere(server)
}

// values iterates over the values of a call, and the names of arguments that are not known.
func (act Act) values(arguments json.RawMessage) iter.Seq2[string, string] {
	return func(yield func(path, text string) bool) {
		if act.Known != nil {
			for m := range rawjson.Members(arguments) {
				if name, ok := rawjson.DecodeString(m.Name); ok && !act.Known(name) && !yield(name+nameSuffix, name) {
					return
				}
			}
		}
		for path, text := range Values(arguments, act.TextsOnly) {
			if !yield(path, text) {
				return
			}
		}
	}
}

// Values iterates over the values in the arguments of a call, with their places: texts, numbers and booleans, and the
// names of members of objects inside. With textsOnly, numbers and booleans are left out. If there are too many values,
// the whole arguments are the only one.
func Values(arguments json.RawMessage, textsOnly bool) iter.Seq2[string, string] {
	return func(yield func(path, text string) bool) {
		n := 0
		walk("", arguments, textsOnly, func(string, string) bool { n++; return n <= maxValues })
		if n > maxValues {
			yield("", string(arguments))
			return
		}
		walk("", arguments, textsOnly, yield)
	}
}

// nameSuffix follows the place of a value that is the name of a member.
const nameSuffix = " (name)"

func walk(path string, value json.RawMessage, textsOnly bool, yield func(path, text string) bool) bool {
	if len(value) == 0 {
		return true
	}
	switch value[0] {
	case '{':
		for m := range rawjson.Members(value) {
			name, ok := rawjson.DecodeString(m.Name)
			if !ok {
				name = string(m.Name)
			}
			below := strings.TrimPrefix(path+"."+name, ".")
			if path != "" && !yield(below+nameSuffix, name) || !walk(below, m.Value, textsOnly, yield) {
				return false
			}
		}
		return true
	case '[':
		i := 0
		for element := range rawjson.Elements(value) {
			if !walk(fmt.Sprintf("%s[%d]", path, i), element, textsOnly, yield) {
				return false
			}
			i++
		}
		return true
	case '"':
		text, ok := rawjson.DecodeString(value)
		if !ok {
			text = string(value)
		}
		return yield(path, text)
	case 'n':
		return true
	}
	return textsOnly || yield(path, string(value))
}
