package tui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

const (
	// maxThinking is how much of the model's thinking is kept for display, in bytes.
	maxThinking = 2 << 10
	// maxUnfolded is how much of a result Ctrl-O shows, in bytes.
	maxUnfolded = 256 << 10
)

// A transcript turns the events of a session into lines. It holds only the turn that has not ended.
type transcript struct {
	*markdown
	width int
	now   func() time.Time
	// graphics is how the terminal shows pictures, and pictureRows how many rows one may have.
	graphics    graphics
	pictureRows int

	answer   *splitter
	received bool // text of this turn has arrived
	thinking string
	calls    []*liveCall
	last     *liveCall // the last call that ended
	todo     []todoItem
	plan     string
}

// A liveCall is a call that runs, or the last one that ended.
type liveCall struct {
	agent    string
	call     drawbridge.ToolCall
	began    time.Time
	progress *agent.Progress
	asked    bool
	result   string
	diff     string
}

// A todoItem is an item of the list that the model keeps of its work.
type todoItem struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

func newTranscript(md *markdown, width int, now func() time.Time) *transcript {
	return &transcript{markdown: md, width: width, now: now, answer: newSplitter()}
}

// handle returns the lines that an event finishes.
func (t *transcript) handle(e shownEvent) []string {
	switch e.Kind {
	case agent.RunStarted:
		if e.Agent != "" {
			return t.note("started: "+safetext.Truncate(e.Text, 500, safetext.Bytes, "…"), e.Agent)
		}
	case agent.TextDelta:
		if e.Agent == "" {
			t.received, t.thinking = true, ""
			return t.blocks(t.answer.add(e.Text))
		}
	case agent.ThinkingDelta:
		if e.Agent == "" {
			t.thinking += e.Text
			t.thinking = t.thinking[max(0, len(t.thinking)-maxThinking):]
		}
	case agent.ModelRetried:
		return t.retried(e.Event)
	case agent.TurnFinished:
		return t.turnFinished(e.Event)
	case agent.ToolStarted:
		lines := t.flush(e.Agent)
		t.calls = append(t.calls, &liveCall{agent: e.Agent, call: *e.Call, began: t.now()})
		return lines
	case agent.ToolProgress:
		if c := t.find(e.Event); c != nil {
			c.progress = e.Progress
		}
	case agent.ToolAsked:
		if c := t.find(e.Event); c != nil {
			c.asked = true
		}
	case agent.ToolFinished:
		return t.finished(e)
	case agent.Condensed:
		return append(t.flush(""), t.note("Old turns were replaced by a summary.", e.Agent)...)
	case agent.Notice:
		return append(t.flush(e.Agent), t.note(e.Text, e.Agent)...)
	case agent.RunFinished:
		return t.runFinished(e.Event)
	}
	return nil
}

// find returns the call that an event is about.
func (t *transcript) find(e agent.Event) *liveCall {
	for _, c := range t.calls {
		if c.agent == e.Agent && c.call.ID == e.Call.ID {
			return c
		}
	}
	return nil
}

// blocks renders blocks that are complete.
func (t *transcript) blocks(all []block) (lines []string) {
	for _, b := range all {
		lines = append(lines, t.block(b, t.width)...)
	}
	return lines
}

// flush ends the text of the session's own agent.
func (t *transcript) flush(path string) []string {
	if path != "" {
		return nil
	}
	lines := t.blocks(t.answer.end())
	t.answer, t.thinking = newSplitter(), ""
	return lines
}

// retried begins the turn's text again. Lines that were printed stay, so the person is told.
func (t *transcript) retried(e agent.Event) []string {
	if e.Agent != "" {
		return nil
	}
	lines := t.flush("")
	if t.received {
		lines = append(lines, t.note("The text of this answer so far is void.", "")...)
	}
	t.received = false
	return append(lines, t.note("The model is asked again: "+e.Text, "")...)
}

func (t *transcript) turnFinished(e agent.Event) []string {
	if e.Agent != "" {
		return nil
	}
	if e.Message != nil {
		if !t.received {
			t.answer.add(e.Message.Text())
		}
		for _, p := range e.Message.Parts {
			if p.Image != nil {
				t.answer.add("\n\n[Image: " + safetext.Line(p.Image.MIMEType) + "]\n\n")
			}
		}
	}
	t.received = false
	return t.flush("")
}

func (t *transcript) runFinished(e agent.Event) []string {
	if e.Agent != "" {
		return t.note("ended: "+string(e.Outcome), e.Agent)
	}
	lines := t.flush("")
	t.calls = nil
	if e.Outcome == agent.Completed {
		return lines
	}
	text := "The run ended: " + strings.ReplaceAll(string(e.Outcome), "_", " ")
	if e.Err != "" && e.Outcome != agent.Cancelled {
		text += ": " + e.Err
	}
	return append(lines, t.wrap([]span{{"\n" + clean(text), warnStyle}}, t.width)...)
}

// note returns a notice. path names the sub-agent.
func (t *transcript) note(text, path string) []string {
	if path != "" {
		text = "[agent " + path + "] " + text
	}
	return t.wrap([]span{{clean(text), dimStyle}}, t.width)
}

// finished returns the folded result of a call.
func (t *transcript) finished(e shownEvent) []string {
	lines := t.flush(e.Agent)
	c := t.find(e.Event)
	if c == nil { // a call that was refused
		c = &liveCall{agent: e.Agent, call: *e.Call}
	}
	for i, other := range t.calls {
		if other == c {
			t.calls = append(t.calls[:i:i], t.calls[i+1:]...)
			break
		}
	}
	result := e.Result
	if result == nil {
		result = &drawbridge.ToolResult{}
	}
	c.result = safetext.Truncate(unfenced(result.Text), maxUnfolded, safetext.Bytes, "…")
	state, details := "ok", e.Details
	switch {
	case details != nil && details.Unknown:
		state = "unknown"
	case details != nil && details.Cancelled:
		state = "cancelled"
	case result.IsError:
		state = "error"
	}
	if details != nil {
		c.diff = resultDiff(details.Structured)
		t.takeTodo(details.Structured)
	}
	t.takePlan(c.call)
	t.last = c
	lines = append(lines, t.callLine(c, state, e.Elapsed))
	lines = append(lines, t.folded(c, result)...)
	if c.diff == "" {
		lines = append(lines, t.imageLines(result.Images, e.pictures)...)
	}
	return lines
}

// callLine returns the line of a call with its state and time.
func (t *transcript) callLine(c *liveCall, state string, elapsed time.Duration) string {
	mark, s := "✓", okStyle
	switch state {
	case "error":
		mark, s = "✗", badStyle
	case "unknown":
		mark, s = "?", warnStyle
	case "cancelled":
		mark, s = "-", dimStyle
	case "running":
		mark, s = "●", warnStyle
	case "asks":
		mark, s = "?", warnStyle
	}
	if t.plain {
		mark = "Tool " + state + ":"
	} else if state != "ok" && state != "running" && state != "error" {
		mark += " " + state
	}
	name := cut(string(c.call.Name), max(t.width/2, 8))
	if c.agent != "" {
		name = "[agent " + c.agent + "] " + name
	}
	tail := ""
	if elapsed >= 100*time.Millisecond {
		tail = " " + elapsed.Round(100*time.Millisecond).String()
	}
	room := t.width - len([]rune(mark)) - len([]rune(name)) - len(tail) - 2
	arguments := ""
	if room > 8 && len(c.call.Arguments) > 0 && string(c.call.Arguments) != "{}" {
		arguments = " " + cut(string(c.call.Arguments), room)
	}
	return t.paint(s, mark) + " " + t.paint(boldStyle, name) + t.paint(dimStyle, arguments+tail)
}

// folded returns the first line of a result, or its diff.
func (t *transcript) folded(c *liveCall, result *drawbridge.ToolResult) (lines []string) {
	if c.diff != "" {
		return t.diffLines(c.diff, t.width, maxDiffLines)
	}
	text := strings.TrimSpace(c.result)
	first, rest, _ := strings.Cut(text, "\n")
	if first != "" {
		more := ""
		if rest != "" {
			more = fmt.Sprintf(" (+%d lines)", strings.Count(rest, "\n")+1)
			if len(result.Text) > maxUnfolded {
				more = " (+" + more[3:len(more)-1] + " and more)"
			}
		}
		lines = append(lines, t.paint(dimStyle, "  "+cut(first, t.width-4-len(more))+more))
	}
	return lines
}

// unfold returns the whole arguments and the whole result of the last call.
func (t *transcript) unfold() []string {
	if t.last == nil {
		return t.note("No call has ended yet.", "")
	}
	lines := []string{"", t.paint(boldStyle, cut(string(t.last.call.Name), t.width))}
	lines = append(lines, t.code(prettyJSON(t.last.call.Arguments), "", false, t.width)...)
	if t.last.diff != "" {
		lines = append(lines, t.diffLines(t.last.diff, t.width, 0)...)
	}
	return append(lines, t.code(t.last.result, "", false, t.width)...)
}

// takeTodo takes the list of a todo tool from the structured content of its result.
func (t *transcript) takeTodo(structured json.RawMessage) {
	var v struct {
		Items []todoItem     `json:"items"`
		Tally map[string]int `json:"tally"`
	}
	if json.Unmarshal(structured, &v) == nil && v.Tally != nil {
		t.todo = v.Items
	}
}

// takePlan takes the plan from the arguments of a call that presents one.
func (t *transcript) takePlan(c drawbridge.ToolCall) {
	var v struct {
		Plan string `json:"plan"`
	}
	if json.Unmarshal(c.Arguments, &v) == nil && v.Plan != "" {
		t.plan = v.Plan
	}
}

// answered takes the answer to the question of a call: the call goes on.
func (t *transcript) answered(path, call string) {
	for _, c := range t.calls {
		if c.agent == path && c.call.ID == call {
			c.asked = false
		}
	}
}

// live returns the last lines of what has not ended, at most limit.
func (t *transcript) live(limit int) (lines []string) {
	if b, ok := t.answer.rest(); ok {
		lines = t.block(b, t.width)
	} else if t.thinking != "" {
		lines = t.wrap([]span{{clean(t.thinking), dimStyle}}, t.width)
		lines = lines[max(0, len(lines)-3):]
	}
	for _, c := range t.calls {
		state := "running"
		if c.asked {
			state = "asks"
		}
		elapsed := t.now().Sub(c.began).Truncate(time.Second)
		lines = append(lines, t.callLine(c, state, elapsed))
		if c.progress != nil {
			lines = append(lines, t.paint(dimStyle, "  "+cut(progressText(*c.progress, t.plain), t.width-2)))
		}
	}
	return lines[max(0, len(lines)-limit):]
}

// progressText returns how far a call is.
func progressText(p agent.Progress, plain bool) string {
	if p.Total <= 0 {
		return strings.TrimSpace(fmt.Sprintf("%g %s", p.Progress, p.Message))
	}
	part := min(max(p.Progress/p.Total, 0), 1)
	text := fmt.Sprintf("%3.0f%% %s", part*100, p.Message)
	if plain {
		return text
	}
	const cells = 20
	full := int(part * cells)
	return strings.Repeat("█", full) + strings.Repeat("░", cells-full) + " " + text
}

// pane returns the plan and the todo list.
func (t *transcript) pane(limit int) (lines []string) {
	if t.plan != "" {
		lines = append(lines, t.paint(headingStyle, "Plan"))
		lines = append(lines, t.render(t.plan, t.width)...)
	}
	lines = append(lines, t.paint(headingStyle, "Todo"))
	if len(t.todo) == 0 {
		lines = append(lines, t.paint(dimStyle, "  no items"))
	}
	for _, item := range t.todo {
		mark := map[string]string{"done": "[x]", "active": "[>]"}[item.Status]
		if mark == "" {
			mark = "[ ]"
		}
		lines = append(lines, "  "+cut(mark+" "+item.Text, t.width-2))
	}
	if len(lines) > limit {
		lines = append(lines[:max(limit-1, 0)], t.paint(dimStyle, fmt.Sprintf("  … %d more lines", len(lines)-limit+1)))
	}
	return lines
}

// unfenced returns a result without the two lines that mark it as foreign for the model. Rules that the text matched stay.
func unfenced(text string) string {
	const prefix = "[TOOL_OUTPUT::"
	first, rest, ok := strings.Cut(text, "\n")
	word, source, isFence := strings.Cut(strings.TrimPrefix(first, prefix), "::BEGIN ")
	inner, ended := strings.CutSuffix(rest, prefix+word+"::END]")
	if !ok || !isFence || !ended || !strings.HasPrefix(first, prefix) {
		return text
	}
	inner = strings.TrimSuffix(inner, "\n")
	if _, rules, flagged := strings.Cut(strings.TrimSuffix(source, "]"), " flagged="); flagged {
		return "flagged: " + rules + "\n" + inner
	}
	return inner
}

// prettyJSON returns JSON on several lines, with dangerous characters escaped and numbers as they are.
func prettyJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return safetext.Exact(string(raw))
	}
	return string(safetext.JSON(b.Bytes()))
}
