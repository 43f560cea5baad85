package deck_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/tailscale/hujson"
)

// FuzzReaders is row FZ-2: what params say to us they say to two other readers, one that takes names in any case and
// the last of two members, and one that keeps all of them. Where the readers would disagree, the params are refused.
func FuzzReaders(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","arguments":{"n":1},"requestState":"s"}`, `{"name":"a","name":"b"}`, `{"name":"a","NAME":"b"}`,
		`{"name":"a","n\u0061me":"b"}`,
		"{\"name\":\"a\",\"argument\u017f\":{}}", `{"name":"a","name\u0000":"b"}`, `{"name":"\ud800"}`,
		`{"name":"a","arguments":{"x":-0,"y":1e400,"z":9007199254740993}}`,
		`{"name":null}`, `{"name":"a","arguments":null,"requestState":null}`, `{"name":"a","":1,"":2}`, `[]`,
		"{\"\u212aey\":1,\"name\":\"\u00e9\"}", `{"name":"a","na\u200bme":"b"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if rawjson.Valid(raw) != nil { // it does not get so far
			return
		}
		ours, err := deck.ReadParams(mcp.MethodToolsCall, raw)
		if err != nil {
			return
		}
		var theirs struct {
			Name         string          `json:"name"`
			Arguments    json.RawMessage `json:"arguments"`
			RequestState json.RawMessage `json:"requestState"`
		}
		if err := json.Unmarshal(raw, &theirs); err != nil {
			t.Fatalf("%q is read here, and not by encoding/json: %v", raw, err)
		}
		if theirs.Name != ours.Name || !same(theirs.Arguments, ours.Arguments) ||
			!same(theirs.RequestState, ours.State) {
			t.Errorf("%q says %q, %s, %s, and to encoding/json %q, %s, %s", raw, ours.Name, ours.Arguments, ours.State,
				theirs.Name, theirs.Arguments, theirs.RequestState)
		}
		all := membersOf(t, raw)
		for name, value := range map[string]json.RawMessage{"name": rawjson.Quote(ours.Name),
			"arguments": ours.Arguments, "requestState": ours.State} {
			switch {
			case len(all[name]) > 1:
				t.Errorf("%q has %d members %q", raw, len(all[name]), name)
			case name != "name" && len(all[name]) == 1 && !same(all[name][0], value):
				t.Errorf("%q has a member %q that is %s here and %s there", raw, name, value, all[name][0])
			}
		}
	})
}

// same reports whether two values are the same, except for blanks. What is null is not there.
func same(a, b json.RawMessage) bool {
	return bytes.Equal(plain(a), plain(b))
}

func plain(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil || b.String() == "null" {
		return nil
	}
	return b.Bytes()
}

// membersOf returns the members of an object as another parser finds them, all that have a name.
func membersOf(t *testing.T, raw []byte) map[string][]json.RawMessage {
	t.Helper()
	value, err := hujson.Parse(raw)
	if err != nil {
		t.Fatalf("%q is read here, and not by another parser: %v", raw, err)
	}
	all := map[string][]json.RawMessage{}
	object, ok := value.Value.(*hujson.Object)
	if !ok {
		t.Fatalf("%q is an object here, and not to another parser", raw)
	}
	for _, m := range object.Members {
		name := m.Name.Value.(hujson.Literal).String()
		all[name] = append(all[name], json.RawMessage(bytes.TrimSpace(m.Value.Pack())))
	}
	return all
}
