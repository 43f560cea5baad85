package rawjson

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzCanonical checks that the canonical form is JSON, keeps the value and is its own canonical form.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		``, `{`, `null`, ` [ 1.0 , {"b":{"d":[],"c":"x"}, "a" : {} , "b":2 } , "" ] `, `{"a":"<b>"}`,
		`{"ä":1,"a":"\n"}`, `{"\u0061":1,"a":2}`, `1e400 x`,
		`{"path":"/a","limit":100,"all":false}`, "\"\xff\"", `{"":0,"":1}`, "[\"\u2028\", -0]",
		`{"z":1,"y":{"x":1,"w":2},"z":{"q":1}}`, `{"10":1,"9":2}`, `"\ud83d\ude00\ud83d"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, numbers := range []NumberForm{ExactNumbers, DoubleNumbers} {
			got, ok := AppendCanonical(nil, raw, numbers)
			if ok != (Valid(raw) == nil) {
				t.Fatalf("%q has a canonical form: %v", raw, ok)
			}
			if !ok {
				return
			}
			if again, ok := AppendCanonical(nil, got, numbers); !ok || !bytes.Equal(again, got) {
				t.Fatalf("the canonical form of %q is %q, and of that %q", raw, got, again)
			}
			if numbers == ExactNumbers && !bytes.Equal(decodedAgain(raw), decodedAgain(got)) {
				t.Fatalf("%q has the canonical form %q, which is another value", raw, got)
			}
		}
	})
}

// decodedAgain returns raw as encoding/json writes it after reading it.
func decodedAgain(raw []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	out, _ := json.Marshal(v) // what was decoded can be encoded
	return out
}
