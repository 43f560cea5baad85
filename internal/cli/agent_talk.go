package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
)

// A terminalSession is the session that a process holds at its terminal.
type terminalSession struct {
	asker *tui.Asker
	// commands is the number of commands that run.
	commands atomic.Int32
}

// A sessionTalk is the input and the output of a command of the command line that runs in a session. The command asks
// its questions in the session, each with all that it printed since the last one. Output of a command that goes on
// without a question, such as the address of a sign-in on another device, is shown after a short time.
type sessionTalk struct {
	asker   *tui.Asker
	command string
	// reloads is set if the session reads the configuration after the command. vault is that of the session.
	reloads bool
	vault   *vaultOpener

	// mu guards the fields below. printed is what was not shown yet, and last is when it was printed. asking counts the
	// questions that wait. shown is set if something was shown.
	mu      sync.Mutex
	printed strings.Builder
	last    time.Time
	asking  int
	shown   bool
}

// shownAfter is how long output waits for a question or the end of its command.
const shownAfter = time.Second

// runInSession runs a command and returns its exit code. The output that is not shown yet is in t.
func (a *app) runInSession(ctx context.Context, t *sessionTalk, args []string) int {
	p := a.Process
	p.In, p.Out, p.Err = sessionInput{t}, t, t
	showing, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { t.showOutput(showing) })
	defer group.Wait()
	defer stop()
	return Main(ctx, append(a.inheritedFlags(), args...), p)
}

// inheritedFlags returns the persistent flags of this command, for a command that it runs.
func (a *app) inheritedFlags() (flags []string) {
	for _, path := range a.configPaths {
		flags = append(flags, "--mcp="+path)
	}
	if a.storeLocation != "" {
		flags = append(flags, "--store="+a.storeLocation)
	}
	if a.naming != "" {
		flags = append(flags, "--naming="+a.naming)
	}
	if a.verbose {
		flags = append(flags, "--verbose")
	}
	return flags
}

// showOutput shows output that has waited long enough, until ctx ends.
func (t *sessionTalk) showOutput(ctx context.Context) {
	tick := time.NewTicker(shownAfter / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if text := t.takeRipe(); text != "" {
			t.asker.TellOutput(text)
		}
	}
}

// Write takes output of the command.
func (t *sessionTalk) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = time.Now()
	return t.printed.Write(p)
}

// takeRipe returns what was printed and has waited long enough; empty if there is none.
func (t *sessionTalk) takeRipe() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asking > 0 || time.Since(t.last) < shownAfter {
		return ""
	}
	return t.takeLocked()
}

// take returns what was printed and not shown yet.
func (t *sessionTalk) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.takeLocked()
}

func (t *sessionTalk) takeLocked() string {
	text := t.printed.String()
	t.printed.Reset()
	t.shown = t.shown || text != ""
	return text
}

// finish returns the output that was not shown yet, or the exit code of a command that failed without any output.
func (t *sessionTalk) finish(code int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimRight(t.takeLocked(), "\n")
	if !t.shown && code != exitOK {
		text = fmt.Sprintf("exit code %d", code)
	}
	return text
}

// A sessionInput is the input of a command in a session: a person who answers questions, and no bytes.
type sessionInput struct{ talk *sessionTalk }

// Read returns io.EOF.
func (sessionInput) Read([]byte) (int, error) { return 0, io.EOF }

// ask implements person.
func (i sessionInput) ask(ctx context.Context, question string, kind tui.ReplyKind) (string, error) {
	t := i.talk
	count := func(n int) {
		t.mu.Lock()
		t.asking += n
		t.mu.Unlock()
	}
	count(1)
	defer count(-1)
	return t.asker.Ask(ctx, tui.CommandQuestion{Command: t.command, Text: t.take(), Kind: kind,
		Question: strings.TrimSpace(safetext.Line(question))})
}

// say implements person.
func (i sessionInput) say(text string) { _, _ = io.WriteString(i.talk, safetext.Text(text)+"\n") } // Write never fails

// changingVerbs are the commands after which a session reads the configuration again: they change servers, sign-ins or
// decisions about definitions.
var changingVerbs = map[string][]string{
	"mcp":    {"add", "remove", "enable", "disable", "approve", "reject", "auth", "reauth", "unauth"},
	"shield": {"accept", "reject", "unlock", "trust"},
}

// changedBy reports whether a command of the command line changes something that a session uses. rest are the words
// after the verb, which may name servers.
func changedBy(words []string) (rest []string, changes bool) {
	cmd, rest, err := NewRootCommand(Process{}).Find(words)
	if err != nil || !cmd.HasParent() {
		return nil, false
	}
	flags := rest
	if i := slices.Index(rest, "--"); i >= 0 {
		flags = rest[:i]
	}
	if slices.Contains(flags, "--help") || slices.Contains(flags, "-h") {
		return nil, false
	}
	return rest, slices.Contains(changingVerbs[cmd.Parent().Name()], cmd.Name())
}

// refresh makes the gateway of the session use what a command changed. The next prompt then has the tools. It returns
// a text for the person. A hub does this by itself.
func (c sessionCommands) refresh(ctx context.Context, words []string, code int) string {
	tools := c.h.current().tools
	if code != exitOK || tools == nil || tools.local == nil {
		return ""
	}
	rest, changes := changedBy(words)
	if !changes {
		return ""
	}
	named := []drawbridge.ServerID{""} // no server has this name
	for _, word := range rest {
		named = append(named, drawbridge.ServerID(word))
	}
	if _, err := tools.reload(ctx, named...); err != nil {
		return "The session could not use it yet: " + safetext.Line(err.Error()) + ". /reload tries again."
	}
	return "This session uses it."
}
