package hub

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// quietPeriod is how long the configuration files must be unchanged before they are read, because editors write a file
// several times.
const quietPeriod = 100 * time.Millisecond

// rescanInterval is the interval between two searches for configuration files in directories that could not be watched
// when they did not exist.
const rescanInterval = 5 * time.Second

// A fileEvent reports changes of watched files. written is set if a watched file was written. moved is set if a watched
// directory has another file, or another file of the same name: the files must be compared. err is an error of the
// watcher, which may have missed changes.
type fileEvent struct {
	written, moved bool
	err            error
}

// A fileWatcher watches files that may be missing, replaced, or links. Where the system permits it, writes to other
// files of the same directories do not wake it. newFileWatcher returns one for this system.
type fileWatcher interface {
	// watch sets the watched files. It reports whether it began to watch another directory, and whether a directory is
	// missing, so that watch must be called again later.
	watch(files []string) (more, missing bool)
	// events returns the channel of events.
	events() <-chan fileEvent
	// close ends the watcher and waits until it has ended.
	close()
}

// watchConfig reloads the configurations of all clients when one of their files changes, until ctx ends.
func (h *hub) watchConfig(ctx context.Context) {
	w, err := newFileWatcher()
	if err != nil {
		h.log.Warn("the configuration files are not watched: run drawbridge mcp reload after a change", "err", err)
		<-ctx.Done()
		return
	}
	defer w.close()
	var due, rescan <-chan time.Time
	states := fileStates{}
	look := func() (changed bool) {
		files := h.configFiles()
		more, missing := w.watch(files)
		rescan = nil
		if missing {
			rescan = time.After(rescanInterval)
		}
		// The files are compared after they are watched: a change is either seen here or reported later.
		return states.update(files) || more // a new directory may already contain a file
	}
	look()
	for {
		changed := false
		select {
		case <-ctx.Done():
			return
		case <-h.newClients:
			look()
		case e := <-w.events():
			if e.err != nil {
				h.log.Warn("watching the configuration went wrong, it is read again", "err", e.err)
			}
			changed = e.written || e.err != nil
			if e.moved || e.err != nil {
				changed = look() || changed
			}
		case <-rescan:
			changed = look()
		case <-due:
			due = nil
			if did, err := h.reloadAll(ctx, ReloadReport{}); err == nil {
				h.logReload(did)
			}
		}
		if changed {
			due = time.After(quietPeriod)
		}
	}
}

// fileStates are the states in which files were last seen, by path; nil for a missing file.
type fileStates map[string]os.FileInfo

// update stores the states of the files. It reports whether a file differs from its last state. Files without a last
// state do not count.
func (s fileStates) update(files []string) (changed bool) {
	for _, file := range files {
		now, err := os.Stat(file)
		if err != nil {
			now = nil
		}
		before, known := s[file]
		s[file] = now
		switch {
		case !known, before == nil && now == nil:
		case before == nil || now == nil || !os.SameFile(before, now) || before.Size() != now.Size() ||
			!before.ModTime().Equal(now.ModTime()):
			changed = true
		}
	}
	return changed
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

// configFiles returns the paths of the configuration files of all clients.
func (h *hub) configFiles() (files []string) {
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
	return slices.Compact(files)
}

// maxLinks is how many links watchedDirs follows.
const maxLinks = 16

// watchedDirs returns the directories in which a change may replace one of the files: the directory of each file and of
// each file that it links to.
func watchedDirs(files []string) (dirs []string) {
	for _, file := range files {
		for range maxLinks {
			if dir := filepath.Dir(file); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
			target, err := os.Readlink(file)
			if err != nil {
				break
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(file), target)
			}
			file = target
		}
	}
	return dirs
}
