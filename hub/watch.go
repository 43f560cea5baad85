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

// quiet is how long the files must have been left alone before they are read: editors write more than once.
const quiet = 100 * time.Millisecond

// lookAgain is how often it is looked for files and directories that came into being where none could be watched.
const lookAgain = 5 * time.Second

// watch reads the configuration again when a file of it changes, until ctx ends. Directories are watched, and not the files
// in them, which editors replace.
func (h *hub) watch(ctx context.Context) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		h.log.Warn("the configuration is not watched: drawbridge mcp reload has it read again", "err", err)
		<-ctx.Done()
		return
	}
	defer w.Close()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	var due <-chan time.Time
	files, _ := h.follow(w)
	look := func() {
		var more bool
		if files, more = h.follow(w); more {
			due = time.After(quiet) // there may be a file in what came into being
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.arrived:
			files, _ = h.follow(w)
		case e := <-w.Events:
			if e.Op != fsnotify.Chmod && slices.Contains(files, e.Name) {
				due = time.After(quiet)
			}
			if e.Has(fsnotify.Create) {
				look()
			}
		case err := <-w.Errors:
			h.log.Warn("watching the configuration went wrong, it is read again", "err", err)
			due = time.After(quiet)
		case <-tick.C:
			look()
		case <-due:
			due = nil
			if did, err := h.reload(ctx, Reloaded{}); err == nil {
				h.noted(did)
			}
		}
	}
}

// noted logs what a change of the files came to.
func (h *hub) noted(r Reloaded) {
	for _, text := range r.Errors {
		h.log.Warn("the configuration changed and was not taken over", "err", text)
	}
	if !r.None() {
		h.log.Info("the configuration changed", "added", r.Added, "removed", r.Removed, "changed", r.Changed)
	}
}

// follow watches the directories of all files that guests' configurations are read from, and gives those files. A directory
// that does not exist yet is looked for again; more says that one came into being.
func (h *hub) follow(w *fsnotify.Watcher) (files []string, more bool) {
	h.mu.Lock()
	guests := slices.Clone(h.guests)
	h.mu.Unlock()
	for _, g := range guests {
		c := g.config
		theirs, err := config.Files(config.Options{Paths: c.Paths, Dir: c.Dir, LookupEnv: c.LookupEnv})
		if err != nil {
			continue // it could be read when the guest came: when it can be again, the files are those of the others
		}
		files = append(files, theirs...)
		if lock := gateway.LockPlace(c); lock != "" {
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
