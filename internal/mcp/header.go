package mcp

import (
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Headers that mirror the body let what stands between route without reading it: Mcp-Name and Mcp-Param-* of 2026-07-28
// (SEP-2243). A value that a header cannot carry as it is travels in Base64 between two marks.
const (
	base64Start = "=?base64?"
	base64End   = "?="
)

// EncodeHeaderValue writes s as the value of a header: as it is where it is visible ASCII without blanks around it,
// else as "=?base64?…?=", the standard Base64 of its UTF-8. A plain value that looks like that is encoded too.
func EncodeHeaderValue(s string) string {
	if isPlainHeaderValue(s) {
		return s
	}
	return base64Start + base64.StdEncoding.EncodeToString([]byte(s)) + base64End
}

func isPlainHeaderValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	_, encoded := cutBase64Marks(s)
	return !encoded && strings.Trim(s, " ") == s
}

func cutBase64Marks(s string) (body string, ok bool) {
	if body, ok = strings.CutPrefix(s, base64Start); ok {
		return strings.CutSuffix(body, base64End)
	}
	return "", false
}

// DecodeHeaderValue reads what EncodeHeaderValue wrote. The error is for a character that no header may hold, and for
// a value that is marked as Base64 and is not Base64 of UTF-8.
func DecodeHeaderValue(s string) (string, error) {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] > '~' {
			return "", errors.New("decode header value: invalid character")
		}
	}
	body, ok := cutBase64Marks(s)
	if !ok {
		return s, nil
	}
	raw, err := base64.StdEncoding.DecodeString(body)
	if err != nil || !utf8.Valid(raw) {
		return "", errors.New("decode header value: not the Base64 of a text")
	}
	return string(raw), nil
}

// A HeaderParam reports that an argument of a tool travels in a header too: an x-mcp-header member in the tool's
// inputSchema.
type HeaderParam struct {
	// Path leads to the argument within arguments.
	Path []string
	// Header is the header's whole name: "Mcp-Param-" and the mark.
	Header string
	// Type is the argument's type in the schema: "string", "integer" or "boolean".
	Type string
}

const (
	headerParamKeyword = "x-mcp-header"
	// maxSchemaDepth is how deep the schemas of a schema may nest for marks to be looked for.
	maxSchemaDepth = 64
)

// ParseHeaderParams returns the marks of an inputSchema, in the schema's order. The error names the first invalid mark.
// A mark must be on a property that is reached through "properties" only, and whose type is string, integer or boolean.
// Its name must be a header token that no other mark has, in any case. Clients must leave out a tool with invalid
// marks.
func ParseHeaderParams(schema json.RawMessage) ([]HeaderParam, error) {
	if !rawjson.MayContain(schema, headerParamKeyword) { // nearly no schema has
		return nil, nil
	}
	f := headerParamFinder{seen: map[string]bool{}}
	if err := f.visitSchema(schema, nil, true, 0); err != nil {
		return nil, err
	}
	return f.found, nil
}

type headerParamFinder struct {
	found []HeaderParam
	seen  map[string]bool // headers in lower case
}

// visitSchema visits one schema and those within it. path leads to the described value; chain reports that only
// "properties" lie between it and the root.
func (f *headerParamFinder) visitSchema(schema json.RawMessage, path []string, chain bool, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("property %s: the schema nests too deep", strings.Join(path, "."))
	}
	for m := range rawjson.Members(schema) {
		keyword, _ := rawjson.DecodeString(m.Name)
		if keyword == headerParamKeyword {
			if err := f.addParam(m.Value, schema, path, chain); err != nil {
				return err
			}
		}
		for name, inner := range schemasWithin(keyword, m.Value) {
			path, chain := path, chain && keyword == "properties"
			if chain {
				path = append(path[:len(path):len(path)], name)
			}
			if err := f.visitSchema(inner, path, chain, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// schemasWithin returns the schemas in the value of a keyword of JSON Schema, with the names they have there. What a
// keyword has that holds no schemas, such as "default" or "examples", is data.
func schemasWithin(keyword string, value json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		switch keyword {
		case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions":
			for m := range rawjson.Members(value) {
				if name, _ := rawjson.DecodeString(m.Name); !yield(name, m.Value) {
					return
				}
			}
		case "items", "prefixItems", "contains", "additionalItems", "additionalProperties",
			"propertyNames", "not", "oneOf",
			"anyOf", "allOf", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties", "contentSchema":
			if !yield("", value) {
				return
			}
			for e := range rawjson.Elements(value) {
				if !yield("", e) {
					return
				}
			}
		}
	}
}

func (f *headerParamFinder) addParam(mark, property json.RawMessage, path []string, chain bool) error {
	name, ok := rawjson.DecodeString(mark)
	typ := rawjson.GetString(property, "type")
	var why string
	switch {
	case !chain || len(path) == 0:
		why = "stands where no argument is"
	case !ok || name == "" || strings.Trim(name, tokenChars) != "":
		why = "is not the name of a header"
	case f.seen[strings.ToLower(name)]:
		why = "is there already"
	case typ != "string" && typ != "integer" && typ != "boolean":
		why = "is for strings, integers and booleans only"
	default:
		f.seen[strings.ToLower(name)] = true
		f.found = append(f.found, HeaderParam{path, HeaderParamPrefix + name, typ})
		return nil
	}
	return fmt.Errorf("property %s: %s %s", strings.Join(path, "."), headerParamKeyword, why)
}

// tokenChars are the characters of a token as RFC 9110, section 5.6.2 has them.
const tokenChars = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// EncodeParamHeaders returns the headers that the arguments of a call need: whole header name to encoded value. An
// argument that is absent or null has no header, an empty string an empty one. A value that a header cannot mirror (an
// object, a fraction, an integer that a double does not hold exactly) has none: the server will refuse it.
func EncodeParamHeaders(marks []HeaderParam, arguments json.RawMessage) map[string]string {
	if len(marks) == 0 {
		return nil
	}
	headers := make(map[string]string, len(marks))
	for _, m := range marks {
		if s, ok := headerValueOf(rawjson.Get(arguments, m.Path...)); ok {
			headers[m.Header] = EncodeHeaderValue(s)
		}
	}
	return headers
}

// CheckParamHeaders returns an error if headers and arguments differ: a header without its argument, an argument
// without its header, or another value. get returns the value of a header, and whether it is there; an empty header is
// there. The error goes to the caller as CodeHeaderMismatch; it names header and argument and holds no value.
func CheckParamHeaders(marks []HeaderParam, arguments json.RawMessage, get func(name string) (string, bool)) error {
	for _, m := range marks {
		if why := m.describeMismatch(rawjson.Get(arguments, m.Path...), get); why != "" {
			return fmt.Errorf("header %s: argument %s: %s", m.Header, strings.Join(m.Path, "."), why)
		}
	}
	return nil
}

func (m HeaderParam) describeMismatch(argument json.RawMessage, get func(string) (string, bool)) (why string) {
	header, there := get(m.Header)
	if argument == nil || string(argument) == "null" {
		if there {
			return "the header is there and the argument is not"
		}
		return ""
	}
	want, ok := headerValueOf(argument)
	if !ok {
		return "a header cannot carry its value"
	}
	if !there {
		return "the header is missing"
	}
	got, err := DecodeHeaderValue(header)
	if err != nil {
		return err.Error()
	}
	if got == want {
		return ""
	}
	// Numbers are compared as numbers: 42.0 is 42.
	if n, isNumber := safeInteger(argument); isNumber {
		if h, ok := safeInteger(json.RawMessage(got)); ok && h == n {
			return ""
		}
	}
	return "the values differ"
}

// headerValueOf writes a string, a boolean or an integer as a header has it, before it is encoded.
func headerValueOf(value json.RawMessage) (string, bool) {
	if s, ok := rawjson.DecodeString(value); ok {
		return s, true
	}
	if s := string(value); s == "true" || s == "false" {
		return s, true
	}
	if n, ok := safeInteger(value); ok {
		return strconv.FormatInt(n, 10), true
	}
	return "", false
}

// safeInteger reads an integer that a double holds exactly, however it is written: 1, 1.0, 1e0.
func safeInteger(value json.RawMessage) (int64, bool) {
	const most = 1<<53 - 1
	if rawjson.Valid(value) != nil {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != math.Trunc(f) || f < -most || f > most {
		return 0, false
	}
	return int64(f), true
}

// TargetName returns the value of Mcp-Name for a request, before it is encoded: the name of a called tool or prompt,
// the URI of a resource that is read, the id of a task. It returns false for other methods, and without that member.
func TargetName(method string, params json.RawMessage) (string, bool) {
	member := ""
	switch method {
	case MethodToolsCall, MethodPromptsGet:
		member = "name"
	case MethodResourcesRead:
		member = "uri"
	case MethodTasksGet, MethodTasksUpdate, MethodTasksCancel:
		member = "taskId"
	default:
		return "", false
	}
	return rawjson.DecodeString(rawjson.Get(params, member))
}
