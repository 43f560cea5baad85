package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// maxArgumentBytes limits the size of arguments that are read from standard input.
const maxArgumentBytes = 16 << 20

// callArguments are the arguments of a call as a person wrote them: either one JSON object or KEY=VALUE words.
type callArguments struct {
	object json.RawMessage
	words  []string
}

// readCallArguments returns the arguments that the words after the tool's name contain: one JSON object, or KEY=VALUE
// words. Without words, the object is empty. For a single "-" it reads the object from in. The error is an
// admin.UserError if the object is invalid.
func readCallArguments(in io.Reader, words []string) (callArguments, error) {
	switch {
	case len(words) == 0:
		return callArguments{object: json.RawMessage("{}")}, nil
	case len(words) == 1 && words[0] == "-":
		b, err := io.ReadAll(io.LimitReader(in, maxArgumentBytes))
		if err != nil {
			return callArguments{}, fmt.Errorf("read the arguments: %w", err)
		}
		object, err := checkArgumentsObject(b)
		return callArguments{object: object}, err
	case len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{"):
		object, err := checkArgumentsObject([]byte(words[0]))
		return callArguments{object: object}, err
	}
	return callArguments{words: words}, nil
}

// convert returns the KEY=VALUE words as one JSON object. Each value gets the type that the tool's schema names. The
// error is an admin.UserError if the words are invalid.
func (c callArguments) convert(spec drawbridge.Spec) (json.RawMessage, error) {
	args := json.RawMessage("{}")
	schema := rawjson.Get(spec.Definition, "inputSchema")
	for _, word := range c.words {
		key, text, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, admin.UserError(
				fmt.Sprintf("argument %q is neither KEY=VALUE nor a JSON object (drawbridge tools show %s)",
					word, spec.Name))
		}
		value, err := parseArgumentValue(rawjson.Get(schema, "properties", key), text)
		if err != nil {
			return nil, admin.UserError(fmt.Sprintf("argument %q: %v (drawbridge tools show %s)", key, err, spec.Name))
		}
		args = rawjson.Apply(args, rawjson.Put(value, key))
	}
	return args, nil
}

// parseCallArguments returns the arguments of a call as a JSON object. Words are the words after the tool's name.
func parseCallArguments(in io.Reader, spec drawbridge.Spec, words []string) (json.RawMessage, error) {
	given, err := readCallArguments(in, words)
	if err != nil || given.object != nil {
		return given.object, err
	}
	return given.convert(spec)
}

// checkArgumentsObject returns b without the space around it. The error is an admin.UserError if b is not one JSON
// object.
func checkArgumentsObject(b []byte) (json.RawMessage, error) {
	b = []byte(strings.TrimSpace(string(b)))
	if err := rawjson.Valid(b); err != nil {
		return nil, admin.UserError(fmt.Sprintf("the arguments are not JSON: %v", err))
	}
	if b[0] != '{' {
		return nil, admin.UserError("arguments must be a JSON object")
	}
	return b, nil
}

// parseArgumentValue converts text to the type that the property's schema names. If the schema names no type, valid
// JSON stays unchanged, and other text becomes a JSON string.
func parseArgumentValue(property json.RawMessage, text string) (json.RawMessage, error) {
	kind := rawjson.GetString(property, "type")
	valid := rawjson.Valid([]byte(text)) == nil
	switch kind {
	case "string":
		return rawjson.Quote(text), nil
	case "number", "integer", "boolean", "object", "array", "null":
		if !valid || !hasJSONType(text, kind) {
			return nil, fmt.Errorf("%q is no %s", text, kind)
		}
		return json.RawMessage(text), nil
	}
	if valid {
		return json.RawMessage(text), nil
	}
	return rawjson.Quote(text), nil
}

// hasJSONType reports whether a valid JSON value has a type. It looks only at the first character of the value.
func hasJSONType(value, kind string) bool {
	first := strings.TrimSpace(value)[0]
	switch kind {
	case "boolean":
		return first == 't' || first == 'f'
	case "object":
		return first == '{'
	case "array":
		return first == '['
	case "null":
		return first == 'n'
	}
	return first == '-' || '0' <= first && first <= '9'
}
