//go:build unix

package upstream

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

func TestAToolThatNeedsATaskAnswersPlainly(t *testing.T) {
	r := runReal(t, Options{}, stdioRow(t, "tasks-legacy"))
	r.mount("tasks-legacy")
	for name, c := range map[string]drawbridge.Caller{
		"a stateless caller":  caller(drawbridge.Modern),
		"a stateful one":      caller(drawbridge.Legacy),
		"one of an older one": talker("1"),
	} {
		result, err := r.Do(t.Context(), "tasks-legacy", toolCall(c, "research", `{"text":"found"}`))
		if err != nil {
			t.Fatal(name, err)
		}
		if got, want := string(result.Raw), `{"content":[{"type":"text","text":"found"}]}`; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if got := r.text("tasks-legacy", caller(drawbridge.Modern), "echo", `{"text":"plain"}`); got != "plain" {
		t.Errorf("a tool that needs none: %s", got)
	}
}

// TestAQuestionOfATaskReachesWhoAskedForNone: in the caller's own way, without a word of the task.
func TestAQuestionOfATaskReachesWhoAskedForNone(t *testing.T) {
	r := runReal(t, Options{}, stdioRow(t, "tasks-legacy"))
	r.mount("tasks-legacy")
	const answer = `{"action":"accept","content":{"name":"Ada"}}`
	p := &peer{answer: func(string) (json.RawMessage, error) { return json.RawMessage(answer), nil }}
	call := toolCall(talker("1"), "interview", `{}`)
	call.Peer = p
	result, err := r.Do(t.Context(), "tasks-legacy", call)
	if err != nil || !strings.Contains(string(result.Raw), "hello, Ada") {
		t.Errorf("a stateful caller: %s, %v", result.Raw, err)
	}
	if asked := p.questions(); len(asked) != 1 || strings.Contains(asked[0], "related-task") {
		t.Errorf("it was asked %q", asked)
	}

	call = toolCall(asker(), "interview", `{}`)
	asked, err := r.Do(t.Context(), "tasks-legacy", call)
	if err != nil || rawjson.GetString(asked.Raw, "resultType") != "input_required" ||
		strings.Contains(string(asked.Raw), "related-task") {
		t.Fatalf("a stateless caller is asked %s, %v", asked.Raw, err)
	}
	result, err = r.Do(t.Context(), "tasks-legacy", retry(call, asked, `{"1":`+answer+`}`))
	if err != nil || !strings.Contains(string(result.Raw), "hello, Ada") {
		t.Errorf("a stateless caller: %s, %v", result.Raw, err)
	}
}

func TestATaskNobodyWaitsForIsCancelled(t *testing.T) {
	r := runReal(t, Options{CallTimeout: 100 * time.Millisecond}, stdioRow(t, "tasks-legacy"))
	r.mount("tasks-legacy")
	if _, err := r.Do(t.Context(), "tasks-legacy", toolCall(caller(drawbridge.Modern), "hold", `{}`)); err == nil {
		t.Fatal("a task that does not end was answered")
	}
	list, err := r.Do(t.Context(), "tasks-legacy", drawbridge.Call{Caller: caller(drawbridge.Modern),
		Method: mcp.MethodTasksList})
	if err != nil {
		t.Fatal(err)
	}
	for task := range rawjson.Elements(rawjson.Get(list.Raw, "tasks")) {
		if status := rawjson.GetString(task, "status"); status != "cancelled" {
			t.Errorf("the task is %s", status)
		}
	}
	if !strings.Contains(string(list.Raw), "task-1") {
		t.Errorf("no task in %s", list.Raw)
	}
}
