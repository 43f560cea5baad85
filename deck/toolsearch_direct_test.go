package deck

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
	"github.com/google/go-cmp/cmp"
)

// TestTheDirectList compares what ListDirect returns in each mode with the list of the mode direct, and shows that a
// list that depends on more than rights is not shared.
func TestTheDirectList(t *testing.T) {
	listings := func() []drawbridge.Listing {
		a := listing("a", "read", "write")
		a.CacheHints = map[string]drawbridge.CacheHint{mcp.MethodToolsList: {Public: true}}
		return []drawbridge.Listing{a}
	}
	direct := open(t, &fake{}, Options{}, listings()...)
	for _, mode := range []toolsearch.Mode{toolsearch.Direct, toolsearch.Search, toolsearch.Auto, toolsearch.Code} {
		o := Options{Discovery: Discovery{Mode: mode, SearchAbove: 1,
			ListsAll: func(c drawbridge.Caller) bool { return c.Principal == "bob" }}}
		d := open(t, &fake{}, o, listings()...)
		for _, caller := range []drawbridge.Caller{ada, bob, {}} {
			want, err := direct.List(t.Context(), caller, mcp.MethodToolsList)
			if err != nil {
				t.Fatal(err)
			}
			got := d.ListDirect(t.Context(), caller)
			if diff := cmp.Diff(asBytes(want.Items), asBytes(got.Items)); diff != "" {
				t.Errorf("%s, %s (-direct +got):\n%s", mode, caller.Principal, diff)
			}
			plain, err := d.List(t.Context(), caller, mcp.MethodToolsList)
			if err != nil {
				t.Fatal(err)
			}
			isShort := mode != toolsearch.Direct && caller.Principal == ada.Principal
			if (plain.Version == got.Version) == isShort {
				t.Errorf("%s, %s: version %d, and %d if asked for all", mode, caller.Principal, plain.Version, got.Version)
			}
			if mode != toolsearch.Direct && (plain.CacheHint.Public || got.CacheHint.Public) {
				t.Errorf("%s, %s: the list is shared", mode, caller.Principal)
			}
		}
	}
	if list, _ := direct.List(t.Context(), ada, mcp.MethodToolsList); !list.CacheHint.Public {
		t.Error("the list of the mode direct is not shared")
	}
}

// TestToolsWithPagesStayInTheCodeList has a tool with a page, one whose page is none, and one without.
func TestToolsWithPagesStayInTheCodeList(t *testing.T) {
	for mode, want := range map[toolsearch.Mode][]string{
		toolsearch.Code:   {"a__show", "search_tools", "describe_tools"},
		toolsearch.Search: {"find_tools", "call_tool"},
	} {
		d := open(t, &fake{}, Options{Discovery: Discovery{Mode: mode}}, app("a", map[string]string{
			"show": `{"ui":{"resourceUri":"ui://page"}}`, "refresh": `{"ui":{"resourceUri":"https://page"}}`, "both": `{}`}))
		wantList(t, listed(t, d, ada, tools), want...)
	}
}
