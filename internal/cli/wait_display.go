package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/command"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// errInterruptedAtQuestion is the error of a request whose user pressed Ctrl-C when asked for an approval.
var errInterruptedAtQuestion = fmt.Errorf("interrupted while the call waited for approval%w", ExitError(130))

// A waitDisplay shows why a request waits. The status line of a terminal shows the start of servers and the progress of
// a tool. Calls that wait for approval are printed on standard error, and at a terminal the user is asked for the
// answer.
type waitDisplay struct {
	r      requester
	ctx    context.Context // of the request
	cancel context.CancelCauseFunc
	asking sync.WaitGroup

	mu       sync.Mutex
	question bool // a question is open; no status line is drawn
}

// newWaitDisplay returns the context of the request and the display. The context ends when the user presses Ctrl-C at a
// question.
func (r requester) newWaitDisplay(ctx context.Context) (context.Context, *waitDisplay) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &waitDisplay{r: r, ctx: ctx, cancel: cancel}
}

// close removes the status line and ends an open question.
func (d *waitDisplay) close() {
	d.cancel(nil)
	d.asking.Wait()
	if IsTerminal(d.r.a.Err) {
		d.r.a.statusLine.SetStatus("")
	}
}

// event shows an event of the request.
func (d *waitDisplay) event(e command.Event) {
	switch {
	case e.Kind == command.StartingEvent:
		d.setStatus(formatStarting(e))
	case e.Kind == command.ProgressEvent && e.Progress != nil && d.r.bar && e.Progress.Total > 0:
		d.setStatus(formatProgressBar(int(e.Progress.Progress), int(e.Progress.Total), 30))
	case e.Kind == command.ProgressEvent && e.Progress != nil:
		d.setStatus(formatProgress(*e.Progress))
	case e.Kind == command.ApprovalEvent && e.Approval != nil:
		d.showApproval(*e.Approval)
	}
}

func (d *waitDisplay) setStatus(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.question && IsTerminal(d.r.a.Err) {
		d.r.a.statusLine.SetStatus(line)
	}
}

// formatStarting returns the status line of a server that starts.
func formatStarting(e command.Event) string {
	why := ""
	switch e.Program {
	case "npx", "npx.cmd", "bunx", "pnpx":
		why = "npm downloads it on the first start, "
	case "uvx", "pipx", "uv":
		why = "Python packages are downloaded on the first start, "
	case "docker", "podman":
		why = "the image is downloaded on the first start, "
	}
	if !e.First {
		why = ""
	}
	return safetext.Sprintf("starts %s: %s%d s, Ctrl-C stops", e.Server, why, e.Seconds)
}

// formatProgress returns the status line of a tool's progress.
func formatProgress(p command.Progress) string {
	line := fmt.Sprintf("%.4g", p.Progress)
	if p.Total > 0 {
		line = fmt.Sprintf("%.4g of %.4g", p.Progress, p.Total)
	}
	if p.Message != "" {
		line += "  " + truncateEscaped(p.Message, 60)
	}
	return line
}

// formatWait returns the time left for an answer, such as "5m" or "1m30s".
func formatWait(until time.Time) string {
	left := time.Until(until).Round(time.Second)
	text := left.String()
	if left >= time.Minute && left%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

// showApproval shows a call that waits for approval. At a terminal it starts a goroutine that asks for the answer;
// otherwise it prints the command that shows the call.
func (d *waitDisplay) showApproval(p command.Approval) {
	a := d.r.a
	if !IsInteractive(a.In, a.Err) {
		safetext.Fprintf(a.Err, "waits for approval (%s): drawbridge ask show %s\n", formatWait(p.Until), p.ID)
		return
	}
	d.setStatus("")
	d.mu.Lock()
	d.question = true
	d.mu.Unlock()
	d.asking.Go(func() {
		d.ask(p)
		d.mu.Lock()
		d.question = false
		d.mu.Unlock()
	})
}

// ask shows a call, asks for the answer, and sends the answer. The question ends when the request ends. Ctrl-C at the
// question cancels the request.
func (d *waitDisplay) ask(p command.Approval) {
	a := d.r.a
	fmt.Fprintf(a.Err, "%s\n", formatPendingCall(admin.PendingCall{ID: p.ID, Until: p.Until, Call: p.Call}))
	person, ok := StartDialogue(d.ctx, a.In, a.Err)
	if !ok {
		return
	}
	defer person.Close()
	if err := person.DiscardInput(); err != nil {
		person.Say("keys typed before this cannot be dropped: answer with drawbridge ask")
		return
	}
	question := fmt.Sprintf("waits for approval (%s; or: drawbridge ask): allow once?", formatWait(p.Until))
	allow, err := person.Confirm(question, false)
	switch {
	case d.ctx.Err() != nil, errors.Is(err, io.EOF):
		person.Close()
		fmt.Fprintln(a.Err) // the question stays on its line
		if d.ctx.Err() == nil {
			d.cancel(errInterruptedAtQuestion)
		}
		return
	case err == nil:
		err = d.r.answerApproval(d.ctx, p.ID, allow)
	}
	if err != nil && d.ctx.Err() == nil {
		person.Say(err.Error())
	}
}
