package cli

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
)

// newsInterval is how often a session at the terminal looks for something that waits for the person.
const newsInterval = 2 * time.Second

// withAsker calls work while questions and news go to the person of a session.
func (a *app) withAsker(ctx context.Context, asker *tui.Asker, work func(ctx context.Context) error) error {
	a.session = &terminalSession{asker: asker}
	a.statusLine = NewStatusLineWriter(&tellingWriter{tell: asker.Tell}) // a log line would destroy the frame
	watching, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() { a.watchNews(watching, asker.Tell) })
	return work(ctx)
}

// A newsItem is something that waits for the person. Items with the same key are told once.
type newsItem struct{ key, text string }

// watchNews tells the person once of each thing that waits for them, with the command that answers it.
func (a *app) watchNews(ctx context.Context, tell func(string)) {
	tick := time.NewTicker(newsInterval)
	defer tick.Stop()
	told := map[string]bool{}
	for {
		all, err := a.news(ctx)
		// A store that is busy is read again. A command that runs may just ask about the same.
		if err == nil && a.session.commands.Load() == 0 {
			now := map[string]bool{}
			for _, item := range all {
				if now[item.key] = true; !told[item.key] {
					tell(item.text)
				}
			}
			told = now
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// news returns what waits for the person: servers that need a sign-in or an approval or do not work, and definitions
// that are held.
func (a *app) news(ctx context.Context) (all []newsItem, err error) {
	service := a.adminService()
	rows, list, err := service.ServerStatuses(ctx, false)
	if err != nil {
		return nil, err
	}
	credentials, err := service.CredentialStates(ctx, list.InForce())
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		all = append(all, newsItem{"", "No server is configured: /mcp add asks for one, and drawbridge setup copies those of " +
			"your other programs."})
	}
	for _, row := range credentials.AnnotateStatuses(rows) {
		name := safetext.Exact(string(row.Server))
		text := ""
		switch row.Phase {
		case drawbridge.NeedsSignIn:
			text = fmt.Sprintf("The server %s needs a sign-in: /mcp auth %[1]s", name)
		case drawbridge.NeedsApproval:
			text = fmt.Sprintf("The server %s waits for your approval: /mcp approve %[1]s", name)
		case drawbridge.Faulted:
			text = fmt.Sprintf("The server %s does not work: %s (/mcp test %[1]s)", name, safetext.Line(row.Fault))
		default:
			continue
		}
		all = append(all, newsItem{name + " " + string(row.Phase), text})
	}
	held, err := service.HeldTools(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		if h.Pin.Pending.Rejected {
			continue
		}
		server, label := safetext.Exact(string(h.Server)), safetext.Exact(h.Label())
		all = append(all, newsItem{"held " + server + " " + label + string(h.Pin.Pending.Definition), fmt.Sprintf(
			"The server %s changed %s, which is held until you decide: /shield accept %[1]s %[2]s", server, label)})
	}
	return all, nil
}

// A tellingWriter tells each line that is written to it.
type tellingWriter struct {
	tell func(string)

	mu   sync.Mutex
	line []byte
}

// Write takes text; a line without an end waits for it.
func (w *tellingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = append(w.line, p...)
	for {
		i := bytes.IndexByte(w.line, '\n')
		if i < 0 {
			return len(p), nil
		}
		w.tell(string(w.line[:i]))
		w.line = w.line[i+1:]
	}
}
