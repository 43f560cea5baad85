package naming

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

func TestAQualifiedURIKeepsTheSchemeThatSaysWhatItIs(t *testing.T) {
	for _, tt := range []struct{ own, want string }{
		{"doc://x", "drawbridge+b:doc://x"},
		{"mailto:x@example.com", "drawbridge+b:mailto:x@example.com"},
		{"ui://page", "ui://drawbridge+b/page"},
		{"ui://weather/view.html?x#y", "ui://drawbridge+b/weather/view.html?x#y"},
		{"ui:///page", "ui://drawbridge+b//page"},
		{"skill://git-workflow/SKILL.md", "skill://drawbridge+b/git-workflow/SKILL.md"},
		{"ui://drawbridge+a/page", "ui://drawbridge+b/drawbridge+a/page"},
	} {
		got := QualifiedURI("b", tt.own)
		if got != tt.want {
			t.Errorf("%s is qualified as %s, want %s", tt.own, got, tt.want)
		}
		if server, own, ok := CutServer(got); !ok || server != "b" || own != tt.own {
			t.Errorf("%s is taken apart as %q, %q, %t", got, server, own, ok)
		}
	}
}

func TestWhatNamesNoServerIsNotTakenApart(t *testing.T) {
	for _, uri := range []string{"", "x", "drawbridge+b", "ui://page", "ui://drawbridge+b", "://drawbridge+b/x",
		"a/b://drawbridge+b/x", "ui:drawbridge+b/x"} {
		if server, own, ok := CutServer(uri); ok {
			t.Errorf("%q is taken apart as %q, %q", uri, server, own)
		}
	}
}

func TestURIsInAnArrayAreChangedAndNothingElse(t *testing.T) {
	public := func(uri string) string {
		if uri == "a:1" {
			return "b:1"
		}
		return uri
	}
	for _, tt := range []struct{ name, in, want string }{
		{"the one that changes", `{ "contents": [ {"n":1.0,"uri":"a:1"}, {"uri":"c"} ],"z":1e400}`,
			`{ "contents": [ {"n":1.0,"uri":"b:1"}, {"uri":"c"} ],"z":1e400}`},
		{"none", `{"contents":[ {"uri":"c"}, 7, null ]}`, `{"contents":[ {"uri":"c"}, 7, null ]}`},
		{"no array", `{"contents":{"uri":"a:1"}}`, `{"contents":{"uri":"a:1"}}`},
		{"no such member", `{"x":[{"uri":"a:1"}]}`, `{"x":[{"uri":"a:1"}]}`},
		{"no object", `[{"uri":"a:1"}]`, `[{"uri":"a:1"}]`},
		{"an escaped one", `{"contents":[{"u\u0072i":"a\u003a1"},"a:1"]}`, `{"contents":[{"u\u0072i":"b:1"},"a:1"]}`},
	} {
		if got := string(MapURIs(json.RawMessage(tt.in), "contents", public)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func FuzzQualifiedURI(f *testing.F) {
	f.Add("b", "ui://page")
	f.Add("a.b-c_d", "skill://drawbridge+x/y")
	f.Add("b", "no uri")
	f.Add("b", "://x")
	f.Fuzz(func(t *testing.T, server, uri string) {
		id := drawbridge.ServerID(server)
		if id.Validate() != nil {
			t.Skip()
		}
		for _, qualified := range []string{QualifiedURI(id, uri), AddServerAuthority(id, uri)} {
			if got, own, ok := CutServer(qualified); !ok || got != id || own != uri {
				t.Errorf("%q is taken apart as %q, %q, %t, and was made of %q, %q", qualified, got, own,
					ok, server, uri)
			}
		}
	})
}
