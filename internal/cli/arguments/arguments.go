// Package arguments reads the arguments of a call as a person types them: words KEY=VALUE, or one JSON object.
package arguments

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// maxArguments bounds what is read from standard input as arguments.
const maxArguments = 16 << 20

// Parse makes the arguments object of a call out of the words that follow the card's name; of a single "-" it reads in. The
// error is a roster.Mistake where the words are wrong.
func Parse(in io.Reader, spec drawbridge.Spec, words []string) (json.RawMessage, error) {
	if len(words) == 1 && words[0] == "-" {
		b, err := io.ReadAll(io.LimitReader(in, maxArguments))
		if err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
		return wholeObject(b)
	}
	if len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		return wholeObject([]byte(words[0]))
	}
	args := json.RawMessage("{}")
	schema := wire.Get(spec.Definition, "inputSchema")
	for _, word := range words {
		key, text, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, roster.Mistake(fmt.Sprintf("argument %q is neither KEY=VALUE nor a JSON object (drawbridge tools show %s)", word, spec.Name))
		}
		value, err := argument(wire.Get(schema, "properties", key), text)
		if err != nil {
			return nil, roster.Mistake(fmt.Sprintf("argument %q: %v (drawbridge tools show %s)", key, err, spec.Name))
		}
		args = wire.Apply(args, wire.Put(value, key))
	}
	return args, nil
}

// wholeObject checks that b is one JSON object.
func wholeObject(b []byte) (json.RawMessage, error) {
	b = []byte(strings.TrimSpace(string(b)))
	if err := wire.Valid(b); err != nil {
		return nil, roster.Mistake(fmt.Sprintf("the arguments are not JSON: %v", err))
	}
	if b[0] != '{' {
		return nil, roster.Mistake("the arguments are not a JSON object")
	}
	return b, nil
}

// argument reads text as the type that the property's schema asks for. A property that asks for none takes JSON where
// text is JSON, and else the text.
func argument(property json.RawMessage, text string) (json.RawMessage, error) {
	kind := wire.GetText(property, "type")
	valid := wire.Valid([]byte(text)) == nil
	switch kind {
	case "string":
		return wire.Quote(text), nil
	case "number", "integer", "boolean", "object", "array", "null":
		if !valid || !isKind(text, kind) {
			return nil, fmt.Errorf("%q is no %s", text, kind)
		}
		return json.RawMessage(text), nil
	}
	if valid {
		return json.RawMessage(text), nil
	}
	return wire.Quote(text), nil
}

// isKind says whether the JSON value has the type, by its first character.
func isKind(value, kind string) bool {
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
