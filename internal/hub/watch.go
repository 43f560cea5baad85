package hub

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/fsnotify/fsnotify"
)

// quietPeriod is how long the configuration files must be unchanged before they are read, because editors write a file
// several times.
const quietPeriod = 100 * time.Millisecond

// rescanInterval is the interval between two searches for configuration files in directories that could not be watched
// when they did not exist.
const rescanInterval = 5 * time.Second

// watchConfig reloads the configurations of all clients when one of their files changes, until ctx ends. It watches
// directories instead of files, because editors replace files.
func (h *hub) watchConfig(ctx context.Context) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		h.log.Warn("the configuration files are not watched: run drawbridge mcp reload after a change", "err", err)
		<-ctx.Done()
		return
	}
	defer w.Close()
	tick := time.NewTicker(rescanInterval)
	defer tick.Stop()
	var due <-chan time.Time
	files, _ := h.watchConfigFiles(w)
	look := func() {
		var more bool
		if files, more = h.watchConfigFiles(w); more {
			due = time.After(quietPeriod) // a new directory may already contain a file
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.newClients:
			files, _ = h.watchConfigFiles(w)
		case e := <-w.Events:
			if e.Op != fsnotify.Chmod && slices.Contains(files, e.Name) {
				due = time.After(quietPeriod)
			}
			if e.Has(fsnotify.Create) {
				look()
			}
		case err := <-w.Errors:
			h.log.Warn("watching the configuration went wrong, it is read again", "err", err)
			due = time.After(quietPeriod)
		case <-tick.C:
			look()
		case <-due:
			due = nil
			if did, err := h.reloadAll(ctx, ReloadReport{}); err == nil {
				h.logReload(did)
			}
		}
	}
}

// logReload logs the result of a reload.
func (h *hub) logReload(r ReloadReport) {
	for _, text := range r.Errors {
		h.log.Warn("the changed configuration was not applied", "err", text)
	}
	if !r.IsEmpty() {
		h.log.Info("the configuration changed", "added", r.Added, "removed", r.Removed, "changed", r.Changed)
	}
}

// watchConfigFiles watches the directories of the configuration files of all clients, and returns the paths of these
// files. more reports whether it began to watch another directory.
func (h *hub) watchConfigFiles(w *fsnotify.Watcher) (files []string, more bool) {
	h.mu.Lock()
	clients := slices.Clone(h.clients)
	h.mu.Unlock()
	for _, g := range clients {
		c := g.config
		theirs, err := config.SourceFiles(config.Options{Paths: c.Paths, Dir: c.Dir, LookupEnv: c.LookupEnv})
		if err != nil {
			continue // this client's configuration cannot be read now
		}
		files = append(files, theirs...)
		if lock := gateway.LockfilePath(c); lock != "" {
			files = append(files, lock)
		}
	}
	slices.Sort(files)
	files = slices.Compact(files)
	watched := w.WatchList()
	for _, file := range files {
		dir := filepath.Dir(file)
		if slices.Contains(watched, dir) {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() && w.Add(dir) == nil {
			watched, more = append(watched, dir), true
		}
	}
	return files, more
}
