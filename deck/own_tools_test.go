package deck

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ownRead is a tool of Drawbridge that answers with its name.
var ownRead = card{"read", func() (drawbridge.Result, error) {
	return drawbridge.Result{Raw: json.RawMessage(`{"own":"read"}`)}, nil
}}

// showing is a guard that shows own tools to one caller.
type showing struct{}

func (showing) Decide(context.Context, Question) drawbridge.Verdict {
	return drawbridge.Verdict{Effect: drawbridge.Allow}
}
func (showing) Hides(drawbridge.Caller, string, drawbridge.Spec) bool { return false }
func (showing) CallerClass(c drawbridge.Caller) string                { return c.Principal }
func (showing) HidesAnything() bool                                   { return true }
func (showing) ShowsOwnTools(c drawbridge.Caller) bool                { return c.Principal == "ada" }

// TestOwnToolsAreInside has a server with a tool of the same name as one of Drawbridge's own.
func TestOwnToolsAreInside(t *testing.T) {
	outside := drawbridge.Caller{Kind: drawbridge.External, Principal: "ada", Scopes: []drawbridge.Scope{"*"}}
	author, agent := outside, outside
	author.Kind, agent.Kind = drawbridge.Author, drawbridge.Agent
	const server, own, unknown = `{}`, `{"own":"read"}`, ""
	for _, tt := range []struct {
		name    string
		options Options
		caller  drawbridge.Caller
		list    string
		results map[string]string
	}{
		{"outside", Options{}, outside, "[fs__read]",
			map[string]string{"read": server, "fs__read": server, "drawbridge__read": unknown}},
		{"outside, bare", Options{Naming: BareNames}, outside, "[read]",
			map[string]string{"read": server, "fs__read": server, "drawbridge__read": unknown}},
		{"author", Options{}, author, "[fs__read read]", map[string]string{"read": own, "fs__read": server}},
		{"agent", Options{}, agent, "[fs__read read]", map[string]string{"read": own, "fs__read": server}},
		{"author, bare", Options{Naming: BareNames}, author, "[read drawbridge__read]",
			map[string]string{"read": server, "drawbridge__read": own}},
		{"shown", Options{Guards: []Guard{showing{}}}, outside, "[fs__read read]",
			map[string]string{"read": own, "fs__read": server}},
		{"shown, bare", Options{Guards: []Guard{showing{}}, Naming: BareNames}, outside, "[read drawbridge__read]",
			map[string]string{"read": server, "drawbridge__read": own}},
		{"shown to others", Options{Guards: []Guard{showing{}}}, drawbridge.Caller{Kind: drawbridge.External,
			Principal: "bob", Scopes: []drawbridge.Scope{"*"}}, "[fs__read]", map[string]string{"read": server}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.Tools = []drawbridge.Card{ownRead}
			d := open(t, &fake{}, tt.options, listing("fs", "read"))
			if got := fmt.Sprint(listed(t, d, tt.caller, tools)); got != tt.list {
				t.Errorf("listed: %s; want %s", got, tt.list)
			}
			specs := []drawbridge.CardName{}
			for _, spec := range d.Cards(tt.caller) {
				specs = append(specs, spec.Name)
			}
			if got := fmt.Sprint(specs); got != tt.list {
				t.Errorf("callable: %s", got)
			}
			for name, want := range tt.results {
				result, err := d.Call(t.Context(), drawbridge.Call{Caller: tt.caller,
					Params: rawjson.Apply(nil, rawjson.Put(rawjson.Quote(name), "name"))})
				if string(result.Raw) != want || (err != nil) != (want == unknown) {
					t.Errorf("%s: %s, %v; want %q", name, result.Raw, err, want)
				}
			}
		})
	}
}

// TestResultsAreOnTheReadTrail calls a server's tool, one of Drawbridge's own, and one that does not exist.
func TestResultsAreOnTheReadTrail(t *testing.T) {
	trail := NewReadTrail()
	d := open(t, &fake{}, Options{ReadTrail: trail, Tools: []drawbridge.Card{ownRead}}, listing("fs", "list"))
	caller := drawbridge.Caller{Kind: drawbridge.Author, Scopes: []drawbridge.Scope{"*"}, Session: "one"}
	var listed drawbridge.Result
	for _, name := range []string{"fs__list", "read", "fs__list", "gone"} {
		result, err := d.Call(t.Context(), drawbridge.Call{Caller: caller, // one of them fails, as it must
			Params: rawjson.Apply(nil, rawjson.Put(rawjson.Quote(name), "name"))})
		if name == "fs__list" && err == nil {
			listed = result
		}
	}
	got, dropped := trail.Sources(RunOf(caller))
	if want := (Source{Kind: "result", Name: "fs__list", Server: "fs", Digest: sha256.Sum256(listed.Raw)}); len(got) != 1 ||
		got[0] != want || dropped != 0 {
		t.Errorf("%+v, %d dropped; want %+v", got, dropped, want)
	}
}

// A foreignPage is a card that returns texts of others.
type foreignPage struct{ card }

func (foreignPage) ReturnsForeignTexts() bool { return true }

// TestForeignCardsAreFenced has a card of Drawbridge whose results are marked as those of servers are, and one whose are
// not.
func TestForeignCardsAreFenced(t *testing.T) {
	answer := func() (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"hi"}]}`)}, nil
	}
	d := open(t, &fake{}, Options{Tools: []drawbridge.Card{foreignPage{card{"fetch", answer}}, card{"read", answer}},
		Spotlight: func(c drawbridge.Caller) bool { return c.Principal == "bob" }})
	author := drawbridge.Caller{Kind: drawbridge.Author, Principal: "ada", Scopes: []drawbridge.Scope{"*"}}
	agent, marked := author, author
	agent.Kind, marked.Principal = drawbridge.Agent, "bob"
	for _, tt := range []struct {
		caller drawbridge.Caller
		tool   string
		fenced bool
	}{{author, "fetch", false}, {marked, "fetch", true}, {agent, "fetch", true}, {marked, "read", false}, {agent, "read", false}} {
		got, err := d.Call(t.Context(), drawbridge.Call{Caller: tt.caller, Params: objects("name", tt.tool)[0]})
		if err != nil || strings.Contains(string(got.Raw), "server=drawbridge tool=fetch") != tt.fenced {
			t.Errorf("%s %s: %s, %v", tt.caller.Kind, tt.tool, got.Raw, err)
		}
	}
}
