package store

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestStoredListing(t *testing.T) {
	text, err := encodeListing(drawbridge.Listing{
		Server: "fs", ConfigHash: "r0w", Era: drawbridge.Legacy, Info: json.RawMessage(`{"name":"x"}`),
		Tools: []json.RawMessage{json.RawMessage(`{ "a":1 }`), json.RawMessage(`{"b":"<"}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"server":"fs","row":"r0w","era":1,"at":"0001-01-01T00:00:00Z","info":[12],"capabilities":[0],"tools":[9,9]}` + "\n" +
		`{"name":"x"}{ "a":1 }{"b":"<"}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeListingRefuses(t *testing.T) {
	for _, text := range []string{
		``, `{}`, "\n", "{\n", "[]\n", "{}\nx", `{"tools":[3]}` + "\n{}", `{"tools":[1]}` + "\n{}",
		`{"tools":[-1,3]}` + "\n{}",
		`{"tools":[9223372036854775807,2]}` + "\n{}", `{"info":[1,1]}` + "\n{}x", `{"tools":"2"}` + "\n{}",
	} {
		if l, err := decodeListing([]byte(text)); err == nil {
			t.Errorf("decode %q: %+v and no error", text, l)
		}
	}
}

func FuzzDecodeListing(f *testing.F) {
	f.Add([]byte(`{"server":"fs","row":"r","era":3,"info":[2],"tools":[2,3],"hints":{"tools/list":{"ttl":1}},"at":"2026-07-28T14:02:00Z"}` + "\n" + `{}[][ ]`))
	f.Add([]byte("{\"tools\":[0,0]}\n"))
	f.Add([]byte("null\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := decodeListing(text)
		if err != nil {
			return
		}
		again, err := encodeListing(*l)
		if err != nil {
			return // a time that JSON does not have
		}
		same, err := decodeListing(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(l, same, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal("encoded and decoded again it is something else:", diff)
		}
	})
}
