package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// parts is a message in letters, so that a test's failure can be read.
type parts struct{ ID, Method, Params, Result, Error string }

func partsOf(m mcp.Message) parts {
	return parts{string(m.ID), m.Method, string(m.Params), string(m.Result), string(m.Error)}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       parts
		kind       string
	}{
		{"a call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`,
			parts{ID: `1`, Method: "tools/call", Params: `{"name":"echo"}`}, "request"},
		{"an id as text", `{"jsonrpc":"2.0","id":"1","method":"ping"}`, parts{ID: `"1"`, Method: "ping"}, "request"},
		{"an id no double holds", `{"id":9007199254740993,"method":"ping"}`, parts{ID: `9007199254740993`,
			Method: "ping"}, "request"},
		{"an id as a fraction", `{"id":1.50,"method":"ping"}`, parts{ID: `1.50`, Method: "ping"}, "request"},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			parts{Method: "notifications/initialized"}, "notification"},
		{"a null id is none", `{"id":null,"method":"ping"}`, parts{Method: "ping"}, "notification"},
		{"a result", `{"id":1,"result":{"big":12345678901234567890,"e":"\u00e9"}}`,
			parts{ID: `1`, Result: `{"big":12345678901234567890,"e":"\u00e9"}`}, "response"},
		{"a null result", `{"id":1,"result":null}`, parts{ID: `1`, Result: `null`}, "response"},
		{"an error", `{"id":1,"error":{"code":-32601,"message":"no"}}`,
			parts{ID: `1`, Error: `{"code":-32601,"message":"no"}`}, "response"},
		{"an error without id", `{"id":null,"error":{"code":-32700}}`, parts{ID: `null`, Error: `{"code":-32700}`},
			"response"},
		{"a result and no error", `{"id":1,"error":null,"result":{}}`, parts{ID: `1`, Result: `{}`}, "response"},
		{"white space", " \r\n{ \"id\" : 1 , \"result\" : { } } \n", parts{ID: `1`, Result: `{ }`}, "response"},
		{"names in escapes", `{"\u0069d":1,"m\u0065thod":"p\u0069ng"}`, parts{ID: `1`, Method: "ping"}, "request"},
		{"of a repeated member the last counts", `{"id":1,"method":"a","id":2,"method":"b"}`,
			parts{ID: `2`, Method: "b"}, "request"},
		{"unknown members", `{"id":1,"trace":{"id":7},"method":"ping","x":[1]}`,
			parts{ID: `1`, Method: "ping"}, "request"},
		{"a method that is not a text", `{"id":1,"method":7}`, parts{ID: `1`}, "nothing"},
		{"an empty object", `{}`, parts{}, "nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := mcp.ParseMessage([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, partsOf(m)); d != "" {
				t.Error(d)
			}
			if kind := kindOf(m); kind != tt.kind {
				t.Errorf("it is a %s, want a %s", kind, tt.kind)
			}
		})
	}
}

func kindOf(m mcp.Message) string {
	switch {
	case m.IsRequest() && !m.IsNotification() && !m.IsResponse():
		return "request"
	case m.IsNotification() && !m.IsRequest() && !m.IsResponse():
		return "notification"
	case m.IsResponse() && !m.IsRequest() && !m.IsNotification():
		return "response"
	case !m.IsRequest() && !m.IsNotification() && !m.IsResponse():
		return "nothing"
	}
	return "several things"
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                            "json: want an object at byte 0",
		`[{"id":1}]`:                  "json: want an object at byte 0",
		` "text"`:                     "json: want an object at byte 1",
		`{"id":1`:                     "json: want a comma or the end of the object at byte 7",
		`{"id":1,"params":{"a":tru}}`: "json: want a value at byte 22",
		`{"id":1}{"id":2}`:            "json: more than one value at byte 8",
		"{\"id\":\"\xff\"}":           "json: invalid UTF-8 at byte 7",
	} {
		if _, err := mcp.ParseMessage([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("Parse(%q): %v, want %s", text, err, want)
		}
	}
}

func TestAppend(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"id":1,"method":"a\"b","params":{"x": 1}}`, `{"jsonrpc":"2.0","id":1,"method":"a\"b","params":{"x": 1}}`},
		{`{"method":"note"}`, `{"jsonrpc":"2.0","method":"note"}`},
		{"{\"id\":\"a\",\"result\":{\r\n  \"big\": 9007199254740993,\n  \"text\": \"a\\nb\"\n}}",
			"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{    \"big\": 9007199254740993,   \"text\": \"a\\nb\" }}"},
		{`{"id":null,"error":{"code":1}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`},
	} {
		m, err := mcp.ParseMessage([]byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m.Append([]byte("> "))); got != "> "+tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestIsBatch(t *testing.T) {
	for text, want := range map[string]bool{` [{}]`: true, `[]`: true, `{}`: false, ``: false, `"["`: false} {
		if got := mcp.IsBatch([]byte(text)); got != want {
			t.Errorf("IsBatch(%s) = %v", text, got)
		}
	}
}

func TestErrorObject(t *testing.T) {
	obj := mcp.NewErrorObject(mcp.CodeUnsupportedVersion, `no "2099"`, json.RawMessage(`{"supported":[]}`))
	if want := `{"code":-32022,"message":"no \"2099\"","data":{"supported":[]}}`; string(obj) != want {
		t.Errorf("got %s, want %s", obj, want)
	}
	if got := string(mcp.NewErrorObject(1, "", nil)); got != `{"code":1,"message":""}` {
		t.Errorf("got %s", got)
	}
	for text, want := range map[string]int{string(obj): -32022, `{"code":"x"}`: 0, `{}`: 0, `null`: 0, ``: 0} {
		if got := mcp.ErrorCode(json.RawMessage(text)); got != want {
			t.Errorf("ErrorCode(%s) = %d, want %d", text, got, want)
		}
	}
}

// FuzzParse is row FZ-1: a message is read where it is strict JSON and an object, and written it is what it was.
func FuzzParse(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
		f.Add([]byte(`{"id":1,"method":"m","params":` + text + `}`))
		f.Add([]byte(`{"id":"1","result":` + text + `,"error":null}`))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := mcp.ParseMessage(b)
		if valid := rawjson.Valid(b) == nil && bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"),
			[]byte("{")); valid != (err == nil) {
			t.Fatalf("Parse(%q) = %v", b, err)
		}
		if err != nil {
			return
		}
		line := m.Append(nil)
		if bytes.ContainsAny(line, "\r\n") {
			t.Errorf("%q is not one line", line)
		}
		again, err := mcp.ParseMessage(line)
		if err != nil {
			t.Fatalf("Parse(%q): %v", line, err)
		}
		if d := cmp.Diff(flat(partsOf(m)), partsOf(again)); d != "" {
			t.Errorf("%q: %s", b, d)
		}
	})
}

// flat has blanks for the line breaks of everything but the method, whose text is decoded.
func flat(p parts) parts {
	breaks := strings.NewReplacer("\n", " ", "\r", " ")
	return parts{breaks.Replace(p.ID), p.Method, breaks.Replace(p.Params), breaks.Replace(p.Result),
		breaks.Replace(p.Error)}
}

func ExampleParse() {
	m, err := mcp.ParseMessage(
		[]byte(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","unknown":0}}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(m.IsRequest(), m.Method, string(m.Params))
	m.ID = json.RawMessage("7")
	fmt.Println(string(m.Append(nil)))
	// Output:
	// true tools/call {"name":"echo","unknown":0}
	// {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","unknown":0}}
}

// jsonTexts are valid JSON and what is just beside it. They seed every fuzz target.
var jsonTexts = []string{
	`{}`, `[]`, `null`, `true`, `false`, `""`, `0`, `-0`, `12.5e-3`, `1E+9`, `"\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t"`,
	" \t\r\n{ \"a\" : [ 1 , { } , \"\" ] } \n", `{"a":{"b":[[],{}]},"a":1}`, `[1,2,3]`, `9007199254740993`, `1e400`,
	`"` + strings.Repeat("long enough for eight at once ", 5) + `"`, `"\ud800"`,

	``, ` `, `{`, `}`, `[`, `[1`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{"a" 1}`,
	`{"a":1 "b":2}`, `{,}`,
	`tru`, `truex`, `nulL`, `01`, `-`, `+1`, `.5`, `1.`, `1e`, `1e+`, `--1`, `0x10`, `NaN`, `Infinity`, `'a'`,
	`"`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"a\nb\"", "\"1234567\x01\"", `"a"b`, `1 2`, `{} {}`, "\ufeff{}",
	`[1 2]`, `{]`, `[}`,
	"\"\xff\"", "\"caf\xe9 and more text behind it\"", "\xff",
}

func TestAmbiguousMessages(t *testing.T) {
	for _, tt := range []struct{ message, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}`, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","extra":1,"extra":2}`, ""},
		{`{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}`, "jsonrpc"},
		{`{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}`, "id"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call"}`, "method"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, "method"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":[]}`, "params"},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"re\u200bsult\":{}}", "result"},
		{`{"jsonrpc":"2.0","id":1,"result":{},"error":null,"error":{}}`, "error"},
	} {
		m, err := mcp.ParseMessage([]byte(tt.message))
		if err != nil || m.Ambiguous != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.message, m.Ambiguous, err, tt.want)
		}
	}
}
