package rawjson

import (
	"bytes"
	"testing"
)

// FuzzCanonical holds the quick way to write a value against the thorough one.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		``, `{`, `null`, ` [ 1.0 , {"b":{"d":[],"c":"x"}, "a" : {} , "b":2 } , "" ] `, `{"a":"<b>"}`,
		`{"ä":1,"a":"\n"}`, `{"\u0061":1,"a":2}`, `1e400 x`,
		`{"path":"/a","limit":100,"all":false}`, "\"\xff\"", `{"":0,"":1}`, "[\"\u2028\", -0]",
		`{"z":1,"y":{"x":1,"w":2},"z":{"q":1}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		want := canonicalByDecoding(raw)
		if len(raw) == 0 {
			want = nil
		}
		if got := Canonical(raw); !bytes.Equal(got, want) {
			t.Errorf("%q is written %q, want %q", raw, got, want)
		}
	})
}
