package deck

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// app is a listing of a server whose tools have this "_meta" each, and that lists these resources.
func app(server string, tools map[string]string, uris ...string) drawbridge.Listing {
	l := library(server, uris, nil)
	for _, name := range []string{"show", "refresh", "both"} {
		if meta, ok := tools[name]; ok {
			l.Tools = append(l.Tools,
				json.RawMessage(fmt.Sprintf(`{"name":%q,"_meta":%s,"inputSchema":{"type":"object"}}`, name, meta)))
		}
	}
	return l
}

// definitions returns the tools as the caller sees them.
func definitions(t *testing.T, d *Deck) (out []string) {
	t.Helper()
	list, err := d.List(t.Context(), ada, mcp.MethodToolsList)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range list.Items {
		out = append(out, string(rawjson.Get(raw, "_meta")))
	}
	return out
}

func TestTheToolsOfTwoServersShowTheirOwnPages(t *testing.T) {
	const (
		nested = `{"n":9007199254740993,"ui":{"resourceUri":"ui://page","csp":{}}}`
		flat   = `{"ui/resourceUri":"ui://page","x":[1.0]}`
		both   = `{"ui":{"resourceUri":"ui://page"},"ui/resourceUri":"ui://page"}`
		two    = `{"ui":{"resourceUri":"ui://mine"},"ui/resourceUri":"ui://page"}`
		other  = `{"ui":{"resourceUri":"https://example.com/page"}}`
	)
	const q = "ui://drawbridge+b/page"
	for _, tt := range []struct {
		name   string
		a, b   drawbridge.Listing
		naming NamingStyle
		want   []string // the _meta of b's tools
		listed []string
	}{
		{"both list it", app("a", nil, "ui://page"), app("b", map[string]string{"show": nested},
			"ui://page"), QualifiedNames,
			[]string{strings.Replace(nested, "ui://page", q, 1)}, []string{"ui://page", q}},
		{"the flat key", app("a", nil, "ui://page"), app("b", map[string]string{"show": flat},
			"ui://page"), QualifiedNames,
			[]string{strings.Replace(flat, "ui://page", q, 1)}, []string{"ui://page", q}},
		{"both keys", app("a", nil, "ui://page"), app("b", map[string]string{"show": both}, "ui://page"), MCPNames,
			[]string{strings.ReplaceAll(both, "ui://page", q)}, []string{"ui://page", q}},
		{"the later server does not list it", app("a", nil, "ui://page"), app("b", map[string]string{"show": two}),
			QualifiedNames,
			[]string{strings.Replace(two, "ui://page", q, 1)}, []string{"ui://page"}},
		{"neither lists it", app("a", map[string]string{"show": flat}), app("b", map[string]string{"show": nested}),
			QualifiedNames,
			[]string{flat, strings.Replace(nested, "ui://page", q, 1)}, []string{}},
		{"no clash", app("a", nil, "ui://other"), app("b", map[string]string{"show": both},
			"ui://page"), QualifiedNames,
			[]string{both}, []string{"ui://other", "ui://page"}},
		{"no page", app("a", nil, "https://example.com/page"), app("b", map[string]string{"show": other}),
			QualifiedNames,
			[]string{other}, []string{"https://example.com/page"}},
		{"a URI made up to look like another server's",
			app("a", map[string]string{"show": `{"ui/resourceUri":"ui://drawbridge+b/page"}`},
				"ui://drawbridge+b/page"),
			app("b", map[string]string{"show": nested}, "ui://page"), QualifiedNames,
			[]string{`{"ui/resourceUri":"ui://drawbridge+a/drawbridge+b/page"}`, nested},
			[]string{"ui://drawbridge+a/drawbridge+b/page", "ui://page"}},
		{"bare names", app("a", nil, "ui://page"), app("b", map[string]string{"show": nested}, "ui://page"), BareNames,
			[]string{nested}, []string{"ui://page"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := open(t, &fake{}, Options{Naming: tt.naming}, tt.a, tt.b)
			wantList(t, definitions(t, d), tt.want...)
			wantList(t, listed(t, d, ada, resources), tt.listed...)
		})
	}
}

func TestAPageComesFromTheServerOfItsTool(t *testing.T) {
	up := &fake{answer: func(_ drawbridge.ServerID, c drawbridge.Call) (drawbridge.Result, error) {
		uri := rawjson.GetString(c.Params, "uri")
		return drawbridge.Result{Raw: json.RawMessage(
			fmt.Sprintf(`{"contents":[{"uri":%q,"text":"ui://page"},{"uri":"ui://part"}],"n":1.0}`, uri))}, nil
	}}
	meta := map[string]string{"show": `{"ui":{"resourceUri":"ui://page"}}`}
	d := open(t, up, Options{}, app("a", meta), app("b", meta))
	for _, tt := range []struct{ uri, heard, want string }{
		{"ui://page", `a resources/read {"uri":"ui://page"}`,
			`{"contents":[{"uri":"ui://page","text":"ui://page"},{"uri":"ui://part"}],"n":1.0}`},
		{"ui://drawbridge+b/page", `b resources/read {"uri":"ui://page"}`,
			`{"contents":[{"uri":"ui://drawbridge+b/page","text":"ui://page"},{"uri":"ui://drawbridge+b/part"}],"n":1.0}`},
		{"drawbridge+b:ui://page", `b resources/read {"uri":"ui://page"}`,
			`{"contents":[{"uri":"drawbridge+b:ui://page","text":"ui://page"},{"uri":"ui://drawbridge+b/part"}],"n":1.0}`},
	} {
		result, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: mcp.MethodResourcesRead,
			Params: objects("uri", tt.uri)[0]})
		if err != nil {
			t.Fatal(err)
		}
		wantList(t, up.told(), tt.heard)
		if diff := cmp.Diff(tt.want, string(result.Raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.uri, diff)
		}
	}
	want := []NameClash{{Kind: "resource", Name: "ui://page", Winner: "a", Tool: "ui://page",
		Listed: "ui://drawbridge+b/page"}}
	if diff := cmp.Diff(want, d.ServerSummaries()[1].Clashes); diff != "" {
		t.Errorf("clashes (-want +got):\n%s", diff)
	}
	if got := d.ServerSummaries()[1].Resources; got != 0 {
		t.Errorf("%d resources are said to be listed, and none is", got)
	}
	// To bob, who may not know of a, this is a URI like any other, and b the only server that may have it.
	if _, err := d.Do(t.Context(), drawbridge.Call{Caller: bob, Method: mcp.MethodResourcesRead, Params: objects("uri",
		"ui://drawbridge+a/page")[0]}); err != nil {
		t.Error(err)
	}
	wantList(t, up.told(), `b resources/read {"uri":"ui://drawbridge+a/page"}`)
}

// TestAPageIsUndressedWhenTheClashIsGone watches a definition go back to the bytes that its server sent.
func TestAPageIsUndressedWhenTheClashIsGone(t *testing.T) {
	const meta = `{"ui":{"resourceUri":"ui://page"}}`
	d := open(t, &fake{}, Options{}, app("a", nil, "ui://page"), app("b", map[string]string{"show": meta}, "ui://page"))
	changes := 0
	defer d.OnEvent(func(e Event) {
		if e.Kind == ToolsChanged {
			changes++
		}
	})()
	enrol(t, d, app("a", nil, "ui://elsewhere"))
	wantList(t, definitions(t, d), meta)
	enrol(t, d, app("a", nil, "ui://page"))
	wantList(t, definitions(t, d), meta) // b has the URI now, and keeps it
	if changes != 1 {
		t.Errorf("the tools are said to have changed %d times, want 1", changes)
	}
}

func TestAnAppCallsItsToolsByTheirOwnNames(t *testing.T) {
	const only, shared = `{"ui":{"visibility":["app"]}}`, `{"ui":{"visibility":["model","app"]}}`
	for _, naming := range []NamingStyle{QualifiedNames, MCPNames, BareNames} {
		t.Run(string(naming), func(t *testing.T) {
			up := &fake{}
			d := open(t, up, Options{Naming: naming},
				app("a", map[string]string{"show": shared, "both": only}),
				app("b", map[string]string{"refresh": only, "both": shared}),
				listing("c", "b__refreshed", "refresh2"))
			for own, want := range map[string]string{"refresh": `b tools/call {"name":"refresh"}`,
				"show": `a tools/call {"name":"show"}`} {
				if err := call(t, d, ada, own); err != nil {
					t.Errorf("%s: %v", own, err)
				}
				wantList(t, up.told(), want)
			}
			if naming == BareNames {
				return // of two bare names the first is the name
			}
			wantFault(t, call(t, d, ada, "both"), drawbridge.NotFound, "unknown tool both")
			if err := call(t, d, bob, "both"); err != nil {
				t.Errorf("bob, who sees one of the two: %v", err)
			}
		})
	}
}

func TestToolsForAppsOnlyAreMarked(t *testing.T) {
	for _, tt := range []struct {
		meta string
		want bool
	}{
		{`{"ui":{"visibility":["app"]}}`, true},
		{`{"ui":{"visibility":["app","app"]}}`, true},
		{`{"ui":{"visibility":["model","app"]}}`, false},
		{`{"ui":{"visibility":[]}}`, false},
		{`{"ui":{"visibility":"app"}}`, false},
		{`{"ui":{"visibility":["app",1]}}`, false},
		{`{"ui":{}}`, false},
		{`7`, false},
	} {
		d := open(t, &fake{}, Options{}, app("a", map[string]string{"show": tt.meta}))
		spec, ok := d.FindCard(ada, "a__show")
		if !ok || spec.AppOnly != tt.want {
			t.Errorf("%s: for apps only: %t, want %t (found: %t)", tt.meta, spec.AppOnly, tt.want, ok)
		}
	}
}
