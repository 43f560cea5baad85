package upstream

import (
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// A serverWatch is the watch set of a server. Its methods may be called from several goroutines. They call nothing that
// takes another lock of the server, except that of its list of fleets.
type serverWatch struct {
	changed chan struct{} // wakes the primary loop when wanted changes

	mu sync.Mutex
	// requested holds the watch set of each fleet; wanted is their union less what the server refused.
	requested watchRequests[*Fleet]
	wanted    drawbridge.WatchSet
	// version counts changes of wanted. appliedVersion is the last version that the server applied, and refused what it
	// refused of that.
	version, appliedVersion int
	refused                 watchRefusals
	// versionSignal is closed and replaced when version grows, appliedSignal when appliedVersion does.
	versionSignal, appliedSignal chan struct{}
}

func newServerWatch(changed chan struct{}) serverWatch {
	return serverWatch{changed: changed, versionSignal: make(chan struct{}), appliedSignal: make(chan struct{})}
}

// request replaces the watch set of a fleet. It returns the items that are new, and the version to wait for. ok is
// false if the fleet has left the server: its watch would never be removed.
func (t *serverWatch) request(f *Fleet, fleets *observerList[*Fleet], w drawbridge.WatchSet) (
	fresh drawbridge.WatchSet, version int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(fleets.snapshot(), f) {
		return fresh, 0, false
	}
	fresh = w.Without(t.requested.union())
	t.requested.set(f, w)
	t.updateLocked()
	return fresh, t.version, true
}

// withdraw removes items from the watch set of a fleet, so that they are new when they are requested again.
func (t *serverWatch) withdraw(f *Fleet, items drawbridge.WatchSet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requested.set(f, t.requested.forOwner(f).Without(items))
}

// removeFleet drops the watch set of a fleet that has left the server.
func (t *serverWatch) removeFleet(f *Fleet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.requested.forOwner(f).IsEmpty() {
		t.requested.set(f, drawbridge.WatchSet{})
		t.updateLocked()
	}
}

// updateLocked makes the primary loop and the mirrors apply the watch set. It needs mu.
func (t *serverWatch) updateLocked() {
	t.wanted = t.requested.union()
	t.version++
	wakeOne(t.changed)
	close(t.versionSignal)
	t.versionSignal = make(chan struct{})
}

// isWatching reports whether anything is watched.
func (t *serverWatch) isWatching() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.wanted.IsEmpty()
}

// current returns the watch set and its version.
func (t *serverWatch) current() (drawbridge.WatchSet, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wanted, t.version
}

// nextVersion returns a channel that is closed when the watch set changes.
func (t *serverWatch) nextVersion() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.versionSignal
}

// progress returns the version that the server has applied, what it refused of some items, and a channel that is closed
// when it has applied another.
func (t *serverWatch) progress(of drawbridge.WatchSet) (applied int, refused watchRefusals, next <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.appliedVersion, t.refused.within(of), t.appliedSignal
}

// markApplied records that the server applied a version, except what it refused; gone is not wanted any more.
func (t *serverWatch) markApplied(version int, refused watchRefusals, gone drawbridge.WatchSet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if version < t.appliedVersion {
		return
	}
	t.appliedVersion, t.refused = version, refused
	if version == t.version {
		t.wanted = t.wanted.Without(gone)
	}
	close(t.appliedSignal)
	t.appliedSignal = make(chan struct{})
}
