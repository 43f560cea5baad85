package naming

import (
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
	for _, uri := range []string{"", "x", "drawbridge+b", "ui://page", "ui://drawbridge+b", "://drawbridge+b/x", "a/b://drawbridge+b/x", "ui:drawbridge+b/x"} {
		if server, own, ok := CutServer(uri); ok {
			t.Errorf("%q is taken apart as %q, %q", uri, server, own)
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
		for _, qualified := range []string{QualifiedURI(id, uri), InAuthority(id, uri)} {
			if got, own, ok := CutServer(qualified); !ok || got != id || own != uri {
				t.Errorf("%q is taken apart as %q, %q, %t, and was made of %q, %q", qualified, got, own, ok, server, uri)
			}
		}
	})
}
