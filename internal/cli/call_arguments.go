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

// maxArgumentBytes bounds what is read from standard input as arguments.
const maxArgumentBytes = 16 << 20

// parseCallArguments returns the arguments object of a call from the words after the tool's name. For a single "-" it
// reads the object from in. The error is an admin.UserError if the words are invalid.
func parseCallArguments(in io.Reader, spec drawbridge.Spec, words []string) (json.RawMessage, error) {
	if len(words) == 1 && words[0] == "-" {
		b, err := io.ReadAll(io.LimitReader(in, maxArgumentBytes))
		if err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
		return checkArgumentsObject(b)
	}
	if len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		return checkArgumentsObject([]byte(words[0]))
	}
	args := json.RawMessage("{}")
	schema := rawjson.Get(spec.Definition, "inputSchema")
	for _, word := range words {
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

// checkArgumentsObject checks that b is one JSON object.
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

// parseArgumentValue converts text to the type of the property's schema. Without a type, text that is JSON is taken as
// JSON, and any other text as a string.
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

// hasJSONType reports whether the JSON value has the type, by its first character.
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
