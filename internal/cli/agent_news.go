package cli

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
)

const (
	// newsInterval is how often a session at the terminal looks whether the store or a file of the configuration has
	// changed. It reads them then, and each forcedNews times without a change: a new file is noticed so.
	newsInterval = 2 * time.Second
	forcedNews   = 15
	// lastingFaults is how often reading must fail in a row before the person is told. A store may be busy.
	lastingFaults = 3
)

// withAsker calls work while questions go to the person of a session, and news if watch is set.
func (a *app) withAsker(ctx context.Context, asker *tui.Asker, watch bool, work func(ctx context.Context) error) error {
	a.session = &terminalSession{asker: asker}
	a.statusLine = NewStatusLineWriter(&tellingWriter{tell: asker.Tell}) // a log line would destroy the frame
	watching, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	if watch {
		w := newsWatcher{a: a, teller: newsTeller{tell: asker.Tell, told: map[string]bool{}}}
		group.Go(func() { w.run(watching) })
	}
	return work(ctx)
}

// A newsItem is something that waits for the person. An item with a key that was told is told again only after it was
// absent, and if it is about a server's state, after the server was ready.
type newsItem struct{ key, text string }

// A newsTeller tells the person once of each item.
type newsTeller struct {
	tell   func(string)
	told   map[string]bool // by newsItem.key
	faults int             // in a row
}

// update tells the items that were not told yet. awaited reports whether a server is configured and is not ready.
func (t *newsTeller) update(all []newsItem, awaited func(drawbridge.ServerID) bool) {
	t.faults = 0
	now := map[string]bool{}
	for _, item := range all {
		now[item.key] = true
		if !t.told[item.key] {
			t.tell(item.text)
		}
	}
	for key := range t.told {
		if server, ok := strings.CutPrefix(key, serverNews); ok {
			server, _, _ = strings.Cut(server, " ")
			now[key] = now[key] || awaited(drawbridge.ServerID(server))
		}
	}
	maps.DeleteFunc(now, func(_ string, kept bool) bool { return !kept })
	t.told = now
}

// fail tells an error once if it lasts.
func (t *newsTeller) fail(err error) {
	if t.faults++; t.faults == lastingFaults {
		t.tell("What waits for you cannot be read: " + safetext.Line(err.Error()))
	}
}

// A newsWatcher tells the person of each thing that waits for them, with the command that answers it. It belongs to one
// goroutine.
type newsWatcher struct {
	a      *app
	teller newsTeller

	// files are read for the news, and state describes them as they were read last; empty if they must be read.
	// unchanged counts the times that they had not changed.
	files     []string
	state     string
	unchanged int
	// credentials are those of the servers when they had these phases; nil if they must be read.
	phases      string
	credentials admin.CredentialStates
}

// run looks for news until ctx ends.
func (w *newsWatcher) run(ctx context.Context) {
	tick := time.NewTicker(newsInterval)
	defer tick.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look reads the news if something may have changed.
func (w *newsWatcher) look(ctx context.Context) {
	if w.a.session.commands.Load() > 0 {
		w.state, w.credentials = "", nil // a command that runs may just ask about the same
		return
	}
	state := describeFiles(w.files)
	if state != "" && state == w.state && w.unchanged < forcedNews {
		w.unchanged++
		return
	}
	all, rows, err := w.read(ctx)
	if w.unchanged = 0; ctx.Err() != nil {
		return
	}
	if err != nil {
		w.state = ""
		w.teller.fail(err)
		return
	}
	if w.a.session.commands.Load() > 0 {
		w.state = ""
		return
	}
	// Reading a store changes its files. A change by another process in this moment is noticed by the forced reading.
	w.state = describeFiles(w.files)
	w.teller.update(all, func(id drawbridge.ServerID) bool {
		return slices.ContainsFunc(rows, func(row drawbridge.ServerStatus) bool {
			return row.Server == id && row.Phase != drawbridge.Ready
		})
	})
}

// describeFiles returns a text that changes when one of the files does. It is empty for no files.
func describeFiles(paths []string) string {
	var b strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		} else {
			fmt.Fprintf(&b, "%s is absent\n", path)
		}
	}
	return b.String()
}

// serverNews begins the keys of items about the state of a server; the name and a blank follow.
const serverNews = "server "

// read returns what waits for the person: servers that need a sign-in or an approval or do not work, and definitions
// that are held. rows are the states of the servers.
func (w *newsWatcher) read(ctx context.Context) (all []newsItem, rows []drawbridge.ServerStatus, err error) {
	service := w.a.adminService()
	rows, list, err := service.ServerStatuses(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	w.files = nil
	store, err := gateway.StoreLocation(w.a.storeLocation, list.Settings, w.a.Env)
	if err == nil && !strings.Contains(store, "://") { // a database cannot be looked at without reading it
		w.files = append(slices.Clone(list.Sources), store, store+"-wal")
	}
	var phases strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&phases, "%s %s\n", row.Server, row.Phase)
	}
	if w.credentials == nil || w.phases != phases.String() {
		if w.credentials, err = service.CredentialStates(ctx, list.InForce()); err != nil {
			return nil, nil, err
		}
		w.phases = phases.String()
	}
	if len(rows) == 0 {
		all = append(all, newsItem{"", "No server is configured: /mcp add asks for one, and drawbridge setup copies those of " +
			"your other programs."})
	}
	for i, row := range w.credentials.AnnotateStatuses(rows) {
		rows[i] = row.ServerStatus
	}
	all = append(all, serverItems(rows)...)
	held, err := service.HeldToolsOf(ctx, list)
	if err != nil {
		return nil, nil, err
	}
	for _, h := range held {
		if h.Pin.Pending.Rejected {
			continue
		}
		server, label := safetext.Exact(string(h.Server)), safetext.Exact(h.Label())
		all = append(all, newsItem{"held " + server + " " + label + string(h.Pin.Pending.Definition), fmt.Sprintf(
			"The server %s changed %s, which is held until you decide: /shield accept %[1]s %[2]s", server, label)})
	}
	return all, rows, nil
}

// serverItems returns the servers that need a sign-in or an approval or do not work.
func serverItems(rows []drawbridge.ServerStatus) (all []newsItem) {
	for _, row := range rows {
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
		all = append(all, newsItem{serverNews + string(row.Server) + " " + string(row.Phase), text})
	}
	return all
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
