package deck

import (
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// argumentNameEdits returns the edits that replace the listed argument names in the params of a call with the server's
// own names. The listed name of an argument differs from the server's name if vetting renamed the argument. names maps
// listed names to the server's names. Member names are replaced at any depth of the arguments, and in the argument name
// of a completion. params must be valid JSON.
func argumentNameEdits(params json.RawMessage, names map[string]string) (edits []rawjson.Edit) {
	if len(names) == 0 {
		return nil
	}
	for _, path := range [][]string{{"arguments"}, {"context", "arguments"}} {
		if given := rawjson.Get(params, path...); given != nil {
			if own := renameMembers(given, names); !sameBytes(own, given) {
				edits = append(edits, rawjson.Put(own, path...))
			}
		}
	}
	if own, ok := names[rawjson.GetString(params, "argument", "name")]; ok {
		edits = append(edits, rawjson.Put(rawjson.Quote(own), "argument", "name"))
	}
	return edits
}

// findRenamedArgument finds an argument in the params that uses the server's own name, although the argument is listed
// under another name. Such a call is refused, because a guard that compares listed names would not recognize the
// argument. names maps listed names to the server's names.
func findRenamedArgument(params json.RawMessage, names map[string]string) (name string, ok bool) {
	if len(names) == 0 {
		return "", false
	}
	stray := func(said string) bool {
		if _, shown := names[said]; shown {
			return false
		}
		for _, own := range names {
			if strings.EqualFold(own, said) {
				return true
			}
		}
		return false
	}
	for _, path := range [][]string{{"arguments"}, {"context", "arguments"}} {
		for _, said := range memberNames(rawjson.Get(params, path...)) {
			if stray(said) {
				return said, true
			}
		}
	}
	name = rawjson.GetString(params, "argument", "name")
	return name, stray(name)
}

// memberNames returns the member names of all objects in a JSON value, at any depth.
func memberNames(value json.RawMessage) (names []string) {
	eachMemberName(value, func(_, _ int, name string) { names = append(names, name) })
	return names
}

// renameMembers returns the JSON value with each member name that is a key of names replaced with the value of that
// key.
func renameMembers(value json.RawMessage, names map[string]string) json.RawMessage {
	var out []byte
	at := 0
	eachMemberName(value, func(from, to int, name string) {
		if names[name] != "" {
			out = rawjson.AppendQuoted(append(out, value[at:from]...), names[name])
			at = to
		}
	})
	if out == nil {
		return value
	}
	return append(out, value[at:]...)
}

// eachMemberName calls each for every member name in value, with the start and the end of the name in value. It relies
// on valid JSON, in which a string before a colon is a member name.
func eachMemberName(value json.RawMessage, each func(from, to int, name string)) {
	for i := 0; i < len(value); {
		if value[i] != '"' {
			i++
			continue
		}
		end := i + 1
		for value[end] != '"' {
			if value[end] == '\\' {
				end++
			}
			end++
		}
		end++
		next := end
		for next < len(value) && (value[next] == ' ' || value[next] == '\t' || value[next] == '\n' ||
			value[next] == '\r') {
			next++
		}
		if next < len(value) && value[next] == ':' {
			if text, ok := rawjson.DecodeString(value[i:end]); ok {
				each(i, end, text)
			}
		}
		i = end
	}
}
