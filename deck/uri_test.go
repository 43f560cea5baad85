package deck

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/wire"
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

// FuzzLinks goes through results of any kind: what comes out is JSON, and the same bytes where no URI is to be changed.
func FuzzLinks(f *testing.F) {
	f.Add(`{"content":[{"type":"resource_link","uri":"same://x"},{"type":"resource","resource":{"uri":"same://x"}}]}`)
	f.Add(`{"messages":[{"content":{"type":"resource","resource":{"uri":"same://x"}}}],"contents":[ 1 ]}`)
	f.Add(`{"content":{"type":7},"messages":[[]],"content":[{"type":"resource","resource":[]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		result := json.RawMessage(text)
		if wire.Valid(result) != nil {
			t.Skip()
		}
		d := open(t, &fake{}, Options{}, library("a", []string{"same://x"}, nil), library("b", []string{"same://x"}, nil))
		for _, method := range []string{wire.MethodToolsCall, wire.MethodPromptsGet, wire.MethodResourcesRead} {
			got := d.view.Load().linked(method, "b", result)
			if err := wire.Valid(got); err != nil {
				t.Errorf("%s: %s becomes %s: %v", method, text, got, err)
			}
			if !strings.Contains(text, "same") && !strings.Contains(text, `\`) && string(got) != text {
				t.Errorf("%s: %s becomes %s", method, text, got)
			}
			if got := d.view.Load().linked(method, "a", result); string(got) != text {
				t.Errorf("%s: of the first server %s becomes %s", method, text, got)
			}
		}
	})
}
