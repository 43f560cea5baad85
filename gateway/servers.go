package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"golang.org/x/sync/errgroup"
)

// maxProjectTools is the default limit of tools from a server of a project.
const maxProjectTools = 100

// Mount mounts a server now, and waits for its listing. Run must be running. The error is a *drawbridge.Fault.
func (g *Gateway) Mount(ctx context.Context, id drawbridge.ServerID) (drawbridge.Listing, error) {
	row, ok := g.Config().Lookup(id)
	if !ok {
		return drawbridge.Listing{}, unknownServer(id)
	}
	if row.Phase != drawbridge.Idle {
		return drawbridge.Listing{}, serverOffFault(row)
	}
	return g.fleet.Mount(ctx, id)
}

// MountAll mounts every server and waits until each has a listing or a fault. It returns the cards that the owner may
// call, and the faults of the other servers. Run must be running.
func (g *Gateway) MountAll(ctx context.Context) (cards []drawbridge.Spec, faults map[drawbridge.ServerID]error) {
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
			faults[row.ID] = serverOffFault(row)
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

// MountNew mounts the servers that were never listed, and waits until each has a listing or a fault, or ctx ends. Run
// must be running.
func (g *Gateway) MountNew(ctx context.Context) {
	var group errgroup.Group
	for _, id := range g.starter.neverListed() {
		group.Go(func() error {
			_, _ = g.fleet.Mount(ctx, id) // how it went is in the status
			return nil
		})
	}
	_ = group.Wait() // only ctx can end it early
}

// AddServer adds a server at the end of the configuration, for as long as this gateway is open, and mounts it in the
// background. The error is a *drawbridge.Fault with the code InvalidInput for an invalid row, or a name that is taken.
func (g *Gateway) AddServer(ctx context.Context, row config.Server) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	row, err := completeRow(row, g.set.Servers)
	if err != nil {
		return err
	}
	before := g.set.Servers
	g.set.Servers = append(slices.Clone(before), row)
	g.ruleGuard.Update(g.policy, g.set.Servers, g.set.Settings.RootURIs())
	err = g.enroller.configure(ctx, g.deckMembers(), nil)
	if err == nil {
		err = g.fleet.Add(row)
	}
	if err != nil {
		g.set.Servers = before
		g.ruleGuard.Update(g.policy, before, g.set.Settings.RootURIs())
		return errors.Join(err, g.enroller.configure(ctx, g.deckMembers(), nil))
	}
	g.attached = append(g.attached, row)
	g.starter.noteAddedServer(row.ID)
	return nil
}

// RemoveServer removes a server: its cards leave the deck, its calls in flight finish, and then its process ends, which
// RemoveServer waits for. The error is a *drawbridge.Fault with the code NotFound for a name that is not configured.
func (g *Gateway) RemoveServer(ctx context.Context, id drawbridge.ServerID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	mounted := func(row config.Server) bool { return row.ID == id && row.Phase == drawbridge.Idle }
	if !slices.ContainsFunc(g.set.Servers, mounted) {
		return unknownServer(id)
	}
	g.set.Servers = slices.DeleteFunc(slices.Clone(g.set.Servers), mounted)
	if err := g.enroller.configure(ctx, g.deckMembers(), nil); err != nil {
		return storeFault(fmt.Sprintf("detach %s", id), err)
	}
	g.attached = slices.DeleteFunc(g.attached, func(row config.Server) bool { return row.ID == id })
	g.starter.forget(id)
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

// Status returns the status of each configured server, in configuration order. A server that may not be mounted has the
// reason; one that has not started yet has its last stored status.
func (g *Gateway) Status() []drawbridge.ServerStatus {
	live := map[drawbridge.ServerID]drawbridge.ServerStatus{}
	for _, s := range g.fleet.Status() {
		live[s.Server] = s
	}
	onDeck := map[drawbridge.ServerID]deck.ServerSummary{}
	for _, m := range g.deck.ServerSummaries() {
		onDeck[m.Server] = m
	}
	set := g.Config()
	out := make([]drawbridge.ServerStatus, 0, len(set.Servers))
	for _, row := range set.Servers {
		s := drawbridge.ServerStatus{Server: row.ID, Phase: row.Phase, Reason: row.Reason, Transport: row.Transport(),
			Era: drawbridge.ProtocolEra(0).String()}
		if row.Phase == drawbridge.Idle {
			s = fillStatus(s, live, onDeck[row.ID]).WithTrust(g.serverTrust.Lookup(row.ID))
		}
		s.Source = row.Origin.String()
		out = append(out, s)
	}
	return out
}

// fillStatus adds the fleet's status of a server, and the numbers of its items on the deck.
func fillStatus(s drawbridge.ServerStatus, live map[drawbridge.ServerID]drawbridge.ServerStatus,
	m deck.ServerSummary) drawbridge.ServerStatus {
	if known, ok := live[s.Server]; ok {
		s = known
	} else if !m.Listed.IsZero() {
		s.Era, s.Listed = m.Era.String(), m.Listed
	}
	s.Cards, s.Prompts, s.Resources, s.Templates = len(m.Cards), len(m.Prompts), m.Resources, m.Templates
	s.Notes = append(s.Notes, memberNotes(m)...)
	return s
}

// Reconnect closes the connections of a server, with the calls in flight on them, and connects and lists it again. The
// error is a *drawbridge.Fault with the code NotFound for a server that is not mounted here, or the fault of the server.
func (g *Gateway) Reconnect(ctx context.Context, id drawbridge.ServerID) error {
	return g.fleet.Reconnect(ctx, id)
}

// Notifications returns what a server may notify of and what it has notified of. The error is a *drawbridge.Fault with
// the code NotFound for a server that is not mounted here.
func (g *Gateway) Notifications(id drawbridge.ServerID) (drawbridge.NotificationReport, error) {
	return g.fleet.Notifications(id)
}

// Stderr passes the last lines that a server wrote to standard error to each; with follow also every new line until ctx
// ends. The error is a *drawbridge.Fault with the code NotFound for a server that is not mounted here, or an error of
// each.
func (g *Gateway) Stderr(ctx context.Context, id drawbridge.ServerID, follow bool, each func(line string) error) error {
	return g.fleet.ReadStderr(ctx, id, follow, each)
}

// deckMembers returns the rows in the form that the deck takes. It also stores them for rowByID.
func (g *Gateway) deckMembers() []deck.Server {
	g.registerSecrets()
	var out []deck.Server
	rows := g.set.Mountable()
	g.serverTable.Update(rows, g.set.Settings.RootURIs())
	g.serverTrust.Update(rows)
	for _, row := range rows {
		most := row.MaxTools
		if most == 0 && row.Origin.Kind == config.OriginProject {
			most = cmp.Or(g.set.Settings.MaxToolsProject, maxProjectTools)
		}
		out = append(out, deck.Server{
			ID: row.ID, ConfigHash: row.Hash, Origin: PinKeyOf(row).Origin, MaxTools: cmp.Or(most,
				g.set.Settings.MaxTools, deck.DefaultMaxTools),
			ExpectedTools: row.ExpectedTools, LockTools: row.LockToolList != nil && *row.LockToolList,
			FromProject: row.Origin.Kind == config.OriginProject,
			// A process has one principal, unless its row shares it; a URL is called with the same credentials for all.
			PerPrincipal: row.URL == "" && row.Share != "all", Spotlight: row.Spotlight,
			HoldResults: g.holdsFlagged(row),
			ScanResults: g.scansResults(row),
		})
	}
	return out
}

func unknownServer(id drawbridge.ServerID) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
		Step: fmt.Sprintf("server %q is not configured", id), Next: "drawbridge mcp list",
	}
}

// serverOffFault returns the fault of a server that may not be mounted.
func serverOffFault(row config.Server) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked,
		Step: fmt.Sprintf("server %q is off", row.ID), Err: errors.New(row.Reason),
	}
}

func hasRowNamed(rows []config.Server, id drawbridge.ServerID) bool {
	return slices.ContainsFunc(rows, func(row config.Server) bool { return row.ID == id })
}
