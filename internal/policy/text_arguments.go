package policy

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// Models often write a list or an object as a JSON text. Many servers therefore parse a text when they expect a list or
// an object. Servers made with the official Python SDK do so for every argument whose type in the schema is not
// "string".

// parsedTextReading returns the arguments with each text that contains JSON replaced by its parsed value. Some servers
// read the arguments in this way. It returns nil if there is no such text. It returns an error if the JSON in a text
// nests too deeply.
func (a *callArguments) parsedTextReading() (*callArguments, error) {
	if a.textParsed {
		return a.withParsedText, a.otherErr
	}
	a.textParsed = true
	value, err := a.object()
	if err != nil { // every use of the arguments reports this error
		return nil, nil
	}
	for _, m := range value {
		if text, ok := m.value.(string); ok && mayBeJSON(text) {
			return a.parseTextsIn(value)
		}
	}
	return nil, nil
}

// parseTextsIn returns the arguments in value with the JSON in texts parsed. It returns nil if no text contains JSON.
func (a *callArguments) parseTextsIn(value jsonObject) (*callArguments, error) {
	var changed jsonObject
	var schemas map[string]argumentSchema
	for i, m := range value {
		text, ok := m.value.(string)
		if !ok || !mayBeJSON(text) {
			continue
		}
		if schemas == nil {
			schemas = argumentSchemas(a.cardDefinition)
		}
		if schemas[m.name].isTextOnly(maxSchemaDepth) && !isPathName(m.name) {
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
		a.withParsedText = &callArguments{params: a.params, read: true, value: changed, uri: a.uri, home: a.home,
			baseDirs: a.baseDirs, textParsed: true}
	}
	return a.withParsedText, nil
}

// mayBeJSON reports whether a text begins like a JSON list or object.
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

// readText parses a text as a JSON list or object. It returns nil if the text is neither. Servers often parse such
// texts with lenient parsers, which accept repeated names and NaN. So readText accepts both.
func readText(text string) (any, error) {
	r := jsonReader{raw: []byte(text), src: text, lenient: true}
	v, err := r.readValue(0, true)
	if errors.Is(err, errTooDeep) {
		return nil, err
	}
	if r.nextNonBlank(); err != nil || r.i < len(r.src) {
		return nil, nil
	}
	return v, nil
}

// JSONInText returns the JSON list or object in a text, in strict JSON. It returns nil if the text is neither. It
// returns an error if the JSON nests too deeply.
func JSONInText(text string) (json.RawMessage, error) {
	if !mayBeJSON(text) {
		return nil, nil
	}
	v, err := readText(text)
	if err != nil || v == nil {
		return nil, err
	}
	return json.Marshal(toPlainMaps(v))
}

// An argumentSchema contains the members of an argument's JSON schema that this package uses.
type argumentSchema struct {
	Type             json.RawMessage  `json:"type"`
	AnyOf            []argumentSchema `json:"anyOf"`
	ContentMediaType json.RawMessage  `json:"contentMediaType"`
}

// maxSchemaDepth is the depth of nested anyOf up to which isTextOnly examines a schema. A deeper schema counts as not
// only a text.
const maxSchemaDepth = 4

// argumentSchemas returns the schemas of the arguments in a tool's definition, by argument name. Schemas that cannot be
// parsed are omitted.
func argumentSchemas(definition json.RawMessage) map[string]argumentSchema {
	var tool struct {
		InputSchema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"inputSchema"`
	}
	out := map[string]argumentSchema{}
	_ = json.Unmarshal(definition, &tool) // without a readable schema, nothing is known
	for name, raw := range tool.InputSchema.Properties {
		var s argumentSchema
		if json.Unmarshal(raw, &s) == nil {
			out[name] = s
		}
	}
	return out
}

// IsTextOnly reports whether a tool's definition declares that the named argument can only be a text or null.
func IsTextOnly(definition json.RawMessage, name string) bool {
	return argumentSchemas(definition)[name].isTextOnly(maxSchemaDepth)
}

// isTextOnly reports whether the schema allows only a text or null. depth is the remaining depth of nested anyOf.
func (s argumentSchema) isTextOnly(depth int) bool {
	if s.ContentMediaType != nil || depth == 0 {
		return false
	}
	if s.Type == nil {
		return len(s.AnyOf) > 0 && !slices.ContainsFunc(s.AnyOf,
			func(one argumentSchema) bool { return !one.isTextOnly(depth - 1) })
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

// matchBothReadings evaluates the conditions on arguments and the expression. Some servers parse JSON in texts, see
// parsedTextReading, so the arguments may have two readings. A rule that allows must match both readings. Any other
// rule matches if it matches one of them.
func (r *compiledRule) matchBothReadings(s *ruleSubject, a matchResult, by string) (matchResult, string, error) {
	got, part, err := r.matchArguments(s, a, by)
	args := s.currentArgs()
	if err != nil || args == nil || !r.looksAtArguments() || got == matchNo && r.effect == drawbridge.Allow {
		return got, part, err
	}
	other, err := args.parsedTextReading()
	if err != nil {
		return matchNo, part, err
	}
	if other == nil {
		return got, part, nil
	}
	return r.matchReplacedArguments(s, a, by, other, got, part)
}

// matchReplacedArguments evaluates the rule with other, the second reading of the arguments. got and part are the
// result for the original arguments. It returns the stricter of the two results, as matchBothReadings requires.
func (r *compiledRule) matchReplacedArguments(s *ruleSubject, a matchResult, by string, other *callArguments,
	got matchResult, part string) (matchResult, string, error) {
	vars := s.exprVars
	s.replacedArgs, s.exprVars = other, nil
	defer func() { s.replacedArgs, s.exprVars = nil, vars }()
	also, alsoPart, err := r.matchArguments(s, a, by)
	if err != nil || (also < got) == (r.effect == drawbridge.Allow) {
		return also, alsoPart, err
	}
	return got, part, nil
}
