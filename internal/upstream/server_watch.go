package upstream

import (
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// A serverWatch stores the watch set of a server: the resources and tasks whose changes its fleets watch. Its methods
// may be called from several goroutines. They do not acquire any other lock of the server, except the lock of its list
// of fleets.
type serverWatch struct {
	changed chan struct{} // wakes the primary loop when wanted changes

	mu sync.Mutex
	// requested contains the watch set of each fleet. wanted is the union of these sets without the items that the
	// server refused permanently.
	requested watchRequests[*Fleet]
	wanted    drawbridge.WatchSet
	// version counts the changes of wanted. appliedVersion is the last version that the server applied. refused
	// contains the server's refusals of that version.
	version, appliedVersion int
	refused                 watchRefusals
	// versionSignal is closed and replaced when version grows. appliedSignal is closed and replaced when the server has
	// applied a version.
	versionSignal, appliedSignal chan struct{}
}

func newServerWatch(changed chan struct{}) serverWatch {
	return serverWatch{changed: changed, versionSignal: make(chan struct{}), appliedSignal: make(chan struct{})}
}

// request replaces the watch set of a fleet by w. fresh contains the items of w that no fleet watched before. version
// is the version of the server's watch set that contains w. The caller must wait until that version is applied. If the
// fleet has been removed from the server, request stores nothing and returns false: the watch set would never be
// deleted.
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

// withdraw removes items from the watch set of a fleet, because the server refused them or did not answer. If the fleet
// requests these items again, request returns them as fresh.
func (t *serverWatch) withdraw(f *Fleet, items drawbridge.WatchSet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requested.set(f, t.requested.forOwner(f).Without(items))
}

// removeFleet deletes the watch set of a fleet that was removed from the server.
func (t *serverWatch) removeFleet(f *Fleet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.requested.forOwner(f).IsEmpty() {
		t.requested.set(f, drawbridge.WatchSet{})
		t.updateLocked()
	}
}

// updateLocked sets wanted to the union of the fleets' watch sets and increments the version. It wakes the primary loop
// and the goroutines of mirrorWatch, which then apply the watch set. mu must be held.
func (t *serverWatch) updateLocked() {
	t.wanted = t.requested.union()
	t.version++
	wakeOne(t.changed)
	close(t.versionSignal)
	t.versionSignal = make(chan struct{})
}

// isWatching reports whether the watch set is not empty.
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

// progress returns the last version of the watch set that the server applied, the server's refusals, and a channel.
// refused contains only refusals of items of the watch set named of. The channel is closed when the server has applied
// another version.
func (t *serverWatch) progress(of drawbridge.WatchSet) (applied int, refused watchRefusals, next <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.appliedVersion, t.refused.within(of), t.appliedSignal
}

// markApplied stores that the server applied a version of the watch set, except the refused items. If that version is
// the newest, the items in gone are removed from the watch set.
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
