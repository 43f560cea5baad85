package gateway

import (
	"context"
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
	// defaultGrace is how long the first list waits for servers that were never tried before.
	defaultGrace = 250 * time.Millisecond
	// startAtLatest is when remembered servers start even if no list was requested.
	startAtLatest = time.Second
	// unknownNameWait is how long a name waits for the server that it says, anyServerWait for all that could have a
	// bare name or a URI.
	unknownNameWait = 30 * time.Second
	anyServerWait   = 5 * time.Second
	// delayAfterList lets the first answer out before dozens of processes start and want the processors.
	delayAfterList = 50 * time.Millisecond
)

// A lazyStarter decides when servers start. It has the fleet hold those that are remembered, until the first list was
// answered or a second has passed; the fleet starts one earlier that is called. Servers without a listing start at
// once, and of those the ones that were never tried before have the first list wait for them a little. Where servers
// start on demand the fleet has all of them, and starts none by itself.
type lazyStarter struct {
	fleet    fleet
	onDemand bool
	naming   deck.NamingStyle
	grace    time.Duration
	rows     []config.Server
	// held are the remembered servers, which the fleet holds at first.
	held map[drawbridge.ServerID]bool
	// hides reports whether the rules hide a server from a caller.
	hides func(caller drawbridge.Caller, kind string, server drawbridge.Spec) bool
	// neverTried are the servers that the first list waits for.
	neverTried []drawbridge.ServerID

	listRequested     chan struct{}
	listRequestedOnce sync.Once
	// graceOver is set when no list waits any more; started is when Run began, in Unix nanoseconds.
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
		if m.Listing != nil {
			s.held[row.ID] = !c.OnDemand
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

// startableRows returns the rows that the fleet may mount as soon as it runs.
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

// waitBeforeList has a list wait for servers that were never tried before, up to the grace period after the start, and
// once only. After it the other servers may start.
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
	s.listRequestedOnce.Do(func() { close(s.listRequested) })
}

// awaitFirstAttempts waits until the first attempt of each of the servers in this process has ended, or ctx.
func (s *lazyStarter) awaitFirstAttempts(ctx context.Context, ids []drawbridge.ServerID) {
	for _, id := range ids {
		if s.fleet.AwaitFirstAttempt(ctx, id) != nil && ctx.Err() != nil {
			return
		}
	}
}

// waitForUnknownName makes a call of an unknown name wait for the first attempt of a server that could have it. With
// qualified names that is the server whose id the name begins with: its last listing may be old, so the first listing of
// this process is waited for. With bare names or a URI it is any server that was never listed, since each could have it.
// Any other name waits as a list does. Where servers start on demand there is nothing to wait for.
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
		s.fleet.Release(id)
	} else if name != "" && s.naming != deck.BareNames {
		s.waitBeforeList(ctx)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	s.awaitFirstAttempts(ctx, ids)
}

// serverByPrefix returns the server whose id the name begins with; of several, the one with the longest id.
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

// run lets the remembered servers start when it is their time, and does then what can wait that long.
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

// noteAddedServer takes note of a server that came after the start.
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

// forget drops a row, and reports whether it was still held.
func (s *lazyStarter) forget(id drawbridge.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlisted = slices.DeleteFunc(s.unlisted, func(other drawbridge.ServerID) bool { return other == id })
}
