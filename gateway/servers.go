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

// maxProjectTools is the default maximum number of tools of a server, for a server that a project configures.
const maxProjectTools = 100

// Mount mounts a server now and returns its listing. Run must be running. The error is a *drawbridge.Fault.
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

// MountAll mounts every server that is not disabled and waits until each has a listing or a fault. It returns the cards
// that the owner may call, and in faults the fault of each server that could not be mounted. Run must be running.
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
			_, _ = g.fleet.Mount(ctx, id) // the status has the outcome
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
}

// AddServer adds a server at the end of the configuration and mounts it in the background. The server stays until the
// gateway is closed or RemoveServer removes it. The error is a *drawbridge.Fault with the code InvalidInput for an
// invalid configuration of the server, or for a name that another server has.
func (g *Gateway) AddServer(ctx context.Context, row config.Server) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	row, err := completeRow(row, g.set.Servers)
	if err != nil {
		return err
	}
	before := g.set.Servers
	g.set.Servers = append(slices.Clone(before), row)
	g.updateRows(g.policy, g.set.Servers, g.set.Settings.RootURIs())
	err = g.enroller.configure(ctx, g.deckMembers(), nil)
	if err == nil {
		err = g.fleet.Add(row)
	}
	if err != nil {
		g.set.Servers = before
		g.updateRows(g.policy, before, g.set.Settings.RootURIs())
		return errors.Join(err, g.enroller.configure(ctx, g.deckMembers(), nil))
	}
	g.attached = append(g.attached, row)
	g.starter.noteAddedServer(row.ID)
	return nil
}

// RemoveServer removes a server's cards from the deck and waits until its calls in flight have completed and its
// process has ended. The error is a *drawbridge.Fault with the code NotFound for a name that is not configured.
func (g *Gateway) RemoveServer(ctx context.Context, id drawbridge.ServerID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	mounted := func(row config.Server) bool { return row.ID == id && row.Phase == drawbridge.Idle }
	if !slices.ContainsFunc(g.set.Servers, mounted) {
		return unknownServer(id)
	}
	before := g.set.Servers
	g.set.Servers = slices.DeleteFunc(slices.Clone(before), mounted)
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
		return g.forgetOutputs(ctx, before)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Status returns the status of each configured server, in configuration order. For a server that may not be mounted,
// the status contains the reason. For a server that has not started yet, it is the status that was stored last.
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

// fillStatus returns the status that the fleet reports for a server, or s if the fleet reports none. It sets the
// numbers of the server's items on the deck, and adds notes about these items.
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

// Reconnect closes the connections of a server, which ends the calls in flight on them. Then it connects to the server
// and lists it again. The error is a *drawbridge.Fault with the code NotFound for a server that is not mounted here, or
// the fault of the server.
func (g *Gateway) Reconnect(ctx context.Context, id drawbridge.ServerID) error {
	return g.fleet.Reconnect(ctx, id)
}

// Notifications returns the notifications that a server declares and the notifications that it has sent. The error is a
// *drawbridge.Fault with the code NotFound for a server that is not mounted here.
func (g *Gateway) Notifications(id drawbridge.ServerID) (drawbridge.NotificationReport, error) {
	return g.fleet.Notifications(id)
}

// Stderr calls each with the last lines that a server wrote to standard error. If follow is set, it also calls each
// with every new line until ctx ends. The error is a *drawbridge.Fault with the code NotFound for a server that is not
// mounted here, or an error that each returned.
func (g *Gateway) Stderr(ctx context.Context, id drawbridge.ServerID, follow bool, each func(line string) error) error {
	return g.fleet.ReadStderr(ctx, id, follow, each)
}

// deckMembers returns the servers that may be mounted, in the form for the deck. It also updates three other parts from
// the configuration: the secrets that the audit redacts, serverTable and serverTrust.
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
			// A server process belongs to one principal, unless its row shares it. A server with a URL is called with
			// the same credentials for all principals.
			PerPrincipal: row.URL == "" && row.Share != "all", Spotlight: row.Spotlight,
			HoldResults: g.holdsFlagged(row), NotForScripts: row.NotForScripts,
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

// serverOffFault returns the fault for a server that may not be mounted.
func serverOffFault(row config.Server) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked,
		Step: fmt.Sprintf("server %q is off", row.ID), Err: errors.New(row.Reason),
	}
}

func hasRowNamed(rows []config.Server, id drawbridge.ServerID) bool {
	return slices.ContainsFunc(rows, func(row config.Server) bool { return row.ID == id })
}
