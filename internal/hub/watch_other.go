//go:build !linux

package hub

import (
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// A notifyWatcher is the fileWatcher of other systems than Linux. It watches directories, so writes to other files in
// them wake it. watch and close must be called from one goroutine.
type notifyWatcher struct {
	w     *fsnotify.Watcher
	out   chan fileEvent
	done  chan struct{}
	works sync.WaitGroup

	mu    sync.Mutex
	files []string
}

func newFileWatcher() (fileWatcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	n := &notifyWatcher{w: w, out: make(chan fileEvent), done: make(chan struct{})}
	n.works.Go(n.translate)
	return n, nil
}

func (n *notifyWatcher) events() <-chan fileEvent { return n.out }

func (n *notifyWatcher) close() {
	close(n.done)
	_ = n.w.Close()
	n.works.Wait()
}

func (n *notifyWatcher) watch(files []string) (more, missing bool) {
	n.mu.Lock()
	n.files = files
	n.mu.Unlock()
	watched := n.w.WatchList()
	for _, dir := range watchedDirs(files) {
		switch {
		case slices.Contains(watched, dir):
		case n.w.Add(dir) == nil:
			more = true
		default:
			missing = true
		}
	}
	return more, missing
}

// translate turns the events of fsnotify into those of a fileWatcher.
func (n *notifyWatcher) translate() {
	for {
		var e fileEvent
		select {
		case <-n.done:
			return
		case event, ok := <-n.w.Events:
			if !ok {
				return
			}
			n.mu.Lock()
			ours := slices.Contains(n.files, event.Name)
			n.mu.Unlock()
			e = fileEvent{written: ours && event.Op != fsnotify.Chmod, moved: event.Op&^(fsnotify.Chmod|fsnotify.Write) != 0}
		case err, ok := <-n.w.Errors:
			if !ok {
				return
			}
			e.err = err
		}
		if e == (fileEvent{}) {
			continue
		}
		select {
		case n.out <- e:
		case <-n.done:
			return
		}
	}
}
