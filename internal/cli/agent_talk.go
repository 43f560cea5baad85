package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
)

// A terminalSession is the session that a process holds at its terminal.
type terminalSession struct {
	asker *tui.Asker
	// gateway is the gateway of the session; nil for a session at the hub.
	gateway atomic.Pointer[gateway.Gateway]
	// commands is the number of commands that run.
	commands atomic.Int32
}

// A sessionTalk is the input and the output of a command of the command line that runs in a session. The command asks
// its questions in the session, each with all that it printed since the last one. Output of a command that goes on
// without a question, such as the address of a sign-in on another device, is shown after a short time.
type sessionTalk struct {
	asker   *tui.Asker // nil if the session has no person
	command string

	// mu guards the fields below. printed is what was not shown yet, and last is when it was printed. asking counts the
	// questions that wait.
	mu      sync.Mutex
	printed strings.Builder
	last    time.Time
	asking  int
}

// shownAfter is how long output waits for a question or the end of its command.
const shownAfter = time.Second

// runInSession runs a command and returns its exit code. A session at the terminal then uses what the command changed.
func (a *app) runInSession(ctx context.Context, t *sessionTalk, args []string) int {
	p := a.Process
	p.In, p.Out, p.Err = strings.NewReader(""), t, t
	words := append(a.inheritedFlags(), args...)
	if a.session == nil {
		return Main(ctx, words, p)
	}
	a.session.commands.Add(1)
	defer a.session.commands.Add(-1)
	t.asker = a.session.asker
	p.In = sessionInput{t}
	showing, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { t.showOutput(showing) })
	defer group.Wait()
	defer stop()
	code := Main(ctx, words, p)
	a.session.refresh(ctx, args)
	return code
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
		t.mu.Lock()
		ripe := t.asking == 0 && t.printed.Len() > 0 && time.Since(t.last) >= shownAfter
		t.mu.Unlock()
		if ripe {
			t.asker.TellOutput(t.take())
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

// take returns what was printed and not shown yet.
func (t *sessionTalk) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.printed.String()
	t.printed.Reset()
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

// refreshTimeout limits how long a command waits for the servers that it changed.
const refreshTimeout = 20 * time.Second

// refresh makes the gateway of a session use what a command changed: servers, sign-ins, rules and decisions about
// definitions. The words of the command name servers. The next prompt then has their tools. A hub does this by itself.
func (s *terminalSession) refresh(ctx context.Context, words []string) {
	g := s.gateway.Load()
	if g == nil || len(words) == 0 || !slices.Contains([]string{"mcp", "shield", "policy"}, words[0]) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	changes, err := g.Reload(ctx)
	if err != nil {
		s.asker.Tell("The session goes on with the configuration as it was: " + err.Error())
		return
	}
	concerned := slices.Concat(changes.Added, changes.Changed)
	for _, row := range g.Config().Mountable() {
		if slices.Contains(words, string(row.ID)) && !slices.Contains(concerned, row.ID) {
			concerned = append(concerned, row.ID)
		}
	}
	var mounts sync.WaitGroup
	for _, id := range concerned {
		mounts.Go(func() { _, _ = g.Mount(ctx, id) }) // the status has the outcome
	}
	mounts.Wait()
	if len(concerned) > 0 {
		_, _, _ = g.Relist(ctx, concerned...) // so has the status
	}
}
