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

// In 2026-07-28 the headers Mcp-Name and Mcp-Param-* repeat values of the body, so that proxies can route a request
// without reading its body (SEP-2243). A value that is not valid in a header is encoded as Base64 between base64Start
// and base64End.
const (
	base64Start = "=?base64?"
	base64End   = "?="
)

// EncodeHeaderValue returns s encoded as the value of a header. Visible ASCII without leading or trailing spaces is
// returned unchanged. Any other text is returned as "=?base64?…?=", with the standard Base64 encoding of its UTF-8
// bytes. A plain value that looks like such an encoding is encoded too.
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

// DecodeHeaderValue decodes a value that EncodeHeaderValue returned. It returns an error for a character that is not
// permitted in a header. It also returns an error for a value marked as Base64 that is not the Base64 of UTF-8 text.
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

// A HeaderParam describes an argument of a tool that is also sent in a header. The tool's inputSchema marks such an
// argument with the member x-mcp-header.
type HeaderParam struct {
	// Path is the path of member names to the argument within arguments.
	Path []string
	// Header is the complete name of the header: "Mcp-Param-" and the value of x-mcp-header.
	Header string
	// Type is the argument's type in the schema: "string", "integer" or "boolean".
	Type string
}

const (
	headerParamKeyword = "x-mcp-header"
	// maxSchemaDepth is the maximum nesting of schemas in which ParseHeaderParams searches for marks.
	maxSchemaDepth = 64
)

// MayHaveHeaderParams reports whether ParseHeaderParams may return arguments for the inputSchema in a definition. It is
// much faster than parsing the schema.
func MayHaveHeaderParams(definition json.RawMessage) bool {
	return rawjson.MayContain(definition, headerParamKeyword)
}

// ParseHeaderParams returns the arguments that an inputSchema marks with x-mcp-header, in the schema's order. It
// returns an error for the first invalid mark. A mark must be on a property that is reached only through "properties"
// and whose type is string, integer or boolean. The name of the mark must be a header token that no other mark has,
// ignoring case. Clients must leave out a tool with invalid marks.
func ParseHeaderParams(schema json.RawMessage) ([]HeaderParam, error) {
	if !rawjson.MayContain(schema, headerParamKeyword) { // nearly all schemas have no marks
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

// visitSchema searches one schema and the schemas within it for marks. path is the path of the argument that the schema
// describes. chain reports whether the schema is reached from the root only through "properties".
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

// schemasWithin returns the schemas in the value of a JSON Schema keyword, each with its member name, or "" if it has
// none. The values of other keywords, such as "default" or "examples", are data and contain no schemas.
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

// tokenChars are the characters of a token by RFC 9110, section 5.6.2.
const tokenChars = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// EncodeParamHeaders returns the headers for the arguments of a call: a map from the complete header name to the
// encoded value. An argument that is absent or null has no header; an empty string has an empty header. An object, a
// fraction, or an integer that a double cannot represent exactly has no header either. The server will refuse a call
// with such an argument, because the header is missing.
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
// without its header, or different values. get returns the value of a header and reports whether the header exists; an
// empty header exists. The caller receives the error as CodeHeaderMismatch. The error names header and argument and
// contains no value.
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

// headerValueOf returns a string, a boolean or an integer as the text of a header, before EncodeHeaderValue. It returns
// false for other values.
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

// safeInteger parses an integer that a double can represent exactly, in any notation: 1, 1.0, 1e0.
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

// TargetName returns the value of the header Mcp-Name for a request, before EncodeHeaderValue. The value is the name of
// a tool or prompt, the URI of a resource, or the ID of a task. It returns false for other methods and if the member is
// missing.
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
