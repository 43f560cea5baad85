package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway/meter"
	"golang.org/x/sync/errgroup"
)

// maxProjectTools is how many tools are taken from a server that a project directory brought.
const maxProjectTools = 100

// Mount mounts a server now, and waits for its listing. Run must be going on. The error is a *drawbridge.Fault.
func (g *Gateway) Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error) {
	row, ok := g.Config().Lookup(id)
	if !ok {
		return drawbridge.Listing{}, unknownServer(id)
	}
	if row.Phase != drawbridge.Idle {
		return drawbridge.Listing{}, off(row)
	}
	if err := g.starter.begin(ctx, id); err != nil {
		return drawbridge.Listing{}, err
	}
	return g.fleet.Mount(ctx, id)
}

// Load mounts every server and waits until each has a listing or a fault: the deck without a surface. It gives the cards
// that the owner may call, and why servers are not among them. Run must be going on.
func (g *Gateway) Load(ctx context.Context) (cards []drawbridge.Spec, faults map[drawbridge.ServerID]error) {
	faults = map[drawbridge.ServerID]error{}
	var mu sync.Mutex
	var group errgroup.Group
	for _, row := range g.Config().Servers {
		switch row.Phase {
		case drawbridge.Disabled:
			continue
		case drawbridge.Idle:
		default:
			mu.Lock()
			faults[row.ID] = off(row)
			mu.Unlock()
			continue
		}
		group.Go(func() error {
			_, err := g.Mount(ctx, row.ID)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				faults[row.ID] = err
			}
			return nil
		})
	}
	_ = group.Wait() // every error is in faults
	return g.deck.Cards(g.owner), faults
}

// AwaitNew mounts the servers that were never listed, and waits until each has a listing or a fault, or ctx ends. Run must
// be going on.
func (g *Gateway) AwaitNew(ctx context.Context) {
	var group errgroup.Group
	for _, id := range g.starter.waitable() {
		group.Go(func() error {
			if err := g.starter.begin(ctx, id); err != nil {
				return err
			}
			_, _ = g.starter.mount(ctx, id) // how it went is in the status
			return nil
		})
	}
	_ = group.Wait() // only ctx can end it early
}

// Attach adds a server at the end of the configuration, for as long as this gateway is open, and mounts it in the
// background. The error is a *drawbridge.Fault InvalidInput for a row that is not right or has a name that is taken.
func (g *Gateway) Attach(ctx context.Context, row config.Server) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	row, err := ownRow(row, g.set.Servers)
	if err != nil {
		return err
	}
	before := g.set.Servers
	g.set.Servers = append(slices.Clone(before), row)
	g.warden.Take(g.policy, g.set.Servers, g.set.Settings.RootURIs())
	err = g.deck.Configure(ctx, g.members())
	if err == nil {
		err = g.fleet.Add(row)
	}
	if err != nil {
		g.set.Servers = before
		g.warden.Take(g.policy, before, g.set.Settings.RootURIs())
		return errors.Join(err, g.deck.Configure(ctx, g.members()))
	}
	g.attached = append(g.attached, row)
	g.starter.attached(row.ID)
	return nil
}

// Detach takes a server out: its cards leave the deck, its calls in flight go on, and then its process ends, which Detach
// waits for. The error is a *drawbridge.Fault NotFound for
// a name that is not configured.
func (g *Gateway) Detach(ctx context.Context, id drawbridge.ServerID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	mounted := func(row config.Server) bool { return row.ID == id && row.Phase == drawbridge.Idle }
	if !slices.ContainsFunc(g.set.Servers, mounted) {
		return unknownServer(id)
	}
	g.set.Servers = slices.DeleteFunc(slices.Clone(g.set.Servers), mounted)
	if err := g.deck.Configure(ctx, g.members()); err != nil {
		return backend(fmt.Sprintf("detach %s", id), err)
	}
	g.attached = slices.DeleteFunc(g.attached, func(row config.Server) bool { return row.ID == id })
	if g.starter.forget(id) {
		return nil
	}
	gone, err := g.fleet.Remove(id)
	if err != nil {
		return err
	}
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Status says how each configured server is, in configuration order: those that may not be mounted with the reason, those
// that did not start yet as they are remembered.
func (g *Gateway) Status() []drawbridge.Status {
	live := map[drawbridge.ServerID]drawbridge.Status{}
	for _, s := range g.fleet.Status() {
		live[s.Server] = s
	}
	onDeck := map[drawbridge.ServerID]deck.MemberStatus{}
	for _, m := range g.deck.Members() {
		onDeck[m.Server] = m
	}
	set := g.Config()
	out := make([]drawbridge.Status, 0, len(set.Servers))
	for _, row := range set.Servers {
		s := drawbridge.Status{Server: row.ID, Phase: row.Phase, Reason: row.Reason, Transport: row.Transport(), Era: drawbridge.Era(0).String()}
		if row.Phase == drawbridge.Idle {
			s = statusOf(s, live, onDeck[row.ID]).Judged(g.trustOf(row.ID))
		}
		s.Source = row.Origin.String()
		out = append(out, s)
	}
	return out
}

// statusOf fills in what the fleet says of a server, and what is on the deck of it.
func statusOf(s drawbridge.Status, live map[drawbridge.ServerID]drawbridge.Status, m deck.MemberStatus) drawbridge.Status {
	if known, ok := live[s.Server]; ok {
		s = known
	} else if !m.Listed.IsZero() {
		s.Era, s.Listed = m.Era.String(), m.Listed
	}
	s.Cards, s.Prompts, s.Resources, s.Templates = len(m.Cards), len(m.Prompts), m.Resources, m.Templates
	s.Notes = append(s.Notes, notes(m)...)
	return s
}

// Stderr gives the last lines that a server wrote to standard error, and with follow each new one until ctx ends. The error
// is a *drawbridge.Fault NotFound for a server that is not mounted here, or what each gave.
func (g *Gateway) Stderr(ctx context.Context, id drawbridge.ServerID, follow bool, each func(line string) error) error {
	return g.fleet.Stderr(ctx, id, follow, each)
}

// members are the rows as the deck wants them. From now on they are the ones that others find by name.
func (g *Gateway) members() []deck.Member {
	g.noteSecrets()
	var out []deck.Member
	rows := map[drawbridge.ServerID]*mountable{}
	defer g.rows.Store(&rows)
	for _, row := range g.set.Mountable() {
		rows[row.ID] = &mountable{row, sync.OnceValue(func() string { return accountOf(row) })}
		most := row.MaxTools
		if most == 0 && row.Origin.Kind == config.Project {
			most = orElse(g.set.Settings.MaxToolsProject, maxProjectTools)
		}
		out = append(out, deck.Member{
			ID: row.ID, Row: row.Hash, Origin: PinPlace(row).Origin, MaxTools: orElse(most, g.set.Settings.MaxTools),
			Expected: row.ExpectedTools, Locked: row.LockToolList != nil && *row.LockToolList, Foreign: row.Origin.Kind == config.Project,
			// A process has one principal, unless its row shares it; a URL is called with the same credentials for all.
			Apart: row.URL == "" && row.Share != "all", Fence: row.Fence, Hold: g.holds(row),
		})
	}
	return out
}

// A mountable is a row that may be mounted, and the name of its account of trust: made once, since every call asks for it.
type mountable struct {
	config.Server
	account func() string
}

// row gives the row that may be mounted by a name; nil where there is none.
func (g *Gateway) row(id drawbridge.ServerID) *mountable {
	if rows := g.rows.Load(); rows != nil {
		return (*rows)[id]
	}
	return nil
}

// pace is how many calls a server may have in a minute.
func (g *Gateway) pace(id drawbridge.ServerID) meter.Pace {
	row := g.row(id)
	if row == nil {
		return meter.Pace{}
	}
	return meter.Pace{Name: row.Hash, Max: row.MaxCallsPerMinute}
}

func orElse(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

func unknownServer(id drawbridge.ServerID) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("server %q is not configured", id), Next: "drawbridge mcp list",
	}
}

// off is the fault of a server that may not be mounted.
func off(row config.Server) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked,
		Step: fmt.Sprintf("server %q is off", row.ID), Err: errors.New(row.Reason),
	}
}

func named(rows []config.Server, id drawbridge.ServerID) bool {
	return slices.ContainsFunc(rows, func(row config.Server) bool { return row.ID == id })
}
