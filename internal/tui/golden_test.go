package tui

import (
	"context"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

const sample = `# A heading

Some **bold**, *italic* and ` + "`code`" + ` text with a [link](https://example.com/page).

1. first
2. second
   - nested

> a quote

` + "```go\nfunc main() {\n\tprintln(\"hi\")\n}\n```" + `

| Name | Value |
|------|------:|
| one  | 1 |
| two  | **2** |

The last`

func TestFirstScreen(t *testing.T) {
	x := open(t, 80, 20, Options{Session: newSession(t, &script{}, nil)})
	x.golden("first")
}

func TestStreamingAnswer(t *testing.T) {
	proceed := make(chan struct{})
	x := open(t, 80, 50, Options{Session: newSession(t, &script{answers: []answer{
		streams(sample, " words.\n", proceed)}}, nil)})
	x.press("Explain it\r")
	x.shows("The last")
	x.golden("streaming")
	close(proceed)
	x.shows("The last words.", "!working")
	x.golden("streamed")
}

func TestResizeInMidStream(t *testing.T) {
	proceed := make(chan struct{})
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{
		streams("A paragraph that is long enough to be broken into two lines on a terminal of forty columns", " only.\n",
			proceed)}}, nil)})
	x.press("Go\r")
	x.shows("forty columns", "> Go", "/keys the keys")
	x.resize(40, 16)
	x.shows("A paragraph that is long enough to be\nbroken into two lines on a terminal of\nforty columns\n───")
	close(proceed)
	x.shows("forty columns only.", "!working")
	x.golden("resized")
}

func TestNarrowTerminal(t *testing.T) {
	x := open(t, 40, 40, Options{Session: newSession(t, &script{answers: []answer{says(sample)}}, nil)})
	x.press("Explain it in a prompt that is longer than one line\r")
	x.shows("The last", "!working")
	x.golden("narrow")
}

func TestNoColour(t *testing.T) {
	var all strings.Builder
	o := Options{Session: newSession(t, &script{answers: []answer{says(sample)}}, nil)}
	o.Terminal.Env = []string{"NO_COLOR=1"}
	x := open(t, 60, 40, o)
	x.press("Explain it\r")
	x.shows("The last", "!working")
	x.golden("nocolour")
	x.mu.Lock()
	all.WriteString(x.screenV.Render())
	x.mu.Unlock()
	if strings.Contains(all.String(), "\x1b[") && strings.Contains(all.String(), "m") {
		t.Errorf("there are styles: %q", all.String())
	}
}

func TestFoldedCalls(t *testing.T) {
	box := &tools{call: func(ctx context.Context, c drawbridge.ToolCall, update func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		switch c.ID {
		case "c1":
			return outcome("line one\nline two\nline three", nil), nil
		case "c2":
			return outcome("", map[string]any{"items": []any{
				map[string]any{"id": "1", "text": "read the files", "status": "done"},
				map[string]any{"id": "2", "text": "fix the error", "status": "active"},
				map[string]any{"id": "3", "text": "run the tests", "status": "pending"}}, "tally": map[string]int{"done": 1}}), nil
		case "c4":
			update(agent.CallUpdate{Progress: &agent.Progress{Progress: 30, Total: 120, Message: "compiling"}})
			<-ctx.Done()
			return agent.CallOutcome{}, context.Cause(ctx)
		}
		return agent.CallOutcome{}, &drawbridge.Fault{Code: drawbridge.NotFound, Step: "read", Err: context.DeadlineExceeded}
	}}
	x := open(t, 80, 30, Options{Session: newSession(t, &script{answers: []answer{
		says("I look.", call("c1", "fs__read", `{"path":"go.mod"}`)),
		says("", call("c2", "todo", `{"items":[]}`)),
		says("", call("c3", "fs__read", `{"path":"missing","why":"because this is a very long argument that does not fit"}`)),
		says("", call("c4", "bash", `{"command":"go build ./..."}`)),
	}}, box)})
	x.press("Look\r")
	x.shows("compiling")
	x.press("\x14")
	x.shows("[>] fix the error")
	x.golden("calls")
	x.press("\x14")
	x.shows("![>] fix the error")
	x.press("\x1b")
	x.shows("The run ended: cancelled", "!working")
	x.press("\x0f")
	x.shows(`"command": "go build ./..."`)
	x.golden("calls-cancelled")
}

// TestLabelOfTheRun shows in the status line what the run has read, also in a session that is continued.
func TestLabelOfTheRun(t *testing.T) {
	box := &tools{call: func(_ context.Context, c drawbridge.ToolCall, _ func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		o := outcome("a text", nil)
		o.Label = &agent.RunLabel{Integrity: "project", Kind: "file", Name: "/p/a.go"}
		if c.ID == "c2" {
			o.Label = &agent.RunLabel{Integrity: "untrusted", Kind: "result", Name: "mail__message", More: 2}
		}
		return o, nil
	}}
	proceed := make(chan struct{})
	o := agent.Options{Model: &script{answers: []answer{says("", call("c1", "fs__read", `{"path":"a.go"}`)),
		streams("Now the mail", ".", proceed)}}, Tools: box, ManualCondense: true, History: agent.NewMemoryHistory()}
	x := open(t, 80, 16, Options{Session: openSession(t, o)})
	x.press("Look\r")
	x.shows("Now the mail", "!project")
	close(proceed)
	x.shows("!working")
	o.Model = &script{answers: []answer{says("", call("c2", "fs__read", `{"path":"mail"}`)), says("Done.")}}
	x = open(t, 80, 16, Options{Session: openSession(t, o)})
	x.press("And the mail\r")
	x.shows("Done.", "!working")
	x.golden("label")
	o.Model = &script{}
	x = open(t, 80, 16, Options{Session: openSession(t, o)})
	x.shows("untrusted: mail__message, +2 · script")
}

func TestLabelText(t *testing.T) {
	for want, l := range map[string]*agent.RunLabel{
		"":                                    nil,
		"private: .env":                       {Integrity: "project", Private: true, Kind: "file", Name: "/home/ada/p/.env"},
		"untrusted: a.txt, +1":                {Integrity: "untrusted", Kind: "file", Name: "/p/a.txt, written from result mail/x", More: 1},
		"untrusted, private: notes__get":      {Integrity: "untrusted", Private: true, Kind: "result", Name: "notes__get"},
		"untrusted: A page whose title is l…": {Integrity: "untrusted", Kind: "page", Name: "A page whose title is long\x1b[2J"},
		`untrusted: \u001b[2J   BYPASS`:       {Integrity: "untrusted", Kind: "page", Name: "\x1b[2J · BYPASS"},
	} {
		if got := labelText(l); got != want {
			t.Errorf("%+v: %q, want %q", l, got, want)
		}
	}
}

func TestDiff(t *testing.T) {
	diff := "--- a.go\n+++ a.go\n@@ -1,3 +1,3 @@\n package a\n-var x = 1\n+var x = 2\n var y = 3\n"
	box := &tools{call: func(context.Context, drawbridge.ToolCall, func(agent.CallUpdate)) (agent.CallOutcome, error) {
		return outcome("edited", map[string]any{"path": "a.go", "diff": diff}), nil
	}}
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{
		says("", call("c1", "edit", `{"path":"a.go","oldText":"var x = 1","newText":"var x = 2"}`)), says("Done."),
	}}, box)})
	x.press("Edit\r")
	x.shows("Done.", "!working")
	x.golden("diff")
}
