package cards

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// table is a deck that shows the same cards to every known caller.
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

// TestCatalogue checks that every shipped card keeps the rules for shipped cards.
func TestCatalogue(t *testing.T) {
	legal := regexp.MustCompile(`^drawbridge_[a-z_]{1,34}$`)
	seen := map[drawbridge.CardName]bool{}
	for _, c := range ControlCards(table{}, house{}, nil) {
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
				if err := check(input, args); err != nil {
					t.Errorf("example %s: %s", args, err)
				}
				result, err := c.Run(t.Context(), callWith(args))
				if err != nil {
					t.Fatal(err)
				}
				if rawjson.Get(result.Raw, "isError") != nil || rawjson.GetString(first(result.Raw), "text") == "" {
					t.Errorf("example %s returns %s", args, result.Raw)
				}
				if err := check(output, rawjson.Get(result.Raw, "structuredContent")); err != nil {
					t.Errorf("example %s returns %s: %s", args, result.Raw, err)
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

// check returns the error of validating a value against a schema.
func check(schema, value json.RawMessage) error {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	return resolved.Validate(v)
}

var update = flag.Bool("update", false, "rewrite the files of definitions")

// TestCardSnapshots compares the definition of every card with its file.
func TestCardSnapshots(t *testing.T) {
	all := append(ControlCards(table{}, house{}, nil), NewRunPythonCard(nil, nil, nil, sandbox.Limits{}, ScriptResults{}, nil))
	of, err := WorkspaceCards(nil, deck.Context{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(all, of...) {
		var got bytes.Buffer
		if err := json.Indent(&got, generatedDefinition(c), "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
		path := filepath.Join("definitions", string(c.Spec().Name)+".json")
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v; run go test ./cards -update", err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got); run go test ./cards -update:\n%s", path, diff)
		}
	}
}

// TestArguments shows how arguments that do not match the schema are refused.
func TestArguments(t *testing.T) {
	type input struct {
		Name  string   `json:"name"`
		Count int      `json:"count,omitempty"`
		Tags  []string `json:"tags,omitempty"`
		Deep  struct {
			On bool `json:"on,omitempty"`
		} `json:"deep,omitzero"`
	}
	card := New(Description[input]{Name: "c"}, func(_ context.Context, _ drawbridge.Call,
		in input) (Answer[input], error) {
		return Answer[input]{Text: "ok " + in.Name, Value: in}, nil
	})
	for _, tt := range []struct{ args, want string }{
		{`{"name":"a","count":2,"tags":["x"],"deep":{"on":true}}`, "ok a"},
		{`[]`, "arguments must be a JSON object"},
		{`null`, "arguments must be a JSON object"},
		{`"name"`, "arguments must be a JSON object"},
		{`{}`, `argument "name" is missing; it must be a string`},
		{`{"name":null}`, `argument "name" must be a string`},
		{`{"name":7}`, `argument "name" must be a string`},
		{`{"Name":"a"}`, `unknown argument "Name"; the arguments are "count", "deep", "name", "tags"`},
		{`{"name":"a","count":"2"}`, `argument "count" must be an integer`},
		{`{"name":"a","count":1.5}`, `argument "count" must be an integer`},
		{`{"name":"a","tags":"x"}`, `argument "tags" must be an array`},
		{`{"name":"a","deep":{"on":1}}`, `argument "deep.on" must be a boolean`},
	} {
		result, err := card.Run(t.Context(), callWith(json.RawMessage(tt.args)))
		if err != nil {
			t.Fatal(err)
		}
		if got := rawjson.GetString(first(result.Raw), "text"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.args, got, tt.want)
		}
	}
}

func TestToolsCardFilters(t *testing.T) {
	deck := table{
		{Name: "drawbridge_tools", Summary: "List the tools."},
		{Name: "github__create_issue", Server: "github", Title: "Create issue", Summary: "Opens an issue."},
		{Name: "fs__read_file", Server: "fs", Summary: "Reads a file."},
		{Name: "fs__list_issues", Server: "fs", Summary: "Odd, but legal."},
	}
	tools := ControlCards(deck, house{}, nil)[0]
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
	stranger := callWith(json.RawMessage(`{}`))
	stranger.Caller = drawbridge.Caller{}
	result, _ = tools.Run(t.Context(), stranger)
	if got := string(rawjson.Get(result.Raw, "structuredContent")); got != `{"tools":[],"total":0}` {
		t.Errorf("no one sees %s", got)
	}
}

func TestToolsCardTruncates(t *testing.T) {
	deck := make(table, maxListedTools+3)
	for i := range deck {
		deck[i] = drawbridge.Spec{Name: drawbridge.CardName(fmt.Sprintf("s__t%d", i)), Server: "s"}
	}
	result, err := ControlCards(deck, house{}, nil)[0].Run(context.Background(), callWith(json.RawMessage(`{}`)))
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
	result, err := ControlCards(table{}, house{}, nil)[1].Run(t.Context(), callWith(json.RawMessage(`{}`)))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"content":[{"type":"text","text":"You are \"ada\" (external). Scopes: mcp:github, mcp:fs."}],` +
		`"structuredContent":{"kind":"external","name":"ada","client":"cursor","scopes":["mcp:github","mcp:fs"]}}`
	if diff := cmp.Diff(want, string(result.Raw)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestWorkspaceCardReturnsNull(t *testing.T) {
	result, err := ControlCards(table{}, house{}, nil)[2].Run(t.Context(), callWith(json.RawMessage(`{}`)))
	want := `{"content":[{"type":"text","text":"No workspace is open."}],"structuredContent":{"workspace":null}}`
	if err != nil || string(result.Raw) != want {
		t.Errorf("result %s, %v; want %s", result.Raw, err, want)
	}
}
