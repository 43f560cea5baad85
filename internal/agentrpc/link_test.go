package agentrpc_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

func TestLinkSubmit(t *testing.T) {
	c, _ := link(t, calls("read", `{"path":"a.txt"}`), says("line\u2028end", drawbridge.StopEnd))
	c.send(`{"jsonrpc":"2.0","id":"lnk-1-1","method":"submit","params":{"input":"hello"}}`)
	lines := c.all(`"id":"lnk-1-1"`)
	var names []string
	for _, line := range lines[:len(lines)-1] {
		var s struct{ Type, Name string }
		if err := json.Unmarshal([]byte(line), &s); err != nil || s.Type != "signal" {
			t.Fatalf("%s: %v", line, err)
		}
		names = append(names, s.Name)
	}
	want := []string{"start", "turn_start", "thinking", "turn_end", "tool_start", "tool_end", "turn_start", "text", "turn_end", "end"}
	if !slices.Equal(names, want) {
		t.Errorf("the signals are %q, want %q", names, want)
	}
	whole := strings.Join(lines, "\n")
	for _, want := range []string{`"outcome":"completed","text":"line\u2028end","turns":2`,
		`"callId":"c1","tool":"read","arguments":{"path":"a.txt"}`} {
		if !strings.Contains(whole, want) {
			t.Errorf("%s is not in\n%s", want, whole)
		}
	}
	if strings.ContainsRune(whole, '\u2028') {
		t.Error("U+2028 is on the wire")
	}
}

func TestLinkErrors(t *testing.T) {
	c, _ := link(t)
	for _, tt := range []struct{ line, want string }{
		{`{"jsonrpc":`, `{"jsonrpc":"2.0","id":"","error":{"code":-32700,"message":"malformed JSON request line"}}`},
		{`[]`, `"id":"","error":{"code":-32600`},
		{`{"jsonrpc":"1.0","id":1,"method":"abort"}`, `"id":1,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":{},"method":"abort"}`, `"id":"","error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":"x","method":"nope"}`, `"id":"x","error":{"code":-32601,"message":"unknown method","data":{"method":"nope"}}`},
		{`{"jsonrpc":"2.0","id":"x","method":"submit"}`, `{"code":-32602,"message":"input is missing"}`},
		{`{"jsonrpc":"2.0","id":"x","method":"submit","params":{"input":7}}`, `"code":-32602`},
		{`{"jsonrpc":"2.0","id":"x","method":"resume","params":{"sessionId":"gone"}}`, `{"code":-32000,"message":"no session gone"}`},
		{`{"jsonrpc":"2.0","id":"x","method":"cycleModel","params":{"modelId":"no"}}`, `{"code":-32000,"message":"unknown model"}`},
		{`{"jsonrpc":"2.0","id":"x","method":"answer","params":{"id":"none"}}`, `"code":-32602`},
		{`{"jsonrpc":"2.0","id":"x","method":"abort"}`, `"result":{"aborted":false}`},
		{`{"jsonrpc":"2.0","id":"x","method":"submit","params":{"input":"p"}}`, `"code":-32000,"message":"run failed: `},
		{strings.Repeat("x", 16<<20+1), `"id":"","error":{"code":-32600,"message":"a line has more than 16 MiB"}`},
		{`{"jsonrpc":"2.0","id":9,"method":"snapshot"}`, `"id":9,"result":{"sessionId":`},
	} {
		c.send("%s", tt.line)
		if got := c.until(`"jsonrpc"`); !strings.Contains(got, tt.want) {
			t.Errorf("%.80s: %s, want %s", tt.line, got, tt.want)
		}
	}
}

func TestLinkAbortAndSnapshotReachARun(t *testing.T) {
	c, _ := link(t, says("begins", "wait"), says("second", drawbridge.StopEnd))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"submit","params":{"input":"a"}}`)
	c.until(`"name":"text"`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"snapshot"}`)
	if got := c.next(); !strings.Contains(got, `"streaming":true,"running":true`) || !strings.Contains(got, `"sessionFile":"/tmp/`) ||
		strings.Count(got, `"thinking":""`) != 1 {
		t.Errorf("the snapshot is %s", got)
	}
	c.send(`{"jsonrpc":"2.0","id":3,"method":"abort"}`)
	lines := strings.Join(c.all(`"id":1,`, `"id":3,`), "\n") // in any order: the abort does not wait for its response
	if !strings.Contains(lines, `"aborted":true`) || !strings.Contains(lines, `"outcome":"cancelled"`) {
		t.Errorf("after the abort: %s", lines)
	}
	c.send(`{"jsonrpc":"2.0","id":4,"method":"submit","params":{"input":"b"}}`)
	if got := c.until(`"id":4`); !strings.Contains(got, `"text":"second"`) {
		t.Errorf("the run after the aborted one: %s", got)
	}
}

func TestLinkModelsAndResume(t *testing.T) {
	c, host := link(t, says("one", drawbridge.StopEnd))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"submit","params":{"input":"a"}}`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"listModels"}`)
	c.send(`{"jsonrpc":"2.0","id":3,"method":"cycleModel","params":{"modelId":"test/b"}}`)
	c.send(`{"jsonrpc":"2.0","id":4,"method":"submit","params":{"input":"who"}}`)
	for _, want := range []string{`"id":1,"result":{"sessionId"`, `"id":2,"result":{"current":"test/a","models":["test/a","test/b"]}`,
		`"id":3,"result":{"model":"test/b"}`, `"text":"I am b"`} {
		if got := c.until(`"jsonrpc"`); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	other := newHistory(t, host)
	c.send(`{"jsonrpc":"2.0","id":5,"method":"resume","params":{"sessionId":%q}}`, other)
	if got := c.until(`"id":5`); !strings.Contains(got, `"sessionId":"`+other) || !strings.Contains(got, `"messageCount":0`) {
		t.Errorf("resume: %s", got)
	}
}

func TestLinkQuestions(t *testing.T) {
	c, host := link(t, calls("ask_approval", `{"a":1}`), says("done", drawbridge.StopEnd), calls("ask_form", `{}`))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"submit","params":{"input":"a"}}`)
	if got := c.until(`"name":"ask"`); !strings.Contains(got, `"kind":"approval"`) || !strings.Contains(got, `"arguments":{"a":1}`) {
		t.Errorf("the question is %s", got)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"answer","params":{"id":"q1","allow":true}}`)
	lines := strings.Join(c.all(`"id":1,`, `"id":2,`), "\n")
	if !strings.Contains(lines, `allow=true always=false`) || !strings.Contains(lines, `"id":2,"result":{}`) {
		t.Errorf("after the answer: %s", lines)
	}
	// At the end of the input nothing can be answered: the answer is no, and the run goes on.
	c.send(`{"jsonrpc":"2.0","id":3,"method":"submit","params":{"input":"b"}}`)
	c.until(`"name":"ask"`)
	_ = c.in.Close()
	c.until(`"id":3`)
	if err := c.end(); err != nil {
		t.Error(err)
	}
	if n := len(host.tools.answers); n != 2 || host.tools.answers[1].Allow {
		t.Errorf("the answers are %v", host.tools.answers)
	}
}

// TestLinkPlan shows a plan to the client, and signals the mode after a yes.
func TestLinkPlan(t *testing.T) {
	c := serveLink(t, &scriptedHost{mode: agent.PlanOnly}, calls("ask_plan", `{}`), says("done", drawbridge.StopEnd))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"submit","params":{"input":"a"}}`)
	if got := c.until(`"name":"ask"`); !strings.Contains(got, `"kind":"plan"`) || !strings.Contains(got, `"message":"please"`) {
		t.Errorf("the question is %s", got)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"answer","params":{"id":"q1","allow":true}}`)
	if got := c.until(`"name":"mode"`); !strings.Contains(got, `"mode":"default"`) {
		t.Error(got)
	}
	c.until(`"id":1,`)
}

func TestLinkCompletesItsInput(t *testing.T) {
	c, _ := link(t, says("one", drawbridge.StopEnd), says("two", drawbridge.StopEnd))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"submit","params":{"input":"a"}}`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"submit","params":{"input":"b"}}`)
	_ = c.in.Close()
	if got := c.until(`"id":2,`); !strings.Contains(got, `"text":"two"`) {
		t.Error(got)
	}
}

func TestLinkClientGone(t *testing.T) {
	c, _ := link(t, says("begins", "wait"))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"submit","params":{"input":"a"}}`)
	c.until(`"name":"text"`)
	_ = c.out.Close() // the next write fails
	c.send(`{"jsonrpc":"2.0","id":2,"method":"snapshot"}`)
	if err := <-c.ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestLinkClientGoneInSilence ends the client while the model says nothing.
func TestLinkClientGoneInSilence(t *testing.T) {
	c, _ := link(t, says("begins", "wait"))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"submit","params":{"input":"a"}}`)
	c.until(`"name":"text"`)
	_ = c.in.Close()
	c.until(`"name":"alive"`)
	_ = c.out.Close()
	if err := <-c.ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}
