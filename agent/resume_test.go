package agent_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/google/go-cmp/cmp"
)

// TestResumeAfterEachEntry continues a session from each prefix of its history, as if the process had been killed
// there: what had been sent without a result is unknown, and the tools are not called for it again.
func TestResumeAfterEachEntry(t *testing.T) {
	whole := agent.NewMemoryHistory()
	names := []drawbridge.CardName{"a", "b"}
	run(t, open(t, agent.Options{Model: answers(calls(`a {"n":1}`, `b {"n":2}`), says("end")), Tools: &box{names: names},
		History: whole}), "go", agent.Completed)
	all := entries(t, whole)
	unknown := "The program ended while this call ran. The outcome of this call is unknown: it may have taken effect. " +
		"Check that before you repeat it."
	notMade := "This call was not made: the program ended before."
	var seen []string
	for n := 1; n <= len(all); n++ {
		history, sent, done := agent.NewMemoryHistory(), map[string]bool{}, map[string]bool{}
		for _, e := range all[:n] {
			if err := history.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if e.Kind == agent.CallEntry {
				sent[e.Call.ID] = true
			}
			if e.Kind == agent.ResultEntry {
				done[e.Result.CallID] = true
			}
		}
		last := all[n-1].Kind
		tools, model := &box{names: names}, answers(says("after"), says("after"))
		s := open(t, agent.Options{Model: model, Tools: tools, History: history})
		if len(tools.made) > 0 {
			t.Errorf("%d entries, up to %s: calls were made again: %v", n, last, tools.made)
		}
		run(t, s, "next", agent.Completed)
		results := map[string]drawbridge.ToolResult{}
		for _, m := range model.requests[0].Messages {
			for _, p := range m.Parts {
				if p.ToolResult != nil {
					results[p.ToolResult.CallID] = *p.ToolResult
				}
			}
		}
		checkPairs(t, n, model.requests[0].Messages)
		for id, r := range results {
			want := notMade
			if sent[id] {
				want = unknown
			}
			if done[id] {
				want = map[string]string{"c0": `{"n":1}`, "c1": `{"n":2}`}[id]
			}
			if r.Text != want || r.IsError == done[id] {
				t.Errorf("%d entries, up to %s: the result of %s is %+v", n, last, id, r)
			}
		}
		for _, e := range entries(t, history)[n:] {
			if e.Kind == agent.ResultEntry && e.Details.Unknown != sent[e.Result.CallID] {
				t.Errorf("%d entries: the details of %s are %+v", n, e.Result.CallID, e.Details)
			}
		}
		seen = append(seen, string(last))
	}
	want := []string{"session", "instructions", "prompt", "tools", "model", "call", "call", "result", "result", "model"}
	if len(seen) != len(want) || seen[5] != "call" || seen[9] != "model" {
		t.Errorf("the entries are %v", seen)
	}
}

// TestResumeWithSubAgents continues a session with a sub-agent from each prefix of its history: each call on record,
// those of the sub-agent too, has one result then.
func TestResumeWithSubAgents(t *testing.T) {
	whole := agent.NewMemoryHistory()
	model := of(map[string][]drawbridge.ModelResponse{"go": {calls(`task {"objective":"sub"}`), says("end")},
		"sub": {calls("echo", "echo"), says("report")}})
	run(t, open(t, agent.Options{Model: model, Tools: taskBox("echo"), History: whole}), "go", agent.Completed)
	all := entries(t, whole)
	for n := 1; n <= len(all); n++ {
		history := agent.NewMemoryHistory()
		for _, e := range all[:n] {
			if err := history.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, agent.Options{Model: answers(says("x")), Tools: taskBox("echo"), History: history})
		results := map[string]int{}
		for i, e := range entries(t, history) {
			switch {
			case e.Kind == agent.CallEntry:
				results[e.Agent+" "+e.Call.ID]--
			case e.Kind == agent.ResultEntry:
				results[e.Agent+" "+e.Result.CallID]++
				if e.Details.Unknown != (i >= n) && e.Result.Text != "This call was not made: the program ended before." {
					t.Errorf("%d entries: a result is %+v, %+v", n, e.Result, e.Details)
				}
			}
		}
		for call, count := range results {
			if count < 0 {
				t.Errorf("%d entries: the call %q has no result", n, call)
			}
		}
		run(t, s, "next", agent.Completed)
	}
}

// TestResumedSettings holds which settings a history restores.
func TestResumedSettings(t *testing.T) {
	history := agent.NewMemoryHistory()
	model := answers(says("a"))
	s := open(t, agent.Options{Model: model, History: history})
	run(t, s, "x", agent.Completed)
	other := answers()
	other.info.Name = "other"
	for _, err := range []error{s.SetMode(t.Context(), agent.PlanOnly), s.SetThinking(t.Context(), drawbridge.ThinkingHigh),
		s.SetName(t.Context(), "name"), s.SetModel(t.Context(), other)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Snapshot().Model; got != "test/other" {
		t.Errorf("the model is %s", got)
	}
	got := open(t, agent.Options{Model: model, History: history}).Snapshot()
	want := agent.Snapshot{Session: history.ID(), Name: "name", Model: "test/script", Thinking: drawbridge.ThinkingHigh,
		Mode: agent.PlanOnly, Usage: drawbridge.ModelUsage{Input: 100, Output: 10}, Messages: 2, Tokens: got.Tokens,
		AutoCondense: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if mode := open(t, agent.Options{Model: model, History: history, Mode: agent.AcceptEdits}).Snapshot().Mode; mode !=
		agent.AcceptEdits {
		t.Errorf("with an option, the mode is %s", mode)
	}
	if err := s.SetMode(t.Context(), agent.Bypass); err != nil {
		t.Fatal(err)
	}
	if mode := open(t, agent.Options{Model: model, History: history}).Snapshot().Mode; mode != agent.AskFirst {
		t.Errorf("after bypass, the mode is %s", mode)
	}
}

// TestTree has a conversation with two branches, that is resumed on the second.
func TestTree(t *testing.T) {
	history, newID := agent.NewMemoryHistory(), counted()
	model := answers(calls("echo"), says("one"), says("two"), says("three"), says("four"), says("five"))
	s := open(t, agent.Options{Model: model, Tools: &box{}, History: history, NewID: newID})
	run(t, s, "first", agent.Completed)
	run(t, s, "second", agent.Completed)
	nodes, err := s.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 5 {
		t.Fatalf("the tree has %d nodes", len(nodes))
	}
	if err := s.Branch(t.Context(), nodes[1].ID); err != nil { // after the result of the call
		t.Fatal(err)
	}
	run(t, s, "other", agent.Completed)
	s = open(t, agent.Options{Model: model, Tools: &box{}, History: history, NewID: newID})
	nodes, err = s.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Kind    agent.EntryKind
		Text    string
		Calls   int
		Parent  int
		Current bool
	}
	index := map[string]int{"": -1}
	var rows []row
	for i, n := range nodes {
		index[n.ID] = i
		rows = append(rows, row{n.Kind, n.Text, n.Calls, index[n.Parent], n.Current})
	}
	want := []row{
		{agent.PromptEntry, "first", 0, -1, true}, {agent.ModelEntry, "", 1, 0, true},
		{agent.ModelEntry, "one", 0, 1, false}, {agent.PromptEntry, "second", 0, 2, false},
		{agent.ModelEntry, "two", 0, 3, false}, {agent.PromptEntry, "other", 0, 1, true},
		{agent.ModelEntry, "three", 0, 5, true},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	run(t, s, "more", agent.Completed)
	var texts []string
	for _, m := range model.requests[len(model.requests)-1].Messages {
		texts = append(texts, m.Text())
	}
	if diff := cmp.Diff([]string{"first", "", "", "other", "three", "more"}, texts); diff != "" {
		t.Error(diff)
	}
	if err := s.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, s, "afresh", agent.Completed)
	if n := len(model.requests[len(model.requests)-1].Messages); n != 1 {
		t.Errorf("after Clear, the model sees %d messages", n)
	}
	again := open(t, agent.Options{Model: model, History: history})
	if n := again.Snapshot().Messages; n != 2 {
		t.Errorf("after Clear, the resumed session has %d messages", n)
	}
	checkBranchErrors(t, s, history)
}

func checkBranchErrors(t *testing.T, s *agent.Session, history agent.History) {
	t.Helper()
	for _, e := range entries(t, history) {
		pending := e.Kind == agent.CallEntry || e.Kind == agent.ModelEntry && len(e.Message.ToolCalls()) > 0
		if err := s.Branch(t.Context(), e.ID); (err != nil) != pending {
			t.Errorf("branch after %s: %v", e.Kind, err)
		}
	}
	if err := s.Branch(t.Context(), "none"); err == nil {
		t.Error("Branch accepted an unknown entry")
	}
}

// TestBrokenTree has a history whose entries follow each other in a circle, or follow none.
func TestBrokenTree(t *testing.T) {
	message := drawbridge.NewUserMessage("x")
	for _, parents := range [][2]string{{"2", "1"}, {"", "9"}} {
		history := agent.NewMemoryHistory()
		for i, id := range []string{"1", "2"} {
			if err := history.Append(t.Context(), agent.Entry{Kind: agent.PromptEntry, ID: id, Parent: parents[i],
				Time: time.Now(), Message: &message}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := agent.New(t.Context(), agent.Options{Model: answers(), History: history}); err == nil {
			t.Errorf("a history with the parents %v was opened", parents)
		}
	}
}

// TestToolCallAsJSON holds the form of a call whose arguments are not JSON.
func TestToolCallAsJSON(t *testing.T) {
	for _, arguments := range []string{`{"a":"<"}`, `{"a`, "", `"text"`} {
		want := drawbridge.ToolCall{ID: "c", Name: "n", Arguments: json.RawMessage(arguments)}
		if arguments == "" {
			want.Arguments = nil
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got drawbridge.ToolCall
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if string(got.Arguments) != arguments && arguments != `{"a":"<"}` {
			t.Errorf("%s becomes %s", arguments, got.Arguments)
		}
	}
}

// TestLabelOfTheRun holds that a session has the lowest label that its calls reported, also after it is continued.
func TestLabelOfTheRun(t *testing.T) {
	mail := agent.RunLabel{Integrity: "untrusted", Kind: "result", Name: "mail__message"}
	later := agent.RunLabel{Integrity: "untrusted", Private: true, Kind: "result", Name: "mail__message", More: 1}
	labels := map[drawbridge.CardName]*agent.RunLabel{"mail": &mail, "secret": &later, "none": nil,
		"file": {Integrity: "project", Kind: "file", Name: "a.txt"}}
	tools := &box{names: []drawbridge.CardName{"mail", "file", "secret", "none"}}
	tools.call = func(_ context.Context, _ agent.Identity, c drawbridge.ToolCall, _ func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		o := textOutcome("x")
		o.Label = labels[c.Name]
		return o, nil
	}
	history := agent.NewMemoryHistory()
	s := open(t, agent.Options{Tools: tools, History: history, Model: answers(calls(`none {}`), says("a"),
		calls(`file {}`), says("b"), calls(`mail {}`), calls(`file {}`), says("c"),
		calls(`secret {}`), calls(`mail {}`), calls(`none {}`), says("d"))})
	for i, want := range []*agent.RunLabel{nil, labels["file"], &mail, &later} {
		run(t, s, "go", agent.Completed)
		if diff := cmp.Diff(want, s.Snapshot().Label); diff != "" {
			t.Errorf("run %d (-want +got):\n%s", i, diff)
		}
		again := open(t, agent.Options{Model: answers(), Tools: tools, History: history})
		if diff := cmp.Diff(want, again.Snapshot().Label); diff != "" {
			t.Errorf("continued after run %d (-want +got):\n%s", i, diff)
		}
	}
}
