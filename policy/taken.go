package policy

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// Models write a list or an object into a text, and so many servers look into a text for the list or the object that they want: those
// made with the official SDK for Python do with every argument that is not to be a text.

// taken gives the arguments as such a server takes them; nil where that is the same. The error is for a text that nests too deeply.
func (a *arguments) taken() (*arguments, error) {
	if a.looked {
		return a.other, a.otherErr
	}
	a.looked = true
	value, err := a.object()
	if err != nil { // which all who look at them are told
		return nil, nil
	}
	for _, m := range value {
		if text, ok := m.value.(string); ok && mayBeJSON(text) {
			return a.takenOf(value)
		}
	}
	return nil, nil
}

// takenOf is taken for arguments of which one may be JSON in a text.
func (a *arguments) takenOf(value object) (*arguments, error) {
	var changed object
	var schemas map[string]schema
	for i, m := range value {
		text, ok := m.value.(string)
		if !ok || !mayBeJSON(text) {
			continue
		}
		if schemas == nil {
			schemas = schemasIn(a.definition)
		}
		if schemas[m.name].textOnly(maxSchema) && !namesPath(m.name) {
			continue
		}
		inside, err := readText(text)
		if err != nil {
			a.otherErr = err
			return nil, err
		}
		if inside != nil {
			if changed == nil {
				changed = slices.Clone(value)
			}
			changed[i].value = inside
		}
	}
	if changed != nil {
		a.other = &arguments{params: a.params, read: true, value: changed, uri: a.uri, home: a.home, dirs: a.dirs, looked: true}
	}
	return a.other, nil
}

// mayBeJSON says whether a text begins as a list or an object does.
func mayBeJSON(text string) bool {
	for i := range len(text) {
		switch text[i] {
		case ' ', '\t', '\r', '\n':
		default:
			return text[i] == '[' || text[i] == '{'
		}
	}
	return false
}

// readText reads the list or the object that a text is; nil where it is none. Readers of such a text are not strict: a name may stand
// twice, and NaN is a number to some.
func readText(text string) (any, error) {
	r := reader{src: text, loose: true}
	v, err := r.value(0, true)
	if errors.Is(err, errTooDeep) {
		return nil, err
	}
	if r.next(); err != nil || r.i < len(r.src) {
		return nil, nil
	}
	return v, nil
}

// InText gives the list or the object that a text is, as JSON; nil where it is none. The error is for one that nests too deeply.
func InText(text string) (json.RawMessage, error) {
	if !mayBeJSON(text) {
		return nil, nil
	}
	v, err := readText(text)
	if err != nil || v == nil {
		return nil, err
	}
	return json.Marshal(bare(v))
}

// A schema is what a definition says of an argument, as far as it is looked at here.
type schema struct {
	Type             json.RawMessage `json:"type"`
	AnyOf            []schema        `json:"anyOf"`
	ContentMediaType json.RawMessage `json:"contentMediaType"`
}

// maxSchema is how deep alternatives may stand in one another.
const maxSchema = 4

// schemasIn gives what a definition says of its arguments; an empty map where it says nothing that can be read.
func schemasIn(definition json.RawMessage) map[string]schema {
	var tool struct {
		InputSchema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"inputSchema"`
	}
	out := map[string]schema{}
	_ = json.Unmarshal(definition, &tool) // what it says not is not known
	for name, raw := range tool.InputSchema.Properties {
		var s schema
		if json.Unmarshal(raw, &s) == nil {
			out[name] = s
		}
	}
	return out
}

// TextOnly says whether a tool's definition says of an argument that it is a text, and nothing else.
func TextOnly(definition json.RawMessage, name string) bool {
	return schemasIn(definition)[name].textOnly(maxSchema)
}

// textOnly says whether what the schema lets be is a text, or nothing.
func (s schema) textOnly(depth int) bool {
	if s.ContentMediaType != nil || depth == 0 {
		return false
	}
	if s.Type == nil {
		return len(s.AnyOf) > 0 && !slices.ContainsFunc(s.AnyOf, func(one schema) bool { return !one.textOnly(depth - 1) })
	}
	var types []string
	if json.Unmarshal(s.Type, &types) != nil {
		types = make([]string, 1)
		if json.Unmarshal(s.Type, &types[0]) != nil {
			return false
		}
	}
	return !slices.ContainsFunc(types, func(kind string) bool { return kind != "string" && kind != "null" })
}

// judged goes on where the rule looks at more than names. What can be taken in two ways an allowing rule must allow in both, and every
// other rule is about in either.
func (r *rule) judged(s *subject, a answer, by string) (answer, string, error) {
	got, part, err := r.judgedAs(s, a, by)
	args := s.args()
	if err != nil || args == nil || !r.dynamic() || got == no && r.effect == drawbridge.Allow {
		return got, part, err
	}
	other, err := args.taken()
	if err != nil {
		return no, part, err
	}
	if other == nil {
		return got, part, nil
	}
	return r.judgedAgain(s, a, by, other, got, part)
}

// judgedAgain has the other arguments stand in the place of those for which the rule says got.
func (r *rule) judgedAgain(s *subject, a answer, by string, other *arguments, got answer, part string) (answer, string, error) {
	vars := s.vars
	s.other, s.vars = other, nil
	defer func() { s.other, s.vars = nil, vars }()
	also, alsoPart, err := r.judgedAs(s, a, by)
	if err != nil || (also < got) == (r.effect == drawbridge.Allow) {
		return also, alsoPart, err
	}
	return got, part, nil
}
