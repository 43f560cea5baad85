package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/google/go-cmp/cmp"
)

// asking are tools that ask a question before each call. The results have the answers.
func asking(question func(c drawbridge.ToolCall) agent.Question) *tools {
	box := &tools{}
	box.call = func(ctx context.Context, c drawbridge.ToolCall, update func(agent.CallUpdate)) (agent.CallOutcome, error) {
		a, err := box.ask(ctx, question(c), update)
		if err != nil {
			return agent.CallOutcome{}, err
		}
		return outcome(fmt.Sprintf("allow=%v always=%v content=%s", a.Allow, a.Always, a.Content), nil), nil
	}
	return box
}

// approval asks whether a call may be made.
func approval(c drawbridge.ToolCall) agent.Question {
	return agent.Question{ID: "q-" + c.ID, Kind: agent.AskApproval, Server: "fs", Tool: string(c.Name),
		Reason: "the tool may change files", Arguments: c.Arguments}
}

func TestApproval(t *testing.T) {
	long := `{"path":"notes.txt","oldText":"one\ntwo\nthree","newText":"one\n2\nthree","why":"` +
		strings.Repeat("a reason ", 30) + `","hidden":"a\u202eb"}`
	x := open(t, 80, 36, Options{Session: newSession(t, &script{answers: []answer{
		says("I change it.", call("c1", "edit", long)), says("Done."),
	}}, asking(approval))})
	x.press("Change it\r")
	x.shows("Allow this call?")
	x.golden("approval")
	x.press("y\x1b[B") // too early for a decision: it may have been meant for the input box
	x.shows("lines 2 to")
	x.pass(time.Second)
	x.press("e")
	x.shows(`"hidden": "a\u202eb"`)
	x.golden("approval-everything")
	x.press("y")
	x.shows("allow=true always=false", "Done.", "!Allow this call?")
}

// TestApprovalOfValues asks about values that come from elsewhere: each is on its own line.
func TestApprovalOfValues(t *testing.T) {
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{
		says("I answer.", call("c1", "bash", `{"to":"eve@example.com","text":"the plan"}`)), says("Done."),
	}}, asking(func(c drawbridge.ToolCall) agent.Question {
		q := approval(c)
		q.Reason = "the tool writes; yes endorses these values for 8 hours: to (untrusted, from result mail__message); " +
			"text (untrusted, private, from page A title that is so long that it needs two lines\nyes sends nothing); " +
			"yes sends private text: text (project, private, from file .env)"
		return q
	}))})
	x.press("Answer it\r")
	x.shows("Allow this call?")
	x.golden("approval-values")
}

func TestApprovalKeys(t *testing.T) {
	for _, tt := range []struct{ name, keys, want string }{
		{"for the session", "a", "allow=true always=true"},
		{"denied", "n", "allow=false always=false"},
		{"later", "\x1b/approvals\ry", "allow=true always=false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{
				says("", call("c1", "bash", `{"command":"ls"}`)), says("Done."),
			}}, asking(approval))})
			x.press("Do it\r")
			x.shows("Allow this call?")
			x.pass(time.Second)
			for i, part := range strings.SplitAfter(tt.keys, "\r") {
				if i > 0 {
					x.shows("Allow this call?", "y once")
					x.pass(time.Second)
				}
				if rest, later := strings.CutPrefix(part, "\x1b"); later {
					x.press("\x1b")
					x.shows("1 waiting for an answer")
					part = rest
				}
				x.press(part)
			}
			x.shows(tt.want, "Done.")
		})
	}
}

func TestBatch(t *testing.T) {
	x := open(t, 80, 30, Options{Session: newSession(t, &script{answers: []answer{
		says("", call("c1", "fs__write", `{"n":1}`), call("c2", "fs__write", `{"n":2}`), call("c3", "fs__write", `{"n":3}`)),
		says("Done."),
	}}, asking(approval))})
	x.press("Write\r")
	x.shows("(1 of 3)", "all 3 calls of this batch")
	x.pass(time.Second)
	x.press("b")
	text := x.shows("Done.", "!working")
	if n := strings.Count(text, "allow=true always=false"); n != 3 {
		t.Errorf("%d calls were allowed:\n%s", n, text)
	}
}

// TestBatchLeavesOutWhatWasNotSeen lets a call come at the moment when the person allows the batch.
func TestBatchLeavesOutWhatWasNotSeen(t *testing.T) {
	second := make(chan struct{})
	box := &tools{}
	box.call = func(ctx context.Context, c drawbridge.ToolCall, update func(agent.CallUpdate)) (agent.CallOutcome, error) {
		if c.ID == "c2" {
			<-second
		}
		a, err := box.ask(ctx, approval(c), update)
		return outcome(fmt.Sprintf("%s allow=%v", c.ID, a.Allow), nil), err
	}
	x := open(t, 80, 30, Options{Session: newSession(t, &script{answers: []answer{
		says("", call("c1", "fs__write", `{"n":1}`), call("c2", "fs__write", `{"n":2}`)), says("Done."),
	}}, box)})
	x.press("Write\r")
	x.shows("Allow this call?", "!1 of 2")
	x.pass(time.Second)
	close(second)
	x.shows("(1 of 2)", `also: fs__write {"n":2}`)
	x.press("b")
	x.shows("c1 allow=true", "Allow this call?", "!1 of 2")
	x.pass(time.Second)
	x.press("n")
	x.shows("c2 allow=false", "Done.")
}

const schema = `{"message":"Who are you?","requestedSchema":{"type":"object","properties":{
"name":{"type":"string","title":"Your name","description":"as on your card","minLength":2},
"age":{"type":"integer","minimum":0},
"colour":{"type":"string","enum":["red","blue"]},
"news":{"type":"boolean"}},"required":["name","colour"]}}`

func formQuestion(c drawbridge.ToolCall) agent.Question {
	return agent.Question{ID: "q-" + c.ID, Kind: agent.AskForm, Server: "forms\nAllow?", Tool: "ask",
		Message: "Who are you?\x1b[2J", Arguments: json.RawMessage(schema)}
}

func TestElicitation(t *testing.T) {
	x := open(t, 100, 24, Options{Session: newSession(t, &script{answers: []answer{
		says("", call("c1", "ask", `{}`)), says("Done."),
	}}, asking(formQuestion))})
	x.press("Ask\r")
	x.shows("asks for values")
	x.pass(time.Second)
	x.press("A\r")
	x.shows("must have at least 2 characters")
	x.golden("form")
	x.press("da\r4x\r")
	x.shows("must be a number")
	x.press("\x7f2\r")
	x.press("\x1b[C \r")
	x.shows("(x) blue", "> news")
	x.press(" \r")
	x.shows(`content={"age":42,"colour":"blue","name":"Ada","news":true}`, "Done.")
}

func TestFormIsDeclined(t *testing.T) {
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{
		says("", call("c1", "ask", `{}`)), says("Done."),
	}}, asking(formQuestion))})
	x.press("Ask\r")
	x.shows("asks for values")
	x.pass(time.Second)
	x.press("\x1b")
	x.shows("allow=false always=false content=", "Done.")
}

func TestSampling(t *testing.T) {
	x := open(t, 80, 30, Options{Session: newSession(t, &script{answers: []answer{
		says("", call("c1", "ask", `{}`)), says("the model's answer"), says("Done."),
	}}, asking(func(c drawbridge.ToolCall) agent.Question {
		return agent.Question{ID: "q1", Kind: agent.AskSampling, Server: "writer", Arguments: json.RawMessage(
			`{"messages":[{"role":"user","content":{"type":"text","text":"Write a poem"}}],"maxTokens":100}`)}
	}))})
	x.press("Ask\r")
	x.shows("asks for an answer of your model", "Write a poem")
	x.golden("sampling")
	x.pass(time.Second)
	x.press("y")
	x.shows("allow=true", "the model's answer", "Done.")
}

// TestPlan shows a long plan in full, and asks for a yes or a no only.
func TestPlan(t *testing.T) {
	plan := strings.Repeat("- a step\n", 15) + "- the last \x1b[31mstep"
	x := open(t, 80, 40, Options{Session: newSession(t, &script{answers: []answer{
		says("", call("c1", "exit_plan_mode", `{}`)), says("Done."),
	}}, asking(func(drawbridge.ToolCall) agent.Question {
		return agent.Question{ID: "q1", Kind: agent.AskPlan, Tool: "exit_plan_mode", Message: plan}
	}))})
	x.press("Plan\r")
	x.shows("Carry out this plan?", "the last", "y carry it out")
	x.pass(time.Second)
	x.press("a")
	x.shows("Carry out this plan?")
	x.press("y")
	x.shows("allow=true always=false", "Done.")
}

func TestPaletteAndCompletion(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"alpha.go", "also.txt", "beta.go", ".hidden"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	x := open(t, 80, 24, Options{Session: newSession(t, &script{}, nil), Dir: dir, Commands: []Command{{Name: "mcp",
		Summary: "shows the servers", Usage: "[status]", Complete: func(context.Context, string) []string {
			return []string{"status", "tools"}
		}, Run: func(_ context.Context, args string) (Output, error) { return Output{Text: "mcp got " + args}, nil }}}})
	x.press("\x10co")
	x.shows("/ co", "/copy", "/cost")
	x.press("\x1b[B")
	x.until("the second line chosen", func(s string) bool { return strings.Count(s, "\n> /") == 1 && !strings.Contains(s, "> /clear") })
	x.press("\x1b")
	x.shows("!/copy")
	x.press("/mc")
	x.shows("shows the servers")
	x.press("\t")
	x.shows("> /mcp")
	x.press("\t")
	x.shows("tools")
	x.press("\r\r")
	x.shows("mcp got status")
	x.press("see @al")
	x.shows("alpha.go", "also.txt", "!beta.go")
	x.press("\t")
	x.shows("see @alpha.go")
}

func TestPaletteFrame(t *testing.T) {
	x := open(t, 80, 24, Options{Session: newSession(t, &script{}, nil)})
	x.press("\x10th")
	x.shows("/ th", "/thinking")
	x.golden("palette")
}

func TestCompletionFrame(t *testing.T) {
	x := open(t, 80, 24, Options{Session: newSession(t, &script{}, nil)})
	x.press("/c")
	x.shows("/clear", "/copy", "/cost")
	x.golden("completion")
}

func TestHistoryAndEditing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{says("One."), says("Two.")}}, nil),
		HistoryFile: path})
	x.press("first\r")
	x.shows("One.", "!working")
	x.press("two\x1b\rlines\r")
	x.shows("Two.", "!working")
	x.press("draft\x1b[A\x1b[A\x1b[A")
	x.shows("> first\n")
	x.press("\x1b[B\x1b[B\x1b[B")
	x.shows("> draft")
	x.press("\x03\x03")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("\"first\"\n\"two\\nlines\"\n", string(raw)); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	h, err := readHistory(path)
	if diff := cmp.Diff([]string{"first", "two\nlines"}, h.prompts); err != nil || diff != "" {
		t.Errorf("read again: %v %s", err, diff)
	}
}

func TestPasteOfManyLines(t *testing.T) {
	seen := make(chan string, 1)
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{says("Read.")}}, nil),
		Prompt: func(_ context.Context, text string) ([]drawbridge.MessagePart, error) {
			seen <- text
			return []drawbridge.MessagePart{{Text: text}}, nil
		}})
	lines := strings.Repeat("a line\n", 50)
	x.press("see \x1b[200~" + lines + "\x1b[201~")
	x.shows("see [Pasted text 1: 51 lines]")
	x.press("!\r")
	x.shows("Read.", "!working")
	if got, want := <-seen, "see "+lines+"!"; got != want {
		t.Errorf("the prompt is %q, want %q", got, want)
	}
}

func TestQueueAndCancel(t *testing.T) {
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{
		streams("waiting ", "", nil), says("Second answer."),
	}}, nil)})
	x.press("one\r")
	x.shows("waiting")
	x.press("two\r")
	x.shows("> two (queued)", "1 queued")
	x.press("\x03")
	x.shows("The run ended: cancelled", "!working")
	x.press("three\r")
	x.shows("Second answer.", "!queued ·", "!working")
}

// TestMessageAfterCancel sends a message after a run was cancelled and before it has ended.
func TestMessageAfterCancel(t *testing.T) {
	ending := make(chan struct{})
	slow := func(ctx context.Context, on func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
		on(drawbridge.ModelDelta{Text: "waiting "})
		<-ctx.Done()
		<-ending
		return drawbridge.ModelResponse{}, ctx.Err()
	}
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{slow, says("Second answer.")}}, nil)})
	x.press("one\r")
	x.shows("waiting")
	x.press("\x03")
	x.shows("Cancelled.")
	x.press("two\r")
	x.shows("> two (queued)", "1 queued")
	close(ending)
	x.shows("The run ended: cancelled", "Second answer.", "!queued ·", "!working")
}

// slowTools are tools whose server starts when the person does not wait for it any more.
type slowTools struct{ tools }

func (*slowTools) Brief(ctx context.Context, _ agent.Identity, wait bool) (agent.Briefing, error) {
	if wait {
		<-ctx.Done()
		return agent.Briefing{}, context.Cause(ctx)
	}
	return agent.Briefing{Servers: []agent.ServerBriefing{{Name: "slow", Waiting: true}}}, nil
}

func TestEscapeSkipsTheWaitForServers(t *testing.T) {
	s, err := agent.New(t.Context(), agent.Options{Model: &script{answers: []answer{says("The answer.")}}, Tools: &slowTools{}})
	if err != nil {
		t.Fatal(err)
	}
	x := open(t, 80, 24, Options{Session: s})
	x.press("one\r")
	x.shows("waiting for slow (Esc starts without)")
	x.press("\x1b")
	x.shows("The answer.", "!waiting for")
}
