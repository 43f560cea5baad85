package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/store"
)

const (
	// defaultGrace is how long the first list waits for servers that were never tried before.
	defaultGrace = 250 * time.Millisecond
	// startAtLatest is when remembered servers start although nobody asked for a list.
	startAtLatest = time.Second
	// unknownWait is how long a name waits for the server that it says, anyWait for all that could have a bare name or a URI.
	unknownWait = 30 * time.Second
	anyWait     = 5 * time.Second
	// afterList lets the first answer out before dozens of processes start and want the processors.
	afterList = 50 * time.Millisecond
)

// A starter decides when servers start, and is the deck's upstream for that reason: it keeps those that are remembered
// from the fleet until the first list was answered, a second has passed, or one of their cards is called. Servers without
// a listing start at once, and of those the ones that were never tried before have the first list wait for them a little.
// Where servers start on demand the fleet has all of them, and starts none by itself.
type starter struct {
	fleet    fleet
	onDemand bool
	naming   deck.Naming
	grace    time.Duration
	rows     []config.Server
	// hides says whether the rules hide a server from a caller, ended is told how each call of a server ended.
	hides func(caller drawbridge.Caller, kind string, server drawbridge.Spec) bool
	ended func(id drawbridge.ServerID, call drawbridge.Call, result drawbridge.Result, err error)
	// fresh are the servers that the first list waits for.
	fresh []drawbridge.ServerID

	asked     chan struct{}
	askedOnce sync.Once
	// waited is set when no list waits any more; started is when Run began, in Unix nanoseconds.
	waited  atomic.Bool
	started atomic.Int64

	mu sync.Mutex
	// held are the rows that the fleet does not know of yet.
	held map[drawbridge.ServerID]config.Server
	// unlisted are the servers that had no listing when they were configured.
	unlisted []drawbridge.ServerID
}

var _ deck.Upstream = (*starter)(nil)

func newStarter(rows []config.Server, mounts map[string]store.Mount, c Config, grace time.Duration) *starter {
	if grace == 0 {
		grace = defaultGrace
	}
	s := &starter{
		onDemand: c.OnDemand, naming: c.Naming, grace: grace, rows: rows,
		asked: make(chan struct{}), held: map[drawbridge.ServerID]config.Server{},
		ended: func(drawbridge.ServerID, drawbridge.Call, drawbridge.Result, error) {},
	}
	for _, row := range rows {
		m := mounts[row.Hash]
		if m.Listing != nil {
			if !c.OnDemand {
				s.held[row.ID] = row
			}
			continue
		}
		s.unlisted = append(s.unlisted, row.ID)
		if m.Attempted.IsZero() {
			s.fresh = append(s.fresh, row.ID)
		}
	}
	s.waited.Store(c.OnDemand || grace < 0 || len(s.fresh) == 0)
	return s
}

// ready gives the rows that the fleet may mount as soon as it runs.
func (s *starter) ready() (rows []config.Server) {
	for _, row := range s.rows {
		if _, held := s.held[row.ID]; !held {
			rows = append(rows, row)
		}
	}
	return rows
}

// beforeList has a list wait for servers that were never tried before, up to the grace period after the start, and once
// only. After it the other servers may start.
func (s *starter) beforeList(ctx context.Context) {
	if !s.waited.Load() {
		left := s.grace
		if at := s.started.Load(); at != 0 {
			left -= time.Since(time.Unix(0, at))
		}
		grace, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		s.attempted(grace, s.fresh)
		if ctx.Err() != nil {
			return
		}
		s.waited.Store(true)
	}
	s.askedOnce.Do(func() { close(s.asked) })
}

// attempted waits until the first attempt of each of the servers in this process has ended, or ctx.
func (s *starter) attempted(ctx context.Context, ids []drawbridge.ServerID) {
	for _, id := range ids {
		if s.fleet.Attempted(ctx, id) != nil && ctx.Err() != nil {
			return
		}
	}
}

// beforeUnknown has a call of a name that is nobody's wait for the first attempt of a server that was never listed: the
// one that the name says, or any, since each could have it, where names are bare or there is none, as for a URI. Any other
// name is in no list either, and waits as a list does. Where servers start on demand there is no attempt to wait for.
func (s *starter) beforeUnknown(ctx context.Context, caller drawbridge.Caller, name string) {
	if s.onDemand {
		return
	}
	ids := slices.DeleteFunc(s.waitable(), func(id drawbridge.ServerID) bool {
		return !caller.Holds([]drawbridge.Scope{drawbridge.ServerScope(id)}) ||
			s.hides != nil && s.hides(caller, "", drawbridge.Spec{Server: id})
	})
	most := anyWait
	if id, ok := saidBy(name, ids); ok {
		ids, most = []drawbridge.ServerID{id}, unknownWait
	} else if name != "" && s.naming != deck.Bare {
		s.beforeList(ctx)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	s.attempted(ctx, ids)
}

// saidBy gives the server that the name begins with; of several the one with most of it.
func saidBy(name string, ids []drawbridge.ServerID) (said drawbridge.ServerID, ok bool) {
	longest := 0
	for _, id := range ids {
		for _, prefix := range deck.Prefixes(id) {
			if len(prefix) > longest && strings.HasPrefix(name, prefix) {
				said, longest = id, len(prefix)
			}
		}
	}
	return said, longest > 0
}

// run lets the remembered servers start when it is their time, and does then what can wait that long.
func (s *starter) run(ctx context.Context, log *slog.Logger, then func(context.Context)) error {
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
	case <-s.asked:
		timer.Reset(afterList)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
	for _, row := range s.rows {
		if err := s.release(row.ID); err != nil {
			log.Warn("a server could not be started", "server", row.ID, "err", err)
		}
	}
	then(ctx)
	return nil
}

// release hands a row over to the fleet, which mounts it.
func (s *starter) release(id drawbridge.ServerID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.held[id]
	if !ok {
		return nil
	}
	delete(s.held, id)
	return s.fleet.Add(row)
}

func (s *starter) holds(id drawbridge.ServerID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.held[id]
	return ok
}

// attached takes note of a server that came after the start.
func (s *starter) attached(id drawbridge.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlisted = append(s.unlisted, id)
}

// waitable gives the servers that had no listing when they were configured, in a slice of the caller's own.
func (s *starter) waitable() []drawbridge.ServerID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.unlisted)
}

// forget drops a row, and says whether it was still held.
func (s *starter) forget(id drawbridge.ServerID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlisted = slices.DeleteFunc(s.unlisted, func(other drawbridge.ServerID) bool { return other == id })
	_, ok := s.held[id]
	delete(s.held, id)
	return ok
}

// begin waits until Run has begun, beside which the first calls may come, and hands the row over if it is held back.
func (s *starter) begin(ctx context.Context, id drawbridge.ServerID) error {
	select {
	case <-s.fleet.Running():
		return s.release(id)
	case <-ctx.Done():
		return &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: "the gateway does not run", Err: ctx.Err(),
		}
	}
}

// mount starts the server and waits for its listing.
func (s *starter) mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error) {
	if err := s.begin(ctx, id); err != nil {
		return drawbridge.Listing{}, err
	}
	return s.fleet.Mount(ctx, id)
}

// Do starts the server if it is held back, and passes the call on.
func (s *starter) Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
	if err := s.begin(ctx, id); err != nil {
		return drawbridge.Result{}, err
	}
	result, err := s.fleet.Do(ctx, id, call)
	if ctx.Err() == nil { // else it is not the server that ended it
		s.ended(id, call, result, err)
	}
	return result, err
}

// Watch starts the server if it is held back and there is something to watch, and passes the set on.
func (s *starter) Watch(ctx context.Context, id drawbridge.ServerID, w drawbridge.Watched) error {
	if w.None() && s.holds(id) {
		return nil
	}
	if err := s.begin(ctx, id); err != nil {
		return err
	}
	return s.fleet.Watch(ctx, id, w)
}

// SetLevel passes the level on; the fleet remembers it for servers that start later.
func (s *starter) SetLevel(ctx context.Context, session, level string) error {
	return s.fleet.SetLevel(ctx, session, level)
}

// Tell passes on a notification of a caller's.
func (s *starter) Tell(ctx context.Context, session, method string, params json.RawMessage) {
	s.fleet.Tell(ctx, session, method, params)
}

// EndSession passes the end of a session on.
func (s *starter) EndSession(session string) { s.fleet.EndSession(session) }
