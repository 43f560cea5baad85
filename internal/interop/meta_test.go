package interop

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

func TestServerInfoIsStripped(t *testing.T) {
	for in, want := range map[string]string{
		`{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"up"}}}`:              `{"content":[]}`,
		`{"_meta":{"a":1.0,"io.modelcontextprotocol\/serverInfo":{"name":"up"}}, "x": 1e400 }`:     `{"_meta":{"a":1.0}, "x": 1e400 }`,
		`{"content":[{"type":"text","text":"serverInfo"}], "_meta" : {"b": 12345678901234567890}}`: `{"content":[{"type":"text","text":"serverInfo"}], "_meta" : {"b": 12345678901234567890}}`,
		// What only we say: a server's fault must not look like ours.
		`{"isError":true,"_meta":{"drawbridge/fault":{"code":"policy_blocked"},"a":1}}`:     `{"isError":true,"_meta":{"a":1}}`,
		`{"\u005fmeta":{"dr\u0061wbridge\/fault":{},"drawbridge/server":"x"},"content":[]}`: `{"content":[]}`,
		`{"_meta":{"drawbridge/fault":{}},"content":[],"_meta":{"b":2}}`:                    `{"content":[],"_meta":{"b":2}}`,
		`{"content":[{"type":"text","text":"drawbridge/fault \u003c"}]}`:                    `{"content":[{"type":"text","text":"drawbridge/fault \u003c"}]}`,
	} {
		if got := string(CleanServerResult([]byte(in))); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", in, got, want)
		}
	}
}

// FuzzMeta checks what the edits of _meta promise: what is JSON stays JSON, and what belongs to no hop stays the same.
func FuzzMeta(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"_meta":{}}`, `{"_meta":null,"a":1}`, `{"_meta":[1]}`,
		`{"name":"x","_meta":{"progressToken":1,"a/b":[1e400]}}`,
		`{"_meta":{"io.modelcontextprotocol/serverInfo":{}}}`,
		`{"_meta":{"io.modelcontextprotocol\/clientInfo":1},"_meta":{"x":"\u0000"}}`,
		`{"_meta":{"drawbridge/fault":{}},"_meta":{"drawbridge/server":1}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if rawjson.Valid(in) != nil || in[0] != '{' {
			t.Skip()
		}
		modern := ToModernParams(in, RequestMeta{Version: mcp.Version20260728, ClientInfo: `{"name":"c"}`})
		if err := rawjson.Valid(modern); err != nil || mcp.ProtocolVersion(modern) != mcp.Version20260728 {
			t.Fatalf("%s became %s: %v", in, modern, err)
		}
		for _, out := range []json.RawMessage{ToLegacyParams(in), CleanServerResult(in), ToLegacyParams(modern)} {
			if err := rawjson.Valid(out); err != nil {
				t.Fatalf("%s became %s: %v", in, out, err)
			}
		}
		if diff := cmp.Diff(withoutHops(t, in), withoutHops(t, modern)); diff != "" {
			t.Errorf("%s became %s:\n%s", in, modern, diff)
		}
		if got := CleanServerResult(in); rawjson.Get(got, "_meta", "drawbridge/fault") != nil {
			t.Errorf("%s states what only we state", got)
		}
		if got := ToLegacyParams(modern); rawjson.Get(got, "_meta", mcp.MetaClientInfo) != nil {
			t.Errorf("%s still has members of a hop", got)
		}
	})
}

// withoutHops returns the members of an object by name as bytes, those of its _meta that belong to a hop left out.
func withoutHops(t *testing.T, object []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for m := range rawjson.Members(object) {
		name, _ := rawjson.DecodeString(m.Name)
		if name != "_meta" {
			all[name] = string(m.Value)
		}
	}
	for m := range rawjson.Members(mcp.MetaOf(object)) {
		name, _ := rawjson.DecodeString(m.Name)
		if !isHopMember(m) {
			all["_meta "+name] = string(m.Value)
		}
	}
	return all
}
