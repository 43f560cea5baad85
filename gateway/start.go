package gateway

import (
	"context"
	"log/slog"
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
	grace    time.Duration
	rows     []config.Server
	// fresh are the servers that the first list waits for, unlisted all that have no listing.
	fresh, unlisted []drawbridge.ServerID

	asked     chan struct{}
	askedOnce sync.Once
	// waited is set when no list waits any more; started is when Run began, in Unix nanoseconds.
	waited  atomic.Bool
	started atomic.Int64

	mu sync.Mutex
	// held are the rows that the fleet does not know of yet.
	held map[drawbridge.ServerID]config.Server
}

var _ deck.Upstream = (*starter)(nil)

func newStarter(rows []config.Server, mounts map[string]store.Mount, onDemand bool, grace time.Duration) *starter {
	if grace == 0 {
		grace = defaultGrace
	}
	s := &starter{
		onDemand: onDemand, grace: grace, rows: rows, asked: make(chan struct{}),
		held: map[drawbridge.ServerID]config.Server{},
	}
	for _, row := range rows {
		m := mounts[row.Hash]
		if m.Listing != nil {
			if !onDemand {
				s.held[row.ID] = row
			}
			continue
		}
		s.unlisted = append(s.unlisted, row.ID)
		if m.Attempted.IsZero() {
			s.fresh = append(s.fresh, row.ID)
		}
	}
	s.waited.Store(onDemand || grace < 0 || len(s.fresh) == 0)
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
		for _, id := range s.fresh {
			if s.fleet.Attempted(grace, id) != nil && grace.Err() != nil {
				break
			}
		}
		if ctx.Err() != nil {
			return
		}
		s.waited.Store(true)
	}
	s.askedOnce.Do(func() { close(s.asked) })
}

// run lets the remembered servers start when it is their time.
func (s *starter) run(ctx context.Context, log *slog.Logger) error {
	s.started.Store(time.Now().UnixNano())
	if s.onDemand {
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

// forget drops a row that is still held, and says whether it was.
func (s *starter) forget(id drawbridge.ServerID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	return s.fleet.Do(ctx, id, call)
}

// Watch starts the server if it is held back and there is something to watch, and passes the set on.
func (s *starter) Watch(ctx context.Context, id drawbridge.ServerID, uris []string) error {
	if len(uris) == 0 && s.holds(id) {
		return nil
	}
	if err := s.begin(ctx, id); err != nil {
		return err
	}
	return s.fleet.Watch(ctx, id, uris)
}

// SetLevel passes the level on; the fleet remembers it for servers that start later.
func (s *starter) SetLevel(ctx context.Context, session, level string) error {
	return s.fleet.SetLevel(ctx, session, level)
}

// RootsChanged passes on that a caller's roots have changed.
func (s *starter) RootsChanged(ctx context.Context, session string) { s.fleet.RootsChanged(ctx, session) }

// EndSession passes the end of a session on.
func (s *starter) EndSession(session string) { s.fleet.EndSession(session) }
