package guards

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// An ArgumentPattern describes the arguments that a grant with a maximum count allows. The zero value allows calls
// without arguments only.
type ArgumentPattern struct {
	// Constant has the names of the arguments that must have one value, each with a hash of this value.
	Constant map[string]string `json:"constant,omitempty"`
	// Varying are the names of the arguments that may have any value, and Optional those that may also be absent.
	Varying  []string `json:"varying,omitempty"`
	Optional []string `json:"optional,omitempty"`
}

// callArguments are the arguments of a call by name, each as compact JSON.
type callArguments map[string]json.RawMessage

// readCallArguments returns the arguments in the subject of a tools/call, see approvalSubject. ok is false if servers
// may disagree about the arguments, or if the subject has more than arguments. Such calls match no pattern.
func readCallArguments(subject []byte) (all callArguments, ok bool) {
	var object json.RawMessage
	for m := range rawjson.Members(subject) {
		if object != nil || !m.HasName("arguments") {
			return nil, false
		}
		object = m.Value
	}
	all = callArguments{}
	switch {
	case object == nil:
		return all, true
	case object[0] != '{':
		return nil, false
	}
	for m := range rawjson.Members(object) {
		name, valid := rawjson.DecodeString(m.Name)
		if _, twice := all[name]; twice || !valid || strings.ContainsRune(name, '\uFFFD') {
			return nil, false
		}
		all[name] = m.Value
	}
	return all, true
}

// hashArgument returns the hash of an argument's value for a pattern. Two spellings of a value have different hashes.
// subject identifies the script and the tool, so that equal values of different grants are not seen to be equal.
func hashArgument(subject, name string, value json.RawMessage) string {
	return sha256Hex(rawjson.AppendStrings([]byte("argument "), subject, name, sha256Hex(value)))
}

// newArgumentPattern returns the smallest pattern that covers all the calls.
func newArgumentPattern(subject string, calls []callArguments) ArgumentPattern {
	p := ArgumentPattern{Constant: map[string]string{}}
	count := map[string]int{}
	varies := map[string]bool{}
	for _, arguments := range calls {
		for name, value := range arguments {
			count[name]++
			hash := hashArgument(subject, name, value)
			if first, ok := p.Constant[name]; ok && first != hash {
				varies[name] = true
			}
			p.Constant[name] = hash
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		switch {
		case count[name] < len(calls):
			p.Optional = append(p.Optional, name)
		case varies[name]:
			p.Varying = append(p.Varying, name)
		default:
			continue
		}
		delete(p.Constant, name)
	}
	return p
}

// covers reports whether the pattern allows the arguments.
func (p ArgumentPattern) covers(subject string, arguments callArguments) bool {
	for name, hash := range p.Constant {
		if value, ok := arguments[name]; !ok || hashArgument(subject, name, value) != hash {
			return false
		}
	}
	for _, name := range p.Varying {
		if _, ok := arguments[name]; !ok {
			return false
		}
	}
	for name := range arguments {
		if _, ok := p.Constant[name]; !ok && !slices.Contains(p.Varying, name) && !slices.Contains(p.Optional, name) {
			return false
		}
	}
	return true
}

// Has reports whether the pattern allows an argument with the name.
func (p ArgumentPattern) Has(name string) bool {
	_, ok := p.Constant[name]
	return ok || slices.Contains(p.Varying, name) || slices.Contains(p.Optional, name)
}

// Vary returns the pattern with any value for the constant arguments that are named.
func (p ArgumentPattern) Vary(names []string) ArgumentPattern {
	p.Constant, p.Varying = maps.Clone(p.Constant), slices.Clone(p.Varying)
	for _, name := range names {
		if _, ok := p.Constant[name]; ok {
			delete(p.Constant, name)
			p.Varying = append(p.Varying, name)
		}
	}
	slices.Sort(p.Varying)
	return p
}

// String returns the pattern in words for a person, on one line: `any value of title; owner must be the same`. Names
// are made safe to print.
func (p ArgumentPattern) String() string {
	var parts []string
	if len(p.Varying) > 0 {
		parts = append(parts, "any value of "+quoteNames(p.Varying))
	}
	if len(p.Optional) > 0 {
		parts = append(parts, "any value or none of "+quoteNames(p.Optional))
	}
	if len(p.Constant) > 0 {
		parts = append(parts, quoteNames(slices.Sorted(maps.Keys(p.Constant)))+" must be the same")
	}
	if len(parts) == 0 {
		return "no arguments"
	}
	return strings.Join(parts, "; ")
}

// quoteNames returns names of arguments in a list. A name that is not a plain word is quoted, so that it cannot be taken
// for other text.
func quoteNames(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		if out[i] = name; name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) {
			out[i] = safetext.Quote(name)
		}
	}
	return strings.Join(out, ", ")
}
