package rawjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

func put(value string, path ...string) rawjson.Edit {
	return rawjson.Put(json.RawMessage(value), path...)
}

func TestApply(t *testing.T) {
	for _, tt := range []struct {
		name, obj string
		edits     []rawjson.Edit
		want      string
	}{
		{"nothing to do", `{"a":1}`, nil, `{"a":1}`},
		{"replace", `{"a":1,"b":2,"c":3}`, []rawjson.Edit{put(`"x"`, "b")}, `{"a":1,"b":"x","c":3}`},
		{"keep what stands around", "{ \"a\" :\t1 ,\n \"big\": 9007199254740993, \"esc\": \"\\u0041\" }",
			[]rawjson.Edit{put(`2`, "a")},
			"{ \"a\" :\t2 ,\n \"big\": 9007199254740993, \"esc\": \"\\u0041\" }"},
		{"add at the end", `{"a":1}`, []rawjson.Edit{put(`2`, "b")}, `{"a":1,"b":2}`},
		{"add before blanks", "{\"a\":1\n}\n", []rawjson.Edit{put(`2`, "b")}, "{\"a\":1\n,\"b\":2}\n"},
		{"add to an empty object", ` { } `, []rawjson.Edit{put(`2`, "b")}, ` { "b":2} `},
		{"add to nothing", ``, []rawjson.Edit{put(`2`, "b")}, `{"b":2}`},
		{"add a name that needs escapes", `{}`, []rawjson.Edit{put(`2`, "a\"\n")}, `{"a\"\n":2}`},
		{"a name in escapes is the name", `{"\u006eame":"x"}`, []rawjson.Edit{put(`"y"`, "name")}, `{"\u006eame":"y"}`},
		{"a name with a backslash is another", `{"\u006eame":"x"}`, []rawjson.Edit{put(`"y"`, `\u006eame`)},
			`{"\u006eame":"x","\\u006eame":"y"}`},
		{"of a repeated name one stays", `{"name":"a","x":0,"n\u0061me":"b","name":"c","y":1}`,
			[]rawjson.Edit{put(`"new"`, "name")},
			`{"x":0,"name":"new","y":1}`},
		{"a repeated name at the end", `{"name":"a","name":"b"}`, []rawjson.Edit{put(`"new"`, "name")},
			`{"name":"new"}`},
		{"empty name", `{"":1}`, []rawjson.Edit{put(`2`, "")}, `{"":2}`},
		{"null is a value", `{"a":1}`, []rawjson.Edit{put(`null`, "a")}, `{"a":null}`},

		{"nested", `{"_meta":{"k":1,"token":"old"},"z":0}`, []rawjson.Edit{put(`7`, "_meta", "token")},
			`{"_meta":{"k":1,"token":7},"z":0}`},
		{"nested, made", `{"z":0}`, []rawjson.Edit{put(`7`, "_meta", "a", "b")}, `{"z":0,"_meta":{"a":{"b":7}}}`},
		{"nested, in the place of what is not an object", `{"_meta":null,"z":[1]}`,
			[]rawjson.Edit{put(`7`, "_meta", "a"),
				put(`8`, "z", "a")},
			`{"_meta":{"a":7},"z":{"a":8}}`},
		{"nested, repeated on the way", `{"_meta":{"a":1},"_meta":{"b":2}}`, []rawjson.Edit{put(`7`, "_meta", "c")},
			`{"_meta":{"b":2,"c":7}}`},

		{"drop the first", `{"a":1, "b":2}`, []rawjson.Edit{rawjson.Drop("a")}, `{"b":2}`},
		{"drop from the middle", `{"a":1, "b":2 , "c":3}`, []rawjson.Edit{rawjson.Drop("b")}, `{"a":1, "c":3}`},
		{"drop the last", `{"a":1 , "b":2 }`, []rawjson.Edit{rawjson.Drop("b")}, `{"a":1  }`},
		{"drop the only one", `{ "a":1 }`, []rawjson.Edit{rawjson.Drop("a")}, `{ }`},
		{"drop a repeated one", `{"a":1,"b":2,"a":3,"\u0061":4}`, []rawjson.Edit{rawjson.Drop("a")}, `{"b":2}`},
		{"drop what is all of it", `{"a":1,"a":2}`, []rawjson.Edit{rawjson.Drop("a")}, `{}`},
		{"drop nested", `{"_meta":{"a":1,"b":2}}`, []rawjson.Edit{rawjson.Drop("_meta", "a")}, `{"_meta":{"b":2}}`},
		{"drop nested, repeated on the way", `{"_meta":{"a":1},"x":0,"_meta":{}}`,
			[]rawjson.Edit{rawjson.Drop("_meta", "a")}, `{"x":0,"_meta":{}}`},
		{"drop what is not there", `{"b":{"c":1}}`, []rawjson.Edit{rawjson.Drop("a"), rawjson.Drop("b", "a"),
			rawjson.Drop("b", "c", "d")}, `{"b":{"c":1}}`},
		{"drop from what is not an object", `[1]`, []rawjson.Edit{rawjson.Drop("a")}, `[1]`},
		{"drop from nothing", ``, []rawjson.Edit{rawjson.Drop("a")}, ``},

		{"several, in order", `{"name":"every__echo","_meta":{"progressToken":1}}`,
			[]rawjson.Edit{put(`"echo"`, "name"), rawjson.Drop("_meta", "progressToken"), put(`"2"`, "_meta", "v")},
			`{"name":"echo","_meta":{"v":"2"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj := json.RawMessage(tt.obj)
			if got := string(rawjson.Apply(obj, tt.edits...)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if string(obj) != tt.obj {
				t.Errorf("the object itself became %s", obj)
			}
		})
	}
}

func TestApplyWithoutEffectCopiesNothing(t *testing.T) {
	obj := json.RawMessage(`{"content":[],"_meta":{"x":1}}`)
	got := rawjson.Apply(obj, rawjson.Drop("_meta", mcp.MetaServerInfo), rawjson.Drop("nothing"))
	if &got[0] != &obj[0] || len(got) != len(obj) {
		t.Errorf("got a copy: %s", got)
	}
}

// What is not valid is the caller's mistake, and still nothing may fall over.
func TestApplyToBrokenBytes(t *testing.T) {
	for _, obj := range []string{`{`, `{"a":1`, `{"a":1,`, `{"a":{"b":1`, `{"a":1}}`, `}`} {
		rawjson.Apply(json.RawMessage(obj), put(`2`, "a"), put(`2`, "b"), put(`2`, "a", "b"), rawjson.Drop("a"))
	}
}

// A hostile object with one name twenty thousand times must cost no more than its length.
func TestApplyIsLinearInRepeatedNames(t *testing.T) {
	obj := json.RawMessage(`{` + string(bytes.Repeat([]byte(`"a":1,`), 20_000)) + `"b":2}`)
	if got := string(rawjson.Apply(obj, rawjson.Drop("a"))); got != `{"b":2}` {
		t.Errorf("got %.40s", got)
	}
	if got := string(rawjson.Apply(obj, put(`3`, "a"))); got != `{"a":3,"b":2}` {
		t.Errorf("got %.40s", got)
	}
}

func FuzzApply(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text), "a", "", []byte(`1`))
		f.Add([]byte(`{"a":1,"b":`+text+`,"a":2}`), "a", "b", []byte(text))
	}
	f.Fuzz(func(t *testing.T, obj []byte, outer, inner string, value []byte) {
		var before map[string]any
		var put any // what encoding/json cannot read is none: 1e700
		if rawjson.Valid(obj) != nil || rawjson.Valid(value) != nil || json.Unmarshal(obj, &before) != nil ||
			json.Unmarshal(value, &put) != nil {
			return
		}
		path := []string{string([]rune(outer))} // in valid UTF-8
		if inner != "" {
			path = append(path, string([]rune(inner)))
		}
		out := rawjson.Apply(obj, rawjson.Put(value, path...))
		if depthOf(out) > rawjson.MaxDepth {
			return
		}
		checkEdited(t, before, out, path[0])
		if got := rawjson.Get(out, path...); !bytes.Equal(got, trimBlanks(value)) {
			t.Errorf("Put(%q, %q) in %q: Get returns %q", value, path, obj, got)
		}
		out = rawjson.Apply(out, rawjson.Drop(path...))
		checkEdited(t, before, out, path[0])
		if got := rawjson.Get(out, path...); got != nil {
			t.Errorf("Drop(%q) leaves %q in %q", path, got, out)
		}
	})
}

// checkEdited checks that out is valid, has name at most once, and that all else in it is as before.
func checkEdited(t *testing.T, before map[string]any, out []byte, name string) {
	t.Helper()
	if err := rawjson.Valid(out); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	times := 0
	for m := range rawjson.Members(out) {
		if m.HasName(name) {
			times++
		}
	}
	if times > 1 {
		t.Errorf("%q has %q %d times", out, name, times)
	}
	after := map[string]any{}
	if err := json.Unmarshal(out, &after); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	for k, v := range before {
		want[k] = v
	}
	delete(want, name)
	delete(after, name)
	if d := cmp.Diff(want, after); d != "" {
		t.Errorf("the rest changed: %s", d)
	}
}

func ExampleApply() {
	params := json.RawMessage(
		`{ "name": "github__search", "arguments": {"q": "\u00e9"}, "_meta": {"progressToken": 1} }`)
	fmt.Println(string(rawjson.Apply(params,
		rawjson.Put(rawjson.Quote("search"), "name"),
		rawjson.Drop("_meta", mcp.MetaProgressToken))))
	// Output: { "name": "search", "arguments": {"q": "\u00e9"}, "_meta": {} }
}

func TestEachValue(t *testing.T) {
	wrap := func(m rawjson.Member) json.RawMessage {
		if m.HasName("keep") {
			return m.Value
		}
		return json.RawMessage("[" + string(m.Value) + "]")
	}
	for _, tt := range []struct{ obj, want string }{
		{`{}`, `{}`},
		{`{"keep":1}`, `{"keep":1}`},
		{` { "a" : 1.0 , "keep":"x", "a":{ } } `, ` { "a" : [1.0] , "keep":"x", "a":[{ }] } `},
		{`[1]`, `[1]`},
		{`null`, `null`},
		{``, ``},
	} {
		if got := string(rawjson.MapValues(json.RawMessage(tt.obj), wrap)); got != tt.want {
			t.Errorf("%s becomes %s, want %s", tt.obj, got, tt.want)
		}
	}
}

func TestAppendValues(t *testing.T) {
	const in = ` { "a" : [ 1 , {"b":"x"} ] , "a":2 , "keep": 1.0 } `
	got := rawjson.AppendObjectFunc([]byte("before"), json.RawMessage(in), func(dst []byte, m rawjson.Member) []byte {
		if m.HasName("keep") {
			return append(dst, m.Value...)
		}
		return rawjson.AppendArrayFunc(append(dst, '<'), m.Value, func(dst []byte, e json.RawMessage) []byte {
			return append(append(append(dst, '('), e...), ')')
		})
	})
	if want := `before { "a" : <[ (1) , ({"b":"x"}) ] , "a":<2 , "keep": 1.0 } `; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, in := range []string{`[1]`, `{}`, ``, `null`, ` { } `} {
		if got := string(rawjson.AppendObjectFunc(nil, json.RawMessage(in), nil)); got != in {
			t.Errorf("%q becomes %q", in, got)
		}
	}
	for _, in := range []string{`{"a":1}`, `[]`, ``, `null`, ` [ ] `} {
		if got := string(rawjson.AppendArrayFunc(nil, json.RawMessage(in), nil)); got != in {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}

func TestEachElement(t *testing.T) {
	upper := func(e json.RawMessage) json.RawMessage { return bytes.ToUpper(e) }
	for _, tt := range []struct{ in, want string }{
		{`[]`, `[]`},
		{`[ 1 , 2 ]`, `[ 1 , 2 ]`}, // nothing changes: to the byte
		{`["a", 2 ,["b"] ] `, `["A", 2 ,["B"] ] `},
		{`{"a":1}`, `{"a":1}`},
		{`"a"`, `"a"`},
		{``, ``},
	} {
		if got := rawjson.MapElements(json.RawMessage(tt.in), upper); string(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.in, got, tt.want)
		}
	}
}
