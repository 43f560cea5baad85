package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

const (
	// defaultGrace is how long the first list request waits for servers that no process has started before.
	defaultGrace = 250 * time.Millisecond
	// startAtLatest is the time after which servers with a stored listing start even if no list was requested.
	startAtLatest = time.Second
	// unknownNameWait is how long a call of an unknown name waits for the server whose id is the prefix of the name.
	// anyServerWait is how long a call of a bare name or a URI waits for all servers that could offer it.
	unknownNameWait = 30 * time.Second
	anyServerWait   = 5 * time.Second
	// delayAfterList is the delay between the first list request and the start of servers. Within this time the
	// response to the request is sent, before many starting processes compete for the processors.
	delayAfterList = 50 * time.Millisecond
)

// A lazyStarter decides when servers start. Servers that no process has started before start immediately, and the first
// list request waits a short time for them. All others start after the response to the first list request, or after one
// second: their listing is stored, or they failed before. A call to such a server starts it earlier. If servers start on
// demand, the lazyStarter does not start any.
type lazyStarter struct {
	fleet    fleet
	onDemand bool
	naming   deck.NamingStyle
	grace    time.Duration
	rows     []config.Server
	// held are the servers that were started before. The fleet starts them when Release is called for them.
	held map[drawbridge.ServerID]bool
	// hides reports whether the rules hide a server from a caller.
	hides func(caller drawbridge.Caller, kind string, server drawbridge.Spec) bool
	// neverTried are the servers that no process has started before. The first list request waits for them.
	neverTried []drawbridge.ServerID

	listRequested     chan struct{}
	listRequestedOnce sync.Once
	// graceOver is set when list requests no longer wait; started is the time when Run began, in Unix nanoseconds.
	graceOver atomic.Bool
	started   atomic.Int64

	mu sync.Mutex
	// unlisted are the servers that had no listing when they were configured.
	unlisted []drawbridge.ServerID
}

func newLazyStarter(rows []config.Server, mounts map[string]store.MountRecord, c Config,
	grace time.Duration) *lazyStarter {
	if grace == 0 {
		grace = defaultGrace
	}
	s := &lazyStarter{
		onDemand: c.OnDemand, naming: c.Naming, grace: grace, rows: rows,
		listRequested: make(chan struct{}), held: map[drawbridge.ServerID]bool{},
	}
	for _, row := range rows {
		m := mounts[row.Hash]
		s.held[row.ID] = !c.OnDemand && (m.Listing != nil || !m.Attempted.IsZero())
		if m.Listing != nil {
			continue
		}
		s.unlisted = append(s.unlisted, row.ID)
		if m.Attempted.IsZero() {
			s.neverTried = append(s.neverTried, row.ID)
		}
	}
	s.graceOver.Store(c.OnDemand || grace < 0 || len(s.neverTried) == 0)
	return s
}

// addRows adds all servers to the fleet. Servers that were started before do not start until Release; the fleet mounts
// the others as soon as it runs. On an error addRows removes the servers that it added.
func (s *lazyStarter) addRows() error {
	for i, row := range s.rows {
		add := s.fleet.Add
		if s.held[row.ID] {
			add = s.fleet.Hold
		}
		if err := add(row); err != nil {
			for _, added := range s.rows[:i] {
				if gone, err := s.fleet.Remove(added.ID); err == nil {
					<-gone
				}
			}
			return err
		}
	}
	return nil
}

// waitBeforeList delays the first list request. It waits until the servers in neverTried have been started once,
// successfully or not, but not longer than the grace period after the start. Later list requests do not wait. Then
// waitBeforeList allows the other servers to start.
func (s *lazyStarter) waitBeforeList(ctx context.Context) {
	if !s.graceOver.Load() {
		left := s.grace
		if at := s.started.Load(); at != 0 {
			left -= time.Since(time.Unix(0, at))
		}
		grace, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		s.awaitFirstAttempts(grace, s.neverTried)
		if ctx.Err() != nil {
			return
		}
		s.graceOver.Store(true)
	}
	s.startAll()
}

// startAll allows all servers to start.
func (s *lazyStarter) startAll() { s.listRequestedOnce.Do(func() { close(s.listRequested) }) }

// isStarting reports whether a server was never listed before and its first attempt to start goes on.
func (s *lazyStarter) isStarting(ctx context.Context, id drawbridge.ServerID) bool {
	if !slices.Contains(s.neverTried, id) {
		return false
	}
	now, cancel := context.WithCancel(ctx)
	cancel()
	return errors.Is(s.fleet.AwaitFirstAttempt(now, id), context.Canceled)
}

// awaitFirstAttempts waits until the first attempt of this process to mount each of the servers has ended, or until ctx
// ends.
func (s *lazyStarter) awaitFirstAttempts(ctx context.Context, ids []drawbridge.ServerID) {
	for _, id := range ids {
		if s.fleet.AwaitFirstAttempt(ctx, id) != nil && ctx.Err() != nil {
			return
		}
	}
}

// waitForUnknownName delays a call of an unknown name, until the servers that could offer the name have been started
// once. If the name begins with the id of a server, it waits for that server, because the server's stored listing may
// be old. For a URI, or if card names are bare names, it waits for all servers that were never listed. For any other
// name it waits like waitBeforeList. If servers start on demand, it does not wait. It never waits for a server that is
// hidden from the caller.
func (s *lazyStarter) waitForUnknownName(ctx context.Context, caller drawbridge.Caller, name string) {
	if s.onDemand {
		return
	}
	hidden := func(id drawbridge.ServerID) bool {
		return !caller.HasScopes([]drawbridge.Scope{drawbridge.ServerScope(id)}) ||
			s.hides != nil && s.hides(caller, "", drawbridge.Spec{Server: id})
	}
	ids := slices.DeleteFunc(s.neverListed(), hidden)
	most := anyServerWait
	if id, ok := serverByPrefix(name, slices.DeleteFunc(s.servers(), hidden)); ok {
		ids, most = []drawbridge.ServerID{id}, unknownNameWait
	} else if name != "" && s.naming != deck.BareNames {
		s.waitBeforeList(ctx)
		return
	}
	for _, id := range ids {
		s.fleet.Release(id)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	s.awaitFirstAttempts(ctx, ids)
}

// serverByPrefix returns the server whose id is the prefix of the name; if there are several, the server with the
// longest prefix.
func serverByPrefix(name string, ids []drawbridge.ServerID) (said drawbridge.ServerID, ok bool) {
	longest := 0
	for _, id := range ids {
		for _, prefix := range deck.NamePrefixes(id) {
			if len(prefix) > longest && strings.HasPrefix(name, prefix) {
				said, longest = id, len(prefix)
			}
		}
	}
	return said, longest > 0
}

// run waits for the first list request, but not longer than startAtLatest. Then it starts all held servers, and calls
// then for work that is not urgent. If servers start on demand, it only calls then.
func (s *lazyStarter) run(ctx context.Context, then func(context.Context)) error {
	s.started.Store(time.Now().UnixNano())
	if s.onDemand {
		then(ctx)
		return nil
	}
	timer := time.NewTimer(startAtLatest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
	case <-s.listRequested:
		timer.Reset(delayAfterList)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
	for _, row := range s.rows {
		s.fleet.Release(row.ID)
	}
	then(ctx)
	return nil
}

// noteAddedServer adds a server to the unlisted servers. It is called for a server without a listing that is configured
// after the start.
func (s *lazyStarter) noteAddedServer(id drawbridge.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlisted = append(s.unlisted, id)
}

// servers returns all servers, in a new slice.
func (s *lazyStarter) servers() []drawbridge.ServerID {
	all := s.neverListed()
	for _, row := range s.rows {
		if !slices.Contains(all, row.ID) {
			all = append(all, row.ID)
		}
	}
	return all
}

// neverListed returns the servers that had no listing when they were configured, in a new slice.
func (s *lazyStarter) neverListed() []drawbridge.ServerID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.unlisted)
}

// forget removes a server from the unlisted servers.
func (s *lazyStarter) forget(id drawbridge.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlisted = slices.DeleteFunc(s.unlisted, func(other drawbridge.ServerID) bool { return other == id })
}
