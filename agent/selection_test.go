package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/google/go-cmp/cmp"
)

func names(tools []drawbridge.ToolDefinition) (all []string) {
	for _, t := range tools {
		all = append(all, string(t.Name))
	}
	return all
}

// TestToolsKeepTheirPlace has tools that come in another order each turn: the model sees the known ones first, as
// before.
func TestToolsKeepTheirPlace(t *testing.T) {
	turns := [][]drawbridge.CardName{{"a", "b"}, {"c", "b", "a"}, {"b", "d", "a"}, {"a", "b", "c", "d"}}
	n := 0
	var known [][]drawbridge.CardName
	tools := &box{choose: func(_ agent.Identity, _ string, seen []drawbridge.CardName) []drawbridge.ToolDefinition {
		known = append(known, seen)
		n++
		return definitions(turns[n-1]...)
	}}
	history := agent.NewMemoryHistory()
	model := answers(calls("a"), calls("b"), says("x"), says("y"))
	run(t, open(t, agent.Options{Model: model, Tools: tools, History: history}), "x", agent.Completed)
	// A resumed session knows what the model has seen.
	run(t, open(t, agent.Options{Model: model, Tools: tools, History: history}), "x", agent.Completed)
	var got [][]string
	for _, r := range model.requests {
		got = append(got, names(r.Tools))
	}
	want := [][]string{{"a", "b"}, {"a", "b", "c"}, {"a", "b", "d"}, {"a", "b", "c", "d"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]drawbridge.CardName{nil, {"a", "b"}, {"a", "b", "c"}, {"a", "b", "c", "d"}}, known); diff != "" {
		t.Error(diff)
	}
}

// TestDeferredTools: only a provider with deferred tools gets them. A call of one is made for every model.
func TestDeferredTools(t *testing.T) {
	for _, deferred := range []bool{true, false} {
		tools := &box{choose: func(agent.Identity, string, []drawbridge.CardName) []drawbridge.ToolDefinition {
			all := definitions("search", "rare")
			all[1].Deferred = true
			return all
		}}
		model := answers(calls("rare"), says("x"))
		model.info.DeferredTools = deferred
		run(t, open(t, agent.Options{Model: model, Tools: tools}), "x", agent.Completed)
		want := []string{"search"}
		if deferred {
			want = append(want, "rare")
		}
		if diff := cmp.Diff(want, names(model.requests[0].Tools)); diff != "" || len(tools.made) != 1 {
			t.Error(diff, tools.made)
		}
	}
}

// TestPrefixes holds that a request begins with the bytes of the request before, within a run, between runs, and after
// the session was resumed, whatever texts and arguments contain.
func TestPrefixes(t *testing.T) {
	tools := &box{call: func(context.Context, agent.Identity, drawbridge.ToolCall, func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		o := textOutcome("<b> & \u2028 \xff")
		o.Fenced = true
		return o, nil
	}, briefing: agent.Briefing{Servers: []agent.ServerBriefing{{Name: "srv", Tools: 1, Instructions: "text"}}}}
	first := calls(`echo {"a" : "<&>\u003c", "b":1e400}`, `echo {"a`)
	first.Message.Parts = append(first.Message.Parts, drawbridge.MessagePart{Thinking: &drawbridge.Thinking{Text: "a\xffb",
		Provider: json.RawMessage(`{ "signature" : "<x>" }`), Model: "test/script"}}, drawbridge.MessagePart{Text: "\xc3("})
	model := answers(first, says("a"), calls("echo"), says("b"), calls("echo"), says("c"))
	dir := t.TempDir()
	for _, text := range []string{"one", "two", "three"} {
		history, err := agent.OpenHistory(dir, "s1")
		if err != nil {
			t.Fatal(err)
		}
		s, err := agent.New(t.Context(), agent.Options{Model: model, Tools: tools, History: history})
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, text, agent.Completed)
		if err := history.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range model.requests[1:] {
		before := model.requests[i]
		if before.Instructions != r.Instructions {
			t.Errorf("request %d has other instructions:\n%s\n%s", i+1, before.Instructions, r.Instructions)
		}
		if before.CacheKey != r.CacheKey || r.CacheKey == "" {
			t.Errorf("request %d has the cache key %q", i+1, r.CacheKey)
		}
		was, is := encoded(t, before), encoded(t, r)
		if !strings.HasPrefix(is, was) {
			t.Errorf("request %d does not begin as the one before:\n%s\n%s", i+1, was, is)
		}
	}
}

// encoded returns the tools and messages of a request as text; raw parts are copied as they are.
func encoded(t *testing.T, r drawbridge.ModelRequest) string {
	t.Helper()
	var b strings.Builder
	for _, tool := range r.Tools {
		b.WriteString(string(tool.Name) + tool.Description + string(tool.InputSchema) + "\n")
	}
	for _, m := range r.Messages {
		b.WriteString(string(m.Role) + "\n")
		for _, p := range m.Parts {
			b.WriteString(p.Text)
			if p.Thinking != nil {
				b.WriteString(p.Thinking.Text + string(p.Thinking.Provider) + p.Thinking.Model)
			}
			if p.ToolCall != nil {
				b.WriteString(p.ToolCall.ID + string(p.ToolCall.Name) + string(p.ToolCall.Arguments))
			}
			if p.ToolResult != nil {
				b.WriteString(p.ToolResult.CallID + p.ToolResult.Text)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// TestModelThatSearches has a model that searches for tools itself: it is sent all tools, and later ones as deferred and
// at the end, so that each request begins with the tools of the request before.
func TestModelThatSearches(t *testing.T) {
	turn := 0
	tools := &box{choose: func(_ agent.Identity, _ string, known []drawbridge.CardName) []drawbridge.ToolDefinition {
		turn++
		all := definitions("a", "b", "c")
		all[1].Deferred, all[2].Deferred = turn == 1, turn < 3
		if turn > 1 {
			all = append(definitions("new"), all...)
		}
		if turn == 3 && !slices.Equal(known, []drawbridge.CardName{"a"}) {
			t.Errorf("the model knows %q", known)
		}
		return all
	}}
	model := answers(calls("b"), calls("new"), says("done"))
	model.info = drawbridge.ModelInfo{Provider: "test", Name: "searches", DeferredTools: true}
	run(t, open(t, agent.Options{Model: model, Tools: tools}), "x", agent.Completed)
	var got []string
	for _, r := range model.requests {
		var names []string
		for _, d := range r.Tools {
			names = append(names, fmt.Sprint(d.Name, " ", d.Deferred))
		}
		got = append(got, strings.Join(names, ", "))
	}
	want := []string{"a false, b true, c true", "a false, b true, c true, new true", "a false, b true, c true, new true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(tools.made) != 2 {
		t.Errorf("the calls are %v", tools.made)
	}
}
