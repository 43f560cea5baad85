package rawjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

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

func TestValidAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range jsonTexts {
		t.Run(text, func(t *testing.T) { checkValid(t, []byte(text)) })
	}
}

// checkValid holds Valid to encoding/json, except for the two things that Valid refuses of its own.
func checkValid(t *testing.T, b []byte) {
	t.Helper()
	err := rawjson.Valid(b)
	want := json.Valid(b) && utf8.Valid(b) && depthOf(b) <= rawjson.MaxDepth
	if got := err == nil; got != want {
		t.Errorf("Valid(%q) = %v, want valid: %v", b, err, want)
	}
	var syntax *rawjson.SyntaxError
	if err != nil {
		syntax = err.(*rawjson.SyntaxError)
		if syntax.Offset < 0 || syntax.Offset > len(b) {
			t.Errorf("Valid(%q): offset %d is outside", b, syntax.Offset)
		}
	}
}

// depthOf is how deep valid JSON nests.
func depthOf(b []byte) int {
	depth, most, inString := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}

func TestValidBoundsDepth(t *testing.T) {
	nest := func(n int, open, end string) []byte {
		return []byte(strings.Repeat(open, n) + "0" + strings.Repeat(end, n))
	}
	for _, tt := range []struct {
		text []byte
		want string
	}{
		{nest(rawjson.MaxDepth, "[", "]"), ""},
		{nest(rawjson.MaxDepth+1, "[", "]"), "json: nested too deep at byte 512"},
		{nest(rawjson.MaxDepth, `{"a":`, "}"), ""},
		{nest(rawjson.MaxDepth+1, `{"a":`, "}"), "json: nested too deep at byte 2560"},
		{[]byte("\"caf\xe9\""), "json: invalid UTF-8 at byte 4"},
		{[]byte(`{"a":1} 2`), "json: more than one value at byte 8"},
	} {
		got := ""
		if err := rawjson.Valid(tt.text); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Valid(%.20s…) = %q, want %q", tt.text, got, tt.want)
		}
		if _, err := mcp.ParseMessage(tt.text); tt.text[0] == '{' && (err == nil) != (tt.want == "") {
			t.Errorf("Parse(%.20s…) = %v, and Valid says %q", tt.text, err, tt.want)
		}
	}
}

func TestMembers(t *testing.T) {
	type member struct{ Name, Value string }
	for _, tt := range []struct {
		text string
		want []member
	}{
		{` { "a" : 1 , "b":[1, 2],"a":"x" } `, []member{{`"a"`, `1`}, {`"b"`, `[1, 2]`}, {`"a"`, `"x"`}}},
		{`{}`, nil},
		{`[1]`, nil},
		{``, nil},
		{`{"a":1,"b":tru}`, []member{{`"a"`, `1`}}},
		{`{"a":1 "b":2}`, []member{{`"a"`, `1`}}},
		{`{"a":1,}`, []member{{`"a"`, `1`}}},
		{`{"a"`, nil},
	} {
		var got []member
		for m := range rawjson.Members([]byte(tt.text)) {
			got = append(got, member{string(m.Name), string(m.Value)})
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("Members(%s): %s", tt.text, d)
		}
	}
}

func TestMemberResembles(t *testing.T) {
	for name, want := range map[string]bool{
		"name": false, `n\u0061me`: false, "Name": true, "NAME": true, `name\u0000`: true,
		"na\u200bme": true, " name": true,
		`N\u0061me`: true, "nam": false, "names": false, "title": false, "": false,
	} {
		for m := range rawjson.Members([]byte(`{"` + name + `":1}`)) {
			if got := m.ResemblesName("name"); got != want {
				t.Errorf("%q: %v", name, got)
			}
		}
	}
	for m := range rawjson.Members([]byte("{\"ta\u017fK\":1,\"Tas\u212a\":1,\"ta\\u017fk\":1}")) {
		if !m.ResemblesName("task") {
			t.Errorf("%s is not seen", m.Name)
		}
	}
}

func TestMemberIs(t *testing.T) {
	for _, tt := range []struct {
		name, is string
		want     bool
	}{
		{`"name"`, "name", true},
		{`"n\u0061me"`, "name", true},
		{`"n\u0061me"`, `n\u0061me`, false},
		{`"n\\u0061me"`, `n\u0061me`, true},
		{`"Name"`, "name", false},
		{`""`, "", true},
	} {
		for m := range rawjson.Members([]byte(`{` + tt.name + `:0}`)) {
			if got := m.HasName(tt.is); got != tt.want {
				t.Errorf("%s is %q: %v, want %v", m.Name, tt.is, got, tt.want)
			}
		}
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string][]string{
		` [ 1 , "a" , {} ] `: {`1`, `"a"`, `{}`},
		`[]`:                 nil,
		`{"a":1}`:            nil,
		`[1,tru]`:            {`1`},
		`[1,`:                {`1`},
	} {
		var got []string
		for e := range rawjson.Elements([]byte(text)) {
			got = append(got, string(e))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Elements(%s): %s", text, d)
		}
	}
}

func TestIterationMayStop(t *testing.T) {
	var seen []string
	for m := range rawjson.Members([]byte(`{"a":1,"b":2}`)) {
		seen = append(seen, string(m.Name))
		break
	}
	for e := range rawjson.Elements([]byte(`[3,4]`)) {
		seen = append(seen, string(e))
		break
	}
	if d := cmp.Diff([]string{`"a"`, `3`}, seen); d != "" {
		t.Error(d)
	}
}

// A part that is appended to must not write over what stands behind it.
func TestPartsHaveNoRoomToAppend(t *testing.T) {
	text := []byte(`{"a" : 1 , "b":[2, 3]} [4] `)
	var parts [][]byte
	for m := range rawjson.Members(text) {
		parts = append(parts, m.Name, m.Value)
	}
	for e := range rawjson.Elements(rawjson.Get(text, "b")) {
		parts = append(parts, e)
	}
	values, _ := mcp.SplitJSONValues(text)
	for _, p := range append(parts, values...) {
		_ = append(p, "XXXX"...)
	}
	if string(text) != `{"a" : 1 , "b":[2, 3]} [4] ` {
		t.Errorf("the text became %s", text)
	}
}

func TestGet(t *testing.T) {
	const text = `{"params":{"name":"first","n\u0061me":"last","arguments":{"n":9007199254740993,"empty":"","none":null}},"list":[]}`
	for _, tt := range []struct {
		path []string
		want string
	}{
		{[]string{"params", "name"}, `"last"`},
		{[]string{"params", "arguments", "n"}, `9007199254740993`},
		{[]string{"params", "arguments", "none"}, `null`},
		{[]string{"params", "arguments", "empty"}, `""`},
		{[]string{"params", "nobody"}, ``},
		{[]string{"list", "0"}, ``},
		{nil, text},
	} {
		if got := string(rawjson.Get([]byte(text), tt.path...)); got != tt.want {
			t.Errorf("Get(%v) = %s, want %s", tt.path, got, tt.want)
		}
	}
	if got := rawjson.GetString([]byte(text), "params", "name"); got != "last" {
		t.Errorf("GetText = %q", got)
	}
}

func TestText(t *testing.T) {
	for raw, want := range map[string]string{
		`"plain"`: "plain", `""`: "", `"a\"b\\\n\u00e9"`: "a\"b\\\né", `"\ud83d\ude00"`: "😀",
		`"<&>"`: "<&>", `"/\/"`: "//",
		`"` + strings.Repeat("0123456789", 10) + `\t"`: strings.Repeat("0123456789", 10) + "\t",
	} {
		if got, ok := rawjson.DecodeString(json.RawMessage(raw)); !ok || got != want {
			t.Errorf("Text(%s) = %q, %v, want %q", raw, got, ok, want)
		}
	}
	for _, raw := range []string{``, `"`, `1`, `null`, `{}`, `"open`, `"a"b"`, `"bad \x"`, `open"`} {
		if got, ok := rawjson.DecodeString(json.RawMessage(raw)); ok {
			t.Errorf("Text(%s) = %q, want none", raw, got)
		}
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"":                 `""`,
		"<a href=\"x\">&":  `"<a href=\"x\">&"`,
		"\n\t\r\x00\x1f\\": `"\n\t\r\u0000\u001f\\"`,
		"é😀\u2028":         "\"é😀\u2028\"",
		"bad \xff byte":    "\"bad \ufffd byte\"",
	} {
		if got := string(rawjson.Quote(s)); got != want {
			t.Errorf("Quote(%q) = %s, want %s", s, got, want)
		}
	}
}

// FuzzValid is row FZ-2: what is JSON here is JSON to encoding/json, and its texts say the same (deck/params has what
// stands twice).
func FuzzValid(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkValid(t, b)
		for m := range rawjson.Members(b) {
			if err := rawjson.Valid(m.Value); err != nil && utf8.Valid(b) {
				t.Errorf("member %s of %q: %v", m.Name, b, err)
			}
		}
		var want any
		if rawjson.Valid(b) != nil || json.Unmarshal(b, &want) != nil {
			return
		}
		if s, ok := rawjson.DecodeString(trimBlanks(b)); ok {
			if s != want {
				t.Errorf("Text(%q) = %q, want %q", b, s, want)
			}
			if back, ok := rawjson.DecodeString(rawjson.Quote(s)); !ok || back != s {
				t.Errorf("Text(Quote(%q)) = %q", s, back)
			}
		}
	})
}

func trimBlanks(b []byte) json.RawMessage { return json.RawMessage(strings.Trim(string(b), " \t\r\n")) }

func ExampleMembers() {
	for m := range rawjson.Members([]byte(`{"size": 0, "big": 9007199254740993}`)) {
		fmt.Printf("%s is %s\n", m.Name, m.Value)
	}
	// Output:
	// "size" is 0
	// "big" is 9007199254740993
}

// TestAppendQuoted has each kind of character at each place among plain ones: eight bytes are looked at together.
func TestAppendQuoted(t *testing.T) {
	for _, c := range []string{"", "\"", "\\", "\n", "\x00", "\x1f", " ", "~", "\x7f", "é", "漢", "😀", "\xff", "\xc3",
		"!", "#", "[", "]"} {
		for at := range 20 {
			text := strings.Repeat("a", at) + c + strings.Repeat("z", 19-at)
			var got string
			if quoted := rawjson.Quote(text); json.Unmarshal(quoted, &got) != nil || got != strings.ToValidUTF8(text,
				"\ufffd") || strings.Contains(string(quoted), "\xff") {
				t.Errorf("%q is written as %s", text, quoted)
			}
		}
	}
}

func TestMayHave(t *testing.T) {
	for _, tt := range []struct {
		text, word string
		want       bool
	}{
		{`{"isError":true}`, `"isError"`, true},
		{`"isError"`, `"isError"`, true},
		{`"isError`, `"isError"`, false},
		{`isError"`, `"isError"`, false},
		{`EEEE"isErroE"isError"`, `"isError"`, true},
		{`{"task":1}`, `"task"`, true},
		{`{"tas":1,"k":"sk"}`, `"task"`, false},
		{`{"\u0069sError":true}`, `"isError"`, true},
		{`{"a\u002db":1}`, `"a-b"`, true},
		{`{"a\u0020\n\\":1}`, `"isError"`, false},
		{`{"a":"\u004`, `"isError"`, false},
		{`{"a":"\u004a`, `"isError"`, true},
		{`\u00`, `"isError"`, false},
		{``, `"isError"`, false},
	} {
		if got := rawjson.MayContain([]byte(tt.text), tt.word); got != tt.want {
			t.Errorf("%s in %s: %v", tt.word, tt.text, got)
		}
	}
}
