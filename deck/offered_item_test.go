package deck

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

func TestRestore(t *testing.T) {
	names := map[string]string{"a": "ä\"", "b": "a"}
	for _, tt := range []struct{ params, want string }{
		{`{"name":"a","arguments":{"a":"a","b":{"b":["a",{"a" : null}]},"c":{}},"a":1}`,
			`{"name":"a","arguments":{"ä\"":"a","a":{"a":["a",{"ä\"" : null}]},"c":{}},"a":1}`},
		{`{ "arguments" : {"\u0061":1.0} }`, `{ "arguments" : {"ä\"":1.0} }`},
		{`{"arguments":{"c":"\"a\":"}}`, `{"arguments":{"c":"\"a\":"}}`},
		{`{"arguments":null}`, `{"arguments":null}`},
		{`{"name":"b"}`, `{"name":"b"}`},
		{`{"argument":{"name":"b","value":"b"}}`, `{"argument":{"name":"a","value":"b"}}`},
		{``, ``},
	} {
		if got := restoreArgumentNames(json.RawMessage(tt.params), names); string(got) != tt.want {
			t.Errorf("%s became %s, want %s", tt.params, got, tt.want)
		}
	}
}

// FuzzRestore renames there and back: what comes is what went.
func FuzzRestore(f *testing.F) {
	for _, text := range []string{`{"a":{"a":1}}`, `{"b":"\\\"a\":"}`, `[{"a" :[]}]`, `"a"`, `{"":{"a":{}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, arguments []byte) {
		if rawjson.Valid(arguments) != nil || len(arguments) == 0 {
			return
		}
		params := rawjson.Apply(nil, rawjson.Put(arguments, "arguments"))
		there := restoreArgumentNames(params, map[string]string{"a": "\x01 no such name"})
		if err := rawjson.Valid(there); err != nil {
			t.Fatalf("%s became %s: %v", params, there, err)
		}
		back := restoreArgumentNames(there, map[string]string{"\x01 no such name": "a"})
		if string(rawjson.Canonical(back)) != string(rawjson.Canonical(params)) {
			t.Errorf("%s came back as %s", params, back)
		}
	})
}

// restoreArgumentNames applies the edits of argumentNameEdits.
func restoreArgumentNames(params json.RawMessage, names map[string]string) json.RawMessage {
	return rawjson.Apply(params, argumentNameEdits(params, names)...)
}
