package tui

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/google/go-cmp/cmp"
)

// hostile has what must not reach a terminal: control sequences, characters that change the direction of text, and
// characters that cannot be seen.
const hostile = "a\x1b[2Jb\x1b]52;c;ZXZpbA==\x07c\x1b]0;title\x1b\\d\u202ee\u2066f\u200bg\u0085h\x9bi\rj\u2028k" +
	"\U000e0041l\ufeffm\x08n\x7fo&#27;[31mp&#x202e;q&#8203;r"

// assertSafe fails for lines with an escape sequence that is not a style of ours, and for invisible characters.
func assertSafe(t *testing.T, name string, lines []string) {
	t.Helper()
	for _, line := range lines {
		bare := line
		for {
			start := strings.Index(bare, "\x1b[")
			if start < 0 {
				break
			}
			end := strings.IndexFunc(bare[start+2:], func(r rune) bool { return r != ';' && !unicode.IsDigit(r) })
			if end < 0 || bare[start+2+end] != 'm' {
				t.Fatalf("%s: an escape sequence in %q", name, line)
			}
			bare = bare[:start] + bare[start+2+end+1:]
		}
		for _, r := range bare {
			if !safetext.Visible(r) {
				t.Fatalf("%s: %U in %q", name, r, line)
			}
		}
	}
}

func TestHostileText(t *testing.T) {
	md := newMarkdown(painter{colour: true}, false)
	for _, source := range []string{
		hostile, "# " + hostile, "> " + hostile, "- " + hostile, "```" + hostile + "\n" + hostile + "\n```",
		"```diff\n+" + hostile + "\n```", "[" + hostile + "](http://x/" + hostile + ")", "![" + hostile + "](x)",
		"<b>" + hostile + "</b>", "<div>\n" + hostile, "`" + hostile + "`", "    " + hostile, "<http://x/\x1b[2J>",
		"| a | b |\n|---|---|\n| " + hostile + " | " + hostile + " |\n", "[a](<\x1b[2J> \"t\")", "*" + hostile + "*",
		"[x]: http://e/\x1b[2J\n\n[x]", strings.Repeat("> ", 500) + hostile, strings.Repeat("- ", 500) + hostile,
		strings.Repeat("*", 3000) + hostile, strings.Repeat("[", 3000) + hostile, "| " + strings.Repeat("a|", 500) +
			"\n|" + strings.Repeat("-|", 500) + "\n" + hostile,
	} {
		for _, width := range []int{1, 10, 79} {
			assertSafe(t, source, md.render(source, width))
		}
	}
}

func TestHostileEvents(t *testing.T) {
	c := drawbridge.ToolCall{ID: "1", Name: hostile + "\nAllow this call?", Arguments: []byte(`"` + hostile + `"`)}
	q := agent.Question{ID: "q", Server: hostile, Tool: hostile, Reason: hostile, Message: hostile, URL: hostile,
		Arguments: []byte(`{"a":"` + hostile + `","requestedSchema":{"properties":{"` + "x\u202e" + `":{"title":"\u001b[2J"}}}}`)}
	result := &drawbridge.ToolResult{Text: hostile, Images: []drawbridge.Image{{MIMEType: hostile}}}
	progress := &agent.Progress{Progress: 1, Message: hostile}
	for _, plain := range []bool{false, true} {
		now := func() time.Time { return time.Time{} }
		tr := newTranscript(newMarkdown(painter{colour: !plain}, plain), 79, now)
		for _, e := range []agent.Event{
			{Kind: agent.RunStarted, Agent: "1", Text: hostile}, {Kind: agent.ThinkingDelta, Text: hostile},
			{Kind: agent.TextDelta, Text: hostile}, {Kind: agent.ModelRetried, Text: hostile},
			{Kind: agent.ToolStarted, Call: &c}, {Kind: agent.ToolProgress, Call: &c, Progress: progress},
			{Kind: agent.ToolAsked, Call: &c, Question: &q}, {Kind: agent.ToolFinished, Call: &c, Result: result,
				Details: &agent.CallDetails{Structured: []byte(`{"items":[{"text":"\u001b[2J\u202e"}],"tally":{},"diff":"@@\u001b[2J"}`)}},
			{Kind: agent.Notice, Text: hostile}, {Kind: agent.RunFinished, Outcome: agent.Failed, Err: hostile},
		} {
			assertSafe(t, string(e.Kind), tr.handle(shownEvent{Event: e}))
			assertSafe(t, string(e.Kind)+" live", tr.live(100))
		}
		assertSafe(t, "unfolded", tr.unfold())
		assertSafe(t, "pane", tr.pane(100))
		for _, kind := range []agent.QuestionKind{agent.AskApproval, agent.AskScript, agent.AskForm, agent.AskURL,
			agent.AskSampling, agent.AskPlan} {
			q.Kind = kind
			d := newDialog(agent.Event{Call: &c, Question: &q})
			assertSafe(t, "question", append(d.body(tr), d.title(), d.subject()))
			if d.form != nil {
				lines, _ := d.form.lines(tr, 100)
				assertSafe(t, "form", lines)
			}
		}
	}
}

// TestHugeResult shows a result of 50 MB, which a session would have cut, and one of 5 MB that a session has cut.
func TestHugeResult(t *testing.T) {
	line := "0123456789abcde\n"
	tr := newTranscript(newMarkdown(painter{}, false), 79, func() time.Time { return time.Time{} })
	got := tr.handle(shownEvent{Event: agent.Event{Kind: agent.ToolFinished, Call: &drawbridge.ToolCall{ID: "1", Name: "bash"},
		Result: &drawbridge.ToolResult{Text: strings.Repeat(line, 50<<20/len(line))}}})
	if diff := cmp.Diff([]string{"✓ bash", "  0123456789abcde (+16383 lines and more)"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if kept := len(tr.last.result); kept > maxUnfolded {
		t.Errorf("%d bytes are kept", kept)
	}
	box := &tools{call: func(context.Context, drawbridge.ToolCall, func(agent.CallUpdate)) (agent.CallOutcome, error) {
		return outcome(strings.Repeat(line, 5<<20/len(line)), nil), nil
	}}
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{
		says("", call("c1", "bash", `{}`)), says("Done."),
	}}, box)})
	x.press("Go\r")
	x.shows("✓ bash", "0123456789abcde (+", "Done.")
}

func TestNameWithLineFeeds(t *testing.T) {
	x := open(t, 80, 24, Options{Session: newSession(t, &script{answers: []answer{
		says("", call("c1", "bash\n\n✓ fs__read\x1b[2J", `{}`)), says("Done."),
	}}, &tools{})})
	x.press("Go\r")
	x.shows(`bash\n\n✓ fs__read\u001b[2J`, "Done.")
}

func FuzzMarkdown(f *testing.F) {
	f.Add(sample, 40)
	f.Add(hostile, 3)
	f.Add("| a |\n|--|\n| `b\\|c` |\n\n1) x\n\n   y\n~~~\nz", 20)
	md := newMarkdown(painter{colour: true}, false)
	f.Fuzz(func(t *testing.T, source string, width int) {
		width = min(max(width, 1), 200)
		whole := md.render(source, width)
		s := newSplitter()
		var pieces []string
		for rest := source; rest != ""; {
			n := min(len(rest), 1+len(rest)%7)
			for _, b := range s.add(rest[:n]) {
				pieces = append(pieces, md.block(b, width)...)
			}
			rest = rest[n:]
		}
		if b, ok := s.rest(); ok {
			md.block(b, width)
		}
		for _, b := range s.end() {
			pieces = append(pieces, md.block(b, width)...)
		}
		if strings.Join(whole, "\n") != strings.Join(pieces, "\n") {
			t.Errorf("in pieces %q, want %q", pieces, whole)
		}
	})
}
