package cards

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// table is a deck that shows the same cards to every caller who is somebody.
type table []drawbridge.Spec

func (t table) Cards(caller drawbridge.Caller) []drawbridge.Spec {
	if caller.Kind == drawbridge.Nobody {
		return nil
	}
	return t
}

var ada = drawbridge.Caller{
	Kind: drawbridge.External, Principal: "ada", Scopes: []drawbridge.Scope{"mcp:github", "mcp:fs"},
	Client: json.RawMessage(`{"name":"cursor","version":"1"}`),
}

// TestCatalogue walks the catalogue: what is shipped keeps to the rules of what is shipped.
func TestCatalogue(t *testing.T) {
	legal := regexp.MustCompile(`^drawbridge_[a-z_]{1,34}$`)
	seen := map[drawbridge.CardName]bool{}
	for _, c := range Catalogue(table{}, house{}) {
		s := c.Spec()
		t.Run(string(s.Name), func(t *testing.T) {
			if seen[s.Name] || !legal.MatchString(string(s.Name)) || s.Tool != string(s.Name) || s.Server != "" {
				t.Errorf("name %q, tool %q, server %q", s.Name, s.Tool, s.Server)
			}
			seen[s.Name] = true
			if n := len(s.Summary); n < 20 || n > 120 {
				t.Errorf("summary %q has %d characters", s.Summary, n)
			}
			if s.Title == "" || s.Title != rawjson.GetString(s.Definition, "title") {
				t.Errorf("title %q", s.Title)
			}
			if err := rawjson.Valid(s.Definition); err != nil {
				t.Fatal(err)
			}
			reads := string(rawjson.Get(s.Definition, "annotations", "readOnlyHint")) == "true"
			if free := len(s.Scopes) == 0; reads != free || s.Sandbox != free {
				t.Errorf("it reads only: %v, scopes %v, in the sandbox: %v", reads, s.Scopes, s.Sandbox)
			}
			if s.Crossing != nil {
				t.Error("a control card writes nothing")
			}
			input, output := rawjson.Get(s.Definition, "inputSchema"), rawjson.Get(s.Definition, "outputSchema")
			examples := 0
			for args := range rawjson.Elements(rawjson.Get(input, "examples")) {
				examples++
				if why := check(input, args); why != "" {
					t.Errorf("example %s: %s", args, why)
				}
				result, err := c.Run(t.Context(), callWith(args))
				if err != nil {
					t.Fatal(err)
				}
				if rawjson.Get(result.Raw, "isError") != nil || rawjson.GetString(first(result.Raw), "text") == "" {
					t.Errorf("example %s gives %s", args, result.Raw)
				}
				if why := check(output, rawjson.Get(result.Raw, "structuredContent")); why != "" {
					t.Errorf("example %s gives %s: %s", args, result.Raw, why)
				}
			}
			if examples == 0 {
				t.Error("no example arguments")
			}
		})
	}
}

func callWith(args json.RawMessage) drawbridge.Call {
	return drawbridge.Call{Caller: ada, Method: mcp.MethodToolsCall, Params: rawjson.Apply(nil,
		rawjson.Put(args, "arguments"))}
}

func first(result json.RawMessage) json.RawMessage {
	for block := range rawjson.Elements(rawjson.Get(result, "content")) {
		return block
	}
	return nil
}

// check says what is wrong with a value by a schema, or "". It knows the keywords that the catalogue uses.
func check(schema, value json.RawMessage) string {
	var s struct {
		Type                 any
		Properties           map[string]json.RawMessage
		Required             []string
		Items                json.RawMessage
		AdditionalProperties *bool
	}
	var v any
	if err := json.Unmarshal(schema, &s); err != nil {
		return err.Error()
	}
	if err := json.Unmarshal(value, &v); err != nil {
		return err.Error()
	}
	kinds, ok := s.Type.([]any)
	if !ok {
		kinds = []any{s.Type}
	}
	kind := map[bool]string{true: "object"}[value[0] == '{']
	switch v := v.(type) {
	case nil:
		kind = "null"
	case string:
		kind = "string"
	case []any:
		kind = "array"
	case float64:
		kind = "integer"
		if v != float64(int64(v)) {
			kind = "number"
		}
	}
	if !slices.Contains(kinds, any(kind)) {
		return fmt.Sprintf("%s is %s, not %v", value, kind, s.Type)
	}
	for _, name := range s.Required {
		if rawjson.Get(value, name) == nil {
			return "no " + name
		}
	}
	for m := range rawjson.Members(value) {
		name, _ := rawjson.DecodeString(m.Name)
		property := s.Properties[name]
		if property == nil && s.AdditionalProperties != nil && !*s.AdditionalProperties {
			return "an unknown " + name
		}
		if property != nil {
			if why := check(property, m.Value); why != "" {
				return name + ": " + why
			}
		}
	}
	for element := range rawjson.Elements(value) {
		if why := check(s.Items, element); why != "" {
			return why
		}
	}
	return ""
}

func TestToolsCardFilters(t *testing.T) {
	deck := table{
		{Name: "drawbridge_tools", Summary: "List the tools."},
		{Name: "github__create_issue", Server: "github", Title: "Create issue", Summary: "Opens an issue."},
		{Name: "fs__read_file", Server: "fs", Summary: "Reads a file."},
		{Name: "fs__list_issues", Server: "fs", Summary: "Odd, but legal."},
	}
	tools := Catalogue(deck, house{})[0]
	for _, tt := range []struct{ args, want string }{
		{`{}`, `[drawbridge_tools github__create_issue fs__read_file fs__list_issues]`},
		{`{"server":"fs"}`, `[fs__read_file fs__list_issues]`},
		{`{"server":"drawbridge"}`, `[drawbridge_tools]`},
		{`{"query":"ISSUE open"}`, `[github__create_issue]`},
		{`{"query":"issue","server":"fs"}`, `[fs__list_issues]`},
		{`{"query":"nothing like it"}`, `[]`},
	} {
		result, err := tools.Run(t.Context(), callWith(json.RawMessage(tt.args)))
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Tools []struct{ Name string }
			Total int
		}
		if err := json.Unmarshal(rawjson.Get(result.Raw, "structuredContent"), &got); err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, row := range got.Tools {
			names = append(names, row.Name)
		}
		if fmt.Sprint(names) != tt.want || got.Total != len(names) {
			t.Errorf("%s: %v of %d, want %s", tt.args, names, got.Total, tt.want)
		}
	}
	result, err := tools.Run(t.Context(), callWith(json.RawMessage(`{"server":7}`)))
	if err != nil || string(rawjson.Get(result.Raw, "isError")) != "true" {
		t.Errorf("a number for a server: %s, %v; want a tool error", result.Raw, err)
	}
	nobody := callWith(json.RawMessage(`{}`))
	nobody.Caller = drawbridge.Caller{}
	result, _ = tools.Run(t.Context(), nobody)
	if got := string(rawjson.Get(result.Raw, "structuredContent")); got != `{"tools":[],"total":0}` {
		t.Errorf("nobody sees %s", got)
	}
}

func TestToolsCardSaysHowManyMore(t *testing.T) {
	deck := make(table, maxListedTools+3)
	for i := range deck {
		deck[i] = drawbridge.Spec{Name: drawbridge.CardName(fmt.Sprintf("s__t%d", i)), Server: "s"}
	}
	result, err := Catalogue(deck, house{})[0].Run(context.Background(), callWith(json.RawMessage(`{}`)))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(rawjson.Get(result.Raw, "structuredContent", "total")); got != "203" {
		t.Errorf("total %s, want 203", got)
	}
	n := 0
	for range rawjson.Elements(rawjson.Get(result.Raw, "structuredContent", "tools")) {
		n++
	}
	if n != maxListedTools {
		t.Errorf("%d rows, want %d", n, maxListedTools)
	}
}

func TestScopesCard(t *testing.T) {
	result, err := Catalogue(table{}, house{})[1].Run(t.Context(), callWith(json.RawMessage(`{}`)))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"content":[{"type":"text","text":"You are \"ada\" (external). Scopes: mcp:github, mcp:fs."}],` +
		`"structuredContent":{"kind":"external","name":"ada","client":"cursor","scopes":["mcp:github","mcp:fs"]}}`
	if diff := cmp.Diff(want, string(result.Raw)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestWorkspaceCardSaysNone(t *testing.T) {
	result, err := Catalogue(table{}, house{})[2].Run(t.Context(), callWith(json.RawMessage(`{}`)))
	want := `{"content":[{"type":"text","text":"No workspace is open."}],"structuredContent":{"workspace":null}}`
	if err != nil || string(result.Raw) != want {
		t.Errorf("result %s, %v; want %s", result.Raw, err, want)
	}
}
