package deck

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
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
		got := qualifiedURI("b", tt.own)
		if got != tt.want {
			t.Errorf("%s is qualified as %s, want %s", tt.own, got, tt.want)
		}
		if server, own, ok := cutServer(got); !ok || server != "b" || own != tt.own {
			t.Errorf("%s is taken apart as %q, %q, %t", got, server, own, ok)
		}
	}
}

func TestWhatNamesNoServerIsNotTakenApart(t *testing.T) {
	for _, uri := range []string{"", "x", "drawbridge+b", "ui://page", "ui://drawbridge+b", "://drawbridge+b/x", "a/b://drawbridge+b/x", "ui:drawbridge+b/x"} {
		if server, own, ok := cutServer(uri); ok {
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

func FuzzQualifiedURI(f *testing.F) {
	f.Add("b", "ui://page")
	f.Add("a.b-c_d", "skill://drawbridge+x/y")
	f.Add("b", "no uri")
	f.Add("b", "://x")
	f.Fuzz(func(t *testing.T, server, uri string) {
		id := drawbridge.ServerID(server)
		if id.Valid() != nil {
			t.Skip()
		}
		for _, qualified := range []string{qualifiedURI(id, uri), inAuthority(id, uri)} {
			if got, own, ok := cutServer(qualified); !ok || got != id || own != uri {
				t.Errorf("%q is taken apart as %q, %q, %t, and was made of %q, %q", qualified, got, own, ok, server, uri)
			}
		}
	})
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
