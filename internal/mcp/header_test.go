package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// The examples of the specification, and what lies beside them.
func TestEncodeHeader(t *testing.T) {
	for plain, want := range map[string]string{
		"us-west1":             "us-west1",
		"":                     "",
		"a b":                  "a b",
		"Hello, 世界":            "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":             "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":         "=?base64?bGluZTEKbGluZTI=?=",
		"a\tb":                 "=?base64?YQli?=",
		"=?base64?literal?=":   "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64?":            "=?base64?",
		"=?BASE64?YQ==?=":      "=?BASE64?YQ==?=",
		"file:///a%20b?q=1#fr": "file:///a%20b?q=1#fr",
	} {
		if got := mcp.EncodeHeaderValue(plain); got != want {
			t.Errorf("EncodeHeader(%q) = %q, want %q", plain, got, want)
		}
		if got, err := mcp.DecodeHeaderValue(want); err != nil || got != plain {
			t.Errorf("DecodeHeader(%q) = %q, %v, want %q", want, got, err, plain)
		}
	}
}

func TestDecodeHeaderRefuses(t *testing.T) {
	for value, want := range map[string]string{
		"世界":                    "decode header value: invalid character",
		"a\nb":                  "decode header value: invalid character",
		"=?base64?YQ?=":         "decode header value: not the Base64 of a text",
		"=?base64?not base64?=": "decode header value: not the Base64 of a text",
		"=?base64?/w==?=":       "decode header value: not the Base64 of a text",
	} {
		if got, err := mcp.DecodeHeaderValue(value); err == nil || err.Error() != want {
			t.Errorf("DecodeHeader(%q) = %q, %v, want %s", value, got, err, want)
		}
	}
}

func TestParamMarks(t *testing.T) {
	for _, tt := range []struct {
		name, schema string
		want         []mcp.HeaderParam
	}{
		{"none", `{"type":"object","properties":{"a":{"type":"string"}}}`, nil},
		{"no schema", ``, nil},
		{"one of each type, in order", `{"properties":{
			"region":{"type":"string","x-mcp-header":"Region"},
			"on":{"x-mcp-header":"On","type":"boolean"},
			"n":{"type":"integer","x-mcp-header":"N-1"}}}`, []mcp.HeaderParam{
			{Path: []string{"region"}, Header: "Mcp-Param-Region", Type: "string"},
			{Path: []string{"on"}, Header: "Mcp-Param-On", Type: "boolean"},
			{Path: []string{"n"}, Header: "Mcp-Param-N-1", Type: "integer"}}},
		{"nested, and in escapes",
			`{"properties":{"a":{"properties":{"b\u002e\\c":{"type":"string","\u0078-mcp-header":"X"}}}}}`,
			[]mcp.HeaderParam{{Path: []string{"a", `b.\c`}, Header: "Mcp-Param-X", Type: "string"}}},
		{"a property of that name is not a mark", `{"properties":{"x-mcp-header":{"type":"string"}}}`, nil},
		{"data is not a mark", `{"properties":{"a":{"type":"object","default":{"x-mcp-header":"A"},"examples":[{"x-mcp-header":"A"}],
			"enum":[{"x-mcp-header":1}],"const":{"x-mcp-header":1}}}}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := mcp.ParseHeaderParams(json.RawMessage(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParamMarksRefuses(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 70) + `{"type":"string","x-mcp-header":"A"}` +
		strings.Repeat(`}}`, 70)
	for schema, want := range map[string]string{
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`:                                                                     "property a: x-mcp-header is for strings, integers and booleans only",
		`{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`:                                                            "property a: x-mcp-header is for strings, integers and booleans only",
		`{"properties":{"a":{"x-mcp-header":"A"}}}`:                                                                                     "property a: x-mcp-header is for strings, integers and booleans only",
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`:                                                                      "property a: x-mcp-header is not the name of a header",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`:                                                                   "property a: x-mcp-header is not the name of a header",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A:"}}}`:                                                                    "property a: x-mcp-header is not the name of a header",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nX"}}}`:                                                                "property a: x-mcp-header is not the name of a header",
		`{"properties":{"a":{"type":"string","x-mcp-header":"é"}}}`:                                                                     "property a: x-mcp-header is not the name of a header",
		`{"properties":{"a":{"type":"string","x-mcp-header":null}}}`:                                                                    "property a: x-mcp-header is not the name of a header",
		`{"properties":{"a":{"type":"string","x-mcp-header":7}}}`:                                                                       "property a: x-mcp-header is not the name of a header",
		`{"type":"string","x-mcp-header":"A"}`:                                                                                          "property : x-mcp-header stands where no argument is",
		`{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}`:                                                           "property a: x-mcp-header stands where no argument is",
		`{"anyOf":[{},{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`:                                                      "property : x-mcp-header stands where no argument is",
		`{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}`:                                                                          "property : x-mcp-header stands where no argument is",
		`{"properties":{"a":{"type":"string","x-mcp-header":"Same"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"sAME"}}}}}`: "property b.c: x-mcp-header is there already",
		deep: "property " + strings.TrimSuffix(strings.Repeat("a.", 65), ".") + ": the schema nests too deep",
	} {
		if _, err := mcp.ParseHeaderParams(json.RawMessage(schema)); err == nil || err.Error() != want {
			t.Errorf("ParamMarks(%.120s) = %v, want %s", schema, err, want)
		}
	}
}

var marks = []mcp.HeaderParam{
	{Path: []string{"region"}, Header: "Mcp-Param-Region", Type: "string"},
	{Path: []string{"opt", "n"}, Header: "Mcp-Param-N", Type: "integer"},
	{Path: []string{"on"}, Header: "Mcp-Param-On", Type: "boolean"},
}

func TestParamHeaders(t *testing.T) {
	for _, tt := range []struct {
		arguments string
		want      map[string]string
	}{
		{`{"region":"us-west1","opt":{"n":42},"on":false,"query":"not marked"}`,
			map[string]string{"Mcp-Param-Region": "us-west1", "Mcp-Param-N": "42", "Mcp-Param-On": "false"}},
		{`{"region":"","opt":{"n":-0}}`, map[string]string{"Mcp-Param-Region": "", "Mcp-Param-N": "0"}},
		{`{"region":"世界","opt":{"n":4.2e1}}`, map[string]string{"Mcp-Param-Region": "=?base64?5LiW55WM?=",
			"Mcp-Param-N": "42"}},
		{`{"region":null,"opt":null}`, map[string]string{}},
		{`{"opt":{"n":9007199254740991}}`, map[string]string{"Mcp-Param-N": "9007199254740991"}},
		{`{"opt":{"n":9007199254740992}}`, map[string]string{}},
		{`{"opt":{"n":1.5},"region":["a"],"on":{}}`, map[string]string{}},
		{`{"opt":{"n":1e999}}`, map[string]string{}},
		{``, map[string]string{}},
	} {
		got := mcp.EncodeParamHeaders(marks, json.RawMessage(tt.arguments))
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("ParamHeaders(%s): %s", tt.arguments, d)
		}
	}
}

func TestCheckParamHeaders(t *testing.T) {
	for _, tt := range []struct {
		name, arguments string
		headers         map[string]string
		want            string
	}{
		{"all there", `{"region":"a","opt":{"n":42},"on":true}`,
			map[string]string{"Mcp-Param-Region": "a", "Mcp-Param-N": "42", "Mcp-Param-On": "true"}, ""},
		{"none there", `{}`, nil, ""},
		{"null wants no header", `{"region":null}`, nil, ""},
		{"an empty string has an empty header", `{"region":""}`, map[string]string{"Mcp-Param-Region": ""}, ""},
		{"Base64 where it need not be", `{"region":"a"}`, map[string]string{"Mcp-Param-Region": "=?base64?YQ==?="}, ""},
		{"numbers as numbers", `{"opt":{"n":42}}`, map[string]string{"Mcp-Param-N": "42.0"}, ""},
		{"strings as strings", `{"region":"42"}`, map[string]string{"Mcp-Param-Region": "42.0"},
			"header Mcp-Param-Region: argument region: the values differ"},
		{"unknown headers are not ours", `{}`, map[string]string{"Mcp-Param-Other": "x"}, ""},
		{"another value", `{"region":"a"}`, map[string]string{"Mcp-Param-Region": "b"},
			"header Mcp-Param-Region: argument region: the values differ"},
		{"a word in quotes", `{"on":true}`, map[string]string{"Mcp-Param-On": `"true"`},
			"header Mcp-Param-On: argument on: the values differ"},
		{"no number", `{"opt":{"n":42}}`, map[string]string{"Mcp-Param-N": "many"},
			"header Mcp-Param-N: argument opt.n: the values differ"},
		{"no header", `{"opt":{"n":42}}`, nil, "header Mcp-Param-N: argument opt.n: the header is missing"},
		{"no header for an empty string", `{"region":""}`, nil,
			"header Mcp-Param-Region: argument region: the header is missing"},
		{"no argument", `{}`, map[string]string{"Mcp-Param-Region": "a"},
			"header Mcp-Param-Region: argument region: the header is there and the argument is not"},
		{"no argument for an empty header", ``, map[string]string{"Mcp-Param-Region": ""},
			"header Mcp-Param-Region: argument region: the header is there and the argument is not"},
		{"a value no header carries", `{"opt":{"n":9007199254740992}}`,
			map[string]string{"Mcp-Param-N": "9007199254740992"},
			"header Mcp-Param-N: argument opt.n: a header cannot carry its value"},
		{"bad Base64", `{"region":"a"}`, map[string]string{"Mcp-Param-Region": "=?base64?YQ?="},
			"header Mcp-Param-Region: argument region: decode header value: not the Base64 of a text"},
		{"letters outside ASCII", `{"region":"é"}`, map[string]string{"Mcp-Param-Region": "é"},
			"header Mcp-Param-Region: argument region: decode header value: invalid character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			err := mcp.CheckParamHeaders(marks, json.RawMessage(tt.arguments), func(name string) (string, bool) {
				value, ok := tt.headers[name]
				return value, ok
			})
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNameOf(t *testing.T) {
	for _, tt := range []struct {
		method, params, want string
		ok                   bool
	}{
		{"tools/call", `{"name":"echo"}`, "echo", true},
		{"tools/call", `{"n\u0061me":"\u00e9"}`, "é", true},
		{"tools/call", `{"name":""}`, "", true},
		{"prompts/get", `{"name":"greet"}`, "greet", true},
		{"resources/read", `{"uri":"file:///a","name":"x"}`, "file:///a", true},
		{"tasks/get", `{"taskId":"t1"}`, "t1", true},
		{"tasks/update", `{"taskId":"t1"}`, "t1", true},
		{"tasks/result", `{"taskId":"t1"}`, "", false},
		{"tasks/list", `{}`, "", false},
		{"skills/get", `{"uri":"skill://x/SKILL.md"}`, "", false},
		{"resources/directory/read", `{"uri":"skill://x"}`, "", false},
		{"tools/call", `{"name":7}`, "", false},
		{"tools/call", ``, "", false},
		{"tools/list", `{"name":"echo"}`, "", false},
	} {
		got, ok := mcp.TargetName(tt.method, json.RawMessage(tt.params))
		if got != tt.want || ok != tt.ok {
			t.Errorf("NameOf(%s, %s) = %q, %v", tt.method, tt.params, got, ok)
		}
	}
}

// FuzzHeader is row FZ-5: what one side writes into headers the other reads as it was, and takes for what the body
// says.
func FuzzHeader(f *testing.F) {
	for _, s := range []string{"", "plain", " blank", "=?base64?x?=", "=?base64??=", "é\n", "=?base64?", "?="} {
		f.Add(s, []byte(`{"properties":{"a":{"type":"string","x-mcp-header":"`+s+`"}}}`),
			[]byte(`{"a":"x","b":{"c":1.0}}`))
	}
	f.Fuzz(func(t *testing.T, s string, schema, arguments []byte) {
		if utf8.ValidString(s) {
			encoded := mcp.EncodeHeaderValue(s)
			if strings.Trim(encoded, " \t") != encoded || strings.ContainsAny(encoded, "\r\n\x00") {
				t.Errorf("%q cannot be a header", encoded)
			}
			if back, err := mcp.DecodeHeaderValue(encoded); err != nil || back != s {
				t.Errorf("%q came back as %q, %v", s, back, err)
			}
		}
		marks, err := mcp.ParseHeaderParams(schema)
		if err != nil || rawjson.Valid(schema) != nil || rawjson.Valid(arguments) != nil {
			return
		}
		// What one side writes the other must accept, unless a header cannot carry it.
		headers := mcp.EncodeParamHeaders(marks, arguments)
		err = mcp.CheckParamHeaders(marks, arguments, func(name string) (string, bool) {
			value, ok := headers[name]
			return value, ok
		})
		if err != nil && !strings.HasSuffix(err.Error(), "a header cannot carry its value") {
			t.Errorf("%s of %s: %v", headers, arguments, err)
		}
	})
}

func ExampleEncodeParamHeaders() {
	marks, err := mcp.ParseHeaderParams(json.RawMessage(
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"sql":{"type":"string"}}}`))
	if err != nil {
		panic(err)
	}
	header := http.Header{}
	for name, value := range mcp.EncodeParamHeaders(marks, json.RawMessage(`{"region":"Zürich","sql":"SELECT 1"}`)) {
		header.Set(name, value)
	}
	fmt.Println(header)
	// Output: map[Mcp-Param-Region:[=?base64?WsO8cmljaA==?=]]
}
