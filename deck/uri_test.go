package deck

import (
	"encoding/json"
	"testing"
)

func TestURIsInAnArrayAreChangedAndNothingElse(t *testing.T) {
	public := func(uri string) string {
		if uri == "a:1" {
			return "b:1"
		}
		return uri
	}
	for _, tt := range []struct{ name, in, want string }{
		{"the one that changes", `{ "contents": [ {"n":1.0,"uri":"a:1"}, {"uri":"c"} ],"z":1e400}`, `{ "contents": [{"n":1.0,"uri":"b:1"},{"uri":"c"}],"z":1e400}`},
		{"none", `{"contents":[ {"uri":"c"}, 7, null ]}`, `{"contents":[ {"uri":"c"}, 7, null ]}`},
		{"no array", `{"contents":{"uri":"a:1"}}`, `{"contents":{"uri":"a:1"}}`},
		{"no such member", `{"x":[{"uri":"a:1"}]}`, `{"x":[{"uri":"a:1"}]}`},
		{"no object", `[{"uri":"a:1"}]`, `[{"uri":"a:1"}]`},
		{"an escaped one", `{"contents":[{"u\u0072i":"a\u003a1"},"a:1"]}`, `{"contents":[{"u\u0072i":"b:1"},"a:1"]}`},
	} {
		if got := string(eachURI(json.RawMessage(tt.in), "contents", public)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
