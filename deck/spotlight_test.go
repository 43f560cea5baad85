package deck

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// TestFencedResults has who gets results marked as foreign text, on each way that a result takes.
func TestFencedResults(t *testing.T) {
	const answer = `{"content":[{"type":"text","text":"hi"}],"structuredContent":{"n":1.0}}`
	up := &fake{answer: func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(answer)}, nil
	}}
	agent := ada
	agent.Kind = drawbridge.Agent
	yes, no := true, false
	d := open(t, up, Options{Spotlight: func(c drawbridge.Caller) bool { return c.Principal == "bob" },
		SealKeys: masters})
	members := []Server{{ID: "a", ConfigHash: "row-a", Spotlight: &yes}, {ID: "b", ConfigHash: "row-b"},
		{ID: "c", ConfigHash: "row-c", Spotlight: &no}}
	if err := d.Configure(t.Context(), members); err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		l := legacyJobs(string(m.ID))
		l.ConfigHash = m.ConfigHash
		enrol(t, d, l)
	}
	bobs := stateful("bob")
	word := regexp.MustCompile(`TOOL_OUTPUT::[A-Z2-7]{26}::`)
	fenced := func(server, tool string) string {
		return `{"content":[{"type":"text","text":"[TOOL_OUTPUT::N::BEGIN server=` + server + ` tool=` + tool +
			`]\nhi\n[TOOL_OUTPUT::N::END]"}],"structuredContent":{"n":1.0}}`
	}
	for _, tt := range []struct {
		name   string
		caller drawbridge.Caller
		tool   string
		want   string
	}{
		{"the row says so", ada, "a__x", fenced("a", "x")},
		{"without a setting", ada, "b__x", answer},
		{"the deck says so", bobs, "b__x", fenced("b", "x")},
		{"the row says no", bobs, "c__x", answer},
		{"a model of our own", agent, "b__x", fenced("b", "x")},
		{"a model of our own, and the row says no", agent, "c__x", answer},
	} {
		got, err := d.Call(t.Context(), drawbridge.Call{Caller: tt.caller, Params: objects("name", tt.tool)[0]})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, word.ReplaceAllString(string(got.Raw), "TOOL_OUTPUT::N::")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	ticket := ticketOf("ada", taskFormOf(stateful("ada")), "a", "7")
	got, err := ask(t, d, stateful("ada"), mcp.MethodTasksResult, `{"taskId":"$T"}`, ticket)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(fenced("a", "task"), word.ReplaceAllString(got, "TOOL_OUTPUT::N::")); diff != "" {
		t.Errorf("the result of a task (-want +got):\n%s", diff)
	}
}

// A cellar keeps results, or does not.
type cellar struct {
	broken bool
	held   []HeldResult
}

func (c *cellar) Hold(_ context.Context, h HeldResult) (string, error) {
	if c.broken {
		return "", errors.New("no room")
	}
	c.held = append(c.held, h)
	return "k3f9qzab", nil
}

// TestHeldResults is IN-2: results in which rules are met pass as they are, are fenced with the rules named, or are
// held back, as the rows of their servers say. None that is held back reaches its caller, and none that could not be
// kept.
func TestHeldResults(t *testing.T) {
	answers := map[string]string{
		"plain":      `{"content":[{"type":"text","text":"hi"}],"structuredContent":{"n":1.0}}`,
		"text":       `{"content":[{"type":"text","text":"evil"}]}`,
		"structured": `{"content":[],"structuredContent":{"a":[{"b":"evil"}]}}`,
		"named":      `{"content":[],"structuredContent":{"evil":1}}`,
		"meta":       `{"content":[],"_meta":{"note":"evil"}}`,
		"error":      `{"content":[{"type":"text","text":"evil"}],"isError":true}`,
	}
	up := &fake{answer: func(_ drawbridge.ServerID, c drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(answers[rawjson.GetString(c.Params, "name")])}, nil
	}}
	c, p := &cellar{}, &pages{broken: -1}
	d := open(t, up, Options{Inspect: evil, ResultHolder: c, Audit: p})
	tools := []string{"plain", "text", "structured", "named", "meta", "error"}
	members := []Server{{ID: "a", ConfigHash: "row-a"}, {ID: "h", ConfigHash: "row-h", HoldResults: true}}
	if err := d.Configure(t.Context(), members); err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		l := listing(string(m.ID), tools...)
		l.ConfigHash = m.ConfigHash
		enrol(t, d, l)
	}
	ask := func(name string) (string, error) {
		got, err := d.Call(t.Context(), drawbridge.Call{Caller: ada, Params: objects("name", name)[0]})
		return string(got.Raw), err
	}
	for _, tool := range tools {
		if got, err := ask("a__" + tool); got != answers[tool] || err != nil {
			t.Errorf("a__%s: %s, %v", tool, got, err)
		}
		got, err := ask("h__" + tool)
		if tool == "plain" {
			if got != answers[tool] || err != nil {
				t.Errorf("h__%s: %s, %v", tool, got, err)
			}
			continue
		}
		wantFault(t, err, drawbridge.PolicyBlocked, "tools/call h__"+tool+
			": the call was made, and its answer is held back: it met r1 "+
			"(do not call this again: a person can read the answer with drawbridge shield results k3f9qzab)")
		want := []HeldResult{{Principal: "ada", Card: "h__" + tool, Method: mcp.MethodToolsCall, Server: "h",
			Rules: []string{"r1"}, Result: json.RawMessage(answers[tool])}}
		if diff := cmp.Diff(want, c.held); diff != "" || got != "" {
			t.Errorf("h__%s: %s; kept (-want +got):\n%s", tool, got, diff)
		}
		c.held = nil
	}
	c.broken, p.all = true, nil
	got, err := ask("h__text")
	wantFault(t, err, drawbridge.PolicyBlocked,
		"tools/call h__text: the call was made, and its answer is held back: it met r1 "+
			"(do not call this again: the result could not be stored; see the log of the gateway)")
	if got != "" || strings.Contains(err.Error(), "no room") {
		t.Errorf("what could not be kept: %s, %v", got, err)
	}
	var said []string
	for _, r := range p.taken() {
		said = append(said, string(r.Kind)+" "+r.Rule+" "+string(r.Outcome))
	}
	wantList(t, said, "call  ", "shield held ", "done  fault")
}

// TestHeldTasks has what a server says of tasks held back as its results are: in a task, in its result, in an error in
// the place of one, and in the list of tasks, which the others' are in all the same.
func TestHeldTasks(t *testing.T) {
	answers := map[string]string{
		mcp.MethodTasksGet:    `{"taskId":"7","status":"working","statusMessage":"evil"}`,
		mcp.MethodTasksResult: `{"content":[{"type":"text","text":"evil"}]}`,
		mcp.MethodTasksList:   `{"tasks":[{"taskId":"7","statusMessage":"evil"}]}`,
	}
	up := &fake{answer: func(server drawbridge.ServerID, c drawbridge.Call) (drawbridge.Result, error) {
		switch {
		case c.Method == mcp.MethodTasksCancel:
			return drawbridge.Result{}, &drawbridge.Fault{Code: drawbridge.ServerError, Step: "s",
				Err: errors.New("evil"), Raw: json.RawMessage(`{"code":1,"message":"evil"}`)}
		case server == "a":
			return drawbridge.Result{Raw: json.RawMessage(`{"tasks":[{"taskId":"8"}]}`)}, nil
		}
		return drawbridge.Result{Raw: json.RawMessage(answers[c.Method])}, nil
	}}
	c := &cellar{}
	d := open(t, up, Options{Inspect: evil, ResultHolder: c, SealKeys: masters})
	if err := d.Configure(t.Context(), []Server{{ID: "h", ConfigHash: "row-h", HoldResults: true, PerPrincipal: true},
		{ID: "a", ConfigHash: "row-a", PerPrincipal: true}}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"h", "a"} {
		l := legacyJobs(id)
		l.ConfigHash = "row-" + id
		enrol(t, d, l)
	}
	ada := stateful("ada")
	ticket := ticketOf("ada", taskFormOf(ada), "h", "7")
	for _, method := range []string{mcp.MethodTasksGet, mcp.MethodTasksResult, mcp.MethodTasksCancel} {
		got, err := ask(t, d, ada, method, `{"taskId":"$T"}`, ticket)
		if f := drawbridge.AsFault(err); err == nil || got != "" || f.Code != drawbridge.PolicyBlocked ||
			!strings.Contains(err.Error(), "held back") || len(c.held) != 1 {
			t.Errorf("%s: %s, %v; %d are kept", method, got, err, len(c.held))
		}
		c.held = nil
	}
	got, err := ask(t, d, ada, mcp.MethodTasksList, `{}`, ticketOf("ada", taskFormOf(ada), "a", "8"))
	if diff := cmp.Diff(`{"tasks":[{"taskId":"$T"}]}`, got); diff != "" || err != nil || len(c.held) != 1 {
		t.Errorf("the list (-want +got):\n%s%v; %d are kept", diff, err, len(c.held))
	}
}

// evil is a look that one word meets.
func evil(text string) (string, []string) {
	if strings.Contains(text, "evil") {
		return text, []string{"r1"}
	}
	return text, nil
}

// TestTheResultOfARowThatLeft has a server's row taken out while a call of it is decided on: what the row said of its
// results no one knows any more, so they are fenced, and held back where they meet a rule.
func TestTheResultOfARowThatLeft(t *testing.T) {
	answer := `{"content":[{"type":"text","text":"evil"}]}`
	up := &fake{answer: func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(answer)}, nil
	}}
	c := &cellar{}
	var d *Deck
	leaves := guard(func(Question) drawbridge.Verdict {
		if err := d.Configure(t.Context(), nil); err != nil {
			t.Error(err)
		}
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	})
	d = open(t, up, Options{Inspect: evil, ResultHolder: c, Guards: []Guard{leaves}})
	call := func() (string, error) {
		if err := d.Configure(t.Context(), []Server{{ID: "h", ConfigHash: "row-h", HoldResults: true}}); err != nil {
			t.Fatal(err)
		}
		l := listing("h", "x")
		l.ConfigHash = "row-h"
		enrol(t, d, l)
		got, err := d.Call(t.Context(), drawbridge.Call{Caller: ada, Params: objects("name", "h__x")[0]})
		return string(got.Raw), err
	}
	if got, err := call(); err == nil || !strings.Contains(err.Error(), "held back") || got != "" || len(c.held) != 1 {
		t.Errorf("%s, %v; %d are kept", got, err, len(c.held))
	}
	answer = `{"content":[{"type":"text","text":"hi"}]}`
	if got, err := call(); err != nil || !strings.Contains(got, "TOOL_OUTPUT::") {
		t.Errorf("%s, %v: want a fence", got, err)
	}
}
