package hub

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	// watchedInDirs are the changes of a directory that may replace a file. Writes to files are not among them: a
	// directory may have files that other programs write all the time.
	watchedInDirs = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF |
		unix.IN_MOVE_SELF | unix.IN_ONLYDIR
	// watchedInFiles are the changes of a file itself.
	watchedInFiles = unix.IN_MODIFY | unix.IN_CLOSE_WRITE
)

// An inotifyWatcher is the fileWatcher of Linux. It watches each file, and its directory for the replacement of the
// file. watch and close must be called from one goroutine.
type inotifyWatcher struct {
	fd      int
	file    *os.File
	out     chan fileEvent
	done    chan struct{}
	reading sync.WaitGroup
	reads   atomic.Int64 // how often events woke the watcher, for tests

	mu    sync.Mutex
	dirs  map[string]int32 // descriptors of watches, by path
	files map[string]int32
}

func newFileWatcher() (fileWatcher, error) { return newInotifyWatcher() }

func newInotifyWatcher() (*inotifyWatcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	w := &inotifyWatcher{fd: fd, file: os.NewFile(uintptr(fd), "inotify"), out: make(chan fileEvent),
		done: make(chan struct{}), dirs: map[string]int32{}, files: map[string]int32{}}
	w.reading.Go(w.readEvents)
	return w, nil
}

func (w *inotifyWatcher) events() <-chan fileEvent { return w.out }

func (w *inotifyWatcher) close() {
	close(w.done)
	_ = w.file.Close()
	w.reading.Wait()
}

func (w *inotifyWatcher) watch(files []string) (more, missing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := map[string]bool{}
	for _, dir := range watchedDirs(files) {
		wanted[dir] = true
		before, known := w.dirs[dir]
		wd, err := unix.InotifyAddWatch(w.fd, dir, watchedInDirs)
		if err != nil {
			delete(w.dirs, dir)
			missing = true
			continue
		}
		w.dirs[dir] = int32(wd)
		more = more || !known || before != int32(wd)
	}
	w.forget(w.dirs, wanted)
	clear(wanted)
	for _, file := range files {
		wanted[file] = true
		before, known := w.files[file]
		wd, err := unix.InotifyAddWatch(w.fd, file, watchedInFiles)
		if err != nil { // it is missing; its directory is watched
			wd = -1
			delete(w.files, file)
		} else {
			w.files[file] = int32(wd)
		}
		if known && before != int32(wd) {
			w.remove(before)
		}
	}
	w.forget(w.files, wanted)
	return more, missing
}

// forget ends the watches of paths that are not wanted any more. mu must be held.
func (w *inotifyWatcher) forget(watches map[string]int32, wanted map[string]bool) {
	for path, wd := range watches {
		if !wanted[path] {
			delete(watches, path)
			w.remove(wd)
		}
	}
}

// remove ends a watch, unless another path has the same: links and hard links of one file share a watch. mu must be
// held.
func (w *inotifyWatcher) remove(wd int32) {
	if !hasWatch(w.files, wd) && !hasWatch(w.dirs, wd) {
		_, _ = unix.InotifyRmWatch(w.fd, uint32(wd)) // an error only means that the file is gone
	}
}

func hasWatch(watches map[string]int32, wd int32) bool {
	for _, other := range watches {
		if other == wd {
			return true
		}
	}
	return false
}

// readEvents reads events until the watcher is closed.
func (w *inotifyWatcher) readEvents() {
	buffer := make([]byte, 16<<10)
	for {
		n, err := w.file.Read(buffer)
		if err != nil {
			select {
			case <-w.done:
			case w.out <- fileEvent{err: err}:
			}
			return
		}
		w.reads.Add(1)
		e := w.parse(buffer[:n])
		if e == (fileEvent{}) {
			continue
		}
		select {
		case w.out <- e:
		case <-w.done:
			return
		}
	}
}

var errEventsLost = errors.New("inotify: events were lost")

// parse returns the sum of the events in data.
func (w *inotifyWatcher) parse(data []byte) (sum fileEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(data) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(data))
		mask := binary.NativeEndian.Uint32(data[4:])
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(data[12:]))
		data = data[min(size, len(data)):]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			sum.err = errEventsLost
		case hasWatch(w.files, wd):
			sum.written = sum.written || mask&watchedInFiles != 0
		case hasWatch(w.dirs, wd):
			sum.moved = true
		}
	}
	return sum
}
