package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// Changes lists the servers that a reload added, removed or changed, each list in configuration order.
type Changes struct {
	Added   []drawbridge.ServerID `json:"added"`
	Removed []drawbridge.ServerID `json:"removed"`
	// Changed are the servers whose configuration has changed. They are restarted.
	Changed []drawbridge.ServerID `json:"changed"`
}

// IsEmpty reports whether no server changed.
func (c Changes) IsEmpty() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) == 0 }

// Reload reads the configuration again and applies the changes of servers. Other servers continue, calls in flight
// complete normally, and callers are notified of changed lists. A workspace that was made since is opened. Of the settings, Reload applies only the rules, all of
// them or none; other changed settings apply after the next start. Reload also reads the trust data that other
// processes have stored. The error is a *drawbridge.Fault. Its code is InvalidInput if a file can no longer be read, or
// if the file with the rules is missing. Then nothing changes.
func (g *Gateway) Reload(ctx context.Context) (Changes, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if book := g.shared.trustAccounts; book != nil {
		if err := book.Load(ctx); err != nil {
			return Changes{}, err
		}
	}
	r, err := g.shared.LoadConfig(ctx, g.config)
	if err != nil {
		return Changes{}, err
	}
	set := r.set
	if err := checkSourcesReadable(g.set, set); err != nil {
		return Changes{}, err
	}
	if err := checkRulesKept(g.set, set); err != nil {
		return Changes{}, err
	}
	for _, row := range g.attached {
		if !hasRowNamed(set.Servers, row.ID) {
			set.Servers = append(set.Servers, row)
		}
	}
	before, rows := g.set.Settings, g.set.Servers
	before.Rules = set.Settings.Rules
	set.Settings = before
	ruled := !reflect.DeepEqual(r.rules(), LoadedConfig{config: g.config, set: g.set}.rules())
	g.updateRows(r.policy, set.Servers, set.Settings.RootURIs()) // before a new card can be called
	changes, err := g.applyConfig(ctx, set)
	if err != nil && changes.IsEmpty() { // nothing was changed: restore the rules
		g.updateRows(g.policy, g.set.Servers, g.set.Settings.RootURIs())
	} else if g.policy = r.policy; ruled || !changes.IsEmpty() && g.ruleGuard.HidesAnything() {
		g.deck.Refresh()
	}
	if ruled {
		g.recordRulesChange(r.rules())
	}
	g.updateOwnFiles()
	return changes, errors.Join(err, g.addWorkspace(ctx), g.forgetOutputs(ctx, rows), g.recheckPins(ctx), g.revetLocked(ctx))
}

// Relist requests the lists of the named servers again, or of all servers if none is named. It is needed because a
// server may not send list_changed, or may send it to another process. If a person has decided on a changed definition,
// the decision is in force when Relist returns. listed are the servers that were listed. away are the servers that are
// not connected; they are listed when they start. err joins the errors of the other servers, whose cards stay
// unchanged.
func (g *Gateway) Relist(ctx context.Context, servers ...drawbridge.ServerID) (listed,
	away []drawbridge.ServerID, err error) {
	g.shared.pinChecker.InvalidateStates() // new listings are compared with the pins now in the store
	var mu sync.Mutex
	var errs []error
	var work sync.WaitGroup
	for _, row := range g.Config().Mountable() {
		if len(servers) > 0 && !slices.Contains(servers, row.ID) {
			continue
		}
		work.Go(func() {
			connected, err := g.fleet.Relist(ctx, row.ID)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				errs = append(errs, err)
			case connected:
				listed = append(listed, row.ID)
			default:
				away = append(away, row.ID)
			}
		})
	}
	work.Wait()
	slices.Sort(listed)
	slices.Sort(away)
	return listed, away, errors.Join(errs...)
}

// SetConfigSource sets the fields Paths, Dir and LookupEnv that the next Reload uses to the values in c.
func (g *Gateway) SetConfigSource(c Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config.Paths, g.config.Dir, g.config.LookupEnv = c.Paths, c.Dir, c.LookupEnv
}

// checkSourcesReadable returns an error if a configuration file that was read before still exists but could not be read
// this time.
func checkSourcesReadable(before, now config.Configuration) error {
	for _, path := range before.Sources {
		if slices.Contains(now.Sources, path) {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			continue // it was removed
		}
		cause := errors.New("it cannot be read any more")
		for _, w := range now.Warnings {
			if w.Origin.Path == path {
				cause = errors.New(w.String())
			}
		}
		return &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput,
			Step: "reload the configuration, which stays as it was", Err: cause, Next: "mend the file",
		}
	}
	return nil
}

// checkRulesKept returns an error if there were rules before and now there are none, because a configuration file is
// missing. The cause may be an unmounted volume, a broken link, or an editor that is saving the file. A person who
// wants no rules must remove them from the file.
func checkRulesKept(before, now config.Configuration) error {
	if before.Settings.Rules == nil || now.Settings.Rules != nil {
		return nil
	}
	for _, path := range before.Sources {
		if !slices.Contains(now.Sources, path) {
			return &drawbridge.Fault{
				Kind: drawbridge.Backend, Code: drawbridge.InvalidInput,
				Step: "reload the configuration, which stays as it was",
				Err:  fmt.Errorf("%s is gone, and with it the rules", path), Next: "put it back, or start without it",
			}
		}
	}
	return nil
}

// applyConfig replaces the configuration of the gateway by set and returns the changed servers. If it returns an error
// and no changes, the configuration is unchanged. The caller must hold mu.
func (g *Gateway) applyConfig(ctx context.Context, set config.Configuration) (Changes, error) {
	changes, leaving := diffRows(g.set.Mountable(), set.Mountable())
	before := g.set
	g.set = set
	if changes.IsEmpty() && reflect.DeepEqual(mountableIDs(before), mountableIDs(set)) {
		return changes, nil
	}
	coming := slices.Concat(changes.Added, changes.Changed)
	mounts, err := g.shared.db.MountsOf(ctx, config.ServerHashes(set.Mountable()))
	if err == nil {
		members := g.deckMembers()
		for _, m := range members {
			if slices.Contains(coming, m.ID) {
				g.shared.vetted.restore(m.ConfigHash, mounts[m.ConfigHash].Vetted)
			}
		}
		err = g.enroller.configure(ctx, members, mounts)
	}
	if err != nil {
		g.set = before
		return Changes{}, storeFault("record the configuration", err)
	}
	for _, id := range leaving {
		g.starter.forget(id)
		_, err = g.fleet.Remove(id) // the server stops when its calls have ended
	}
	g.fleet.SetRemembered(rememberedMounts(mounts))
	for _, row := range set.Mountable() {
		if slices.Contains(coming, row.ID) {
			err = errors.Join(err, g.fleet.Add(row))
			if mounts[row.Hash].Listing == nil {
				g.starter.noteAddedServer(row.ID)
			}
		}
	}
	if err != nil {
		return changes, fmt.Errorf("reload the configuration: %w", err)
	}
	return changes, nil
}

// rememberedMounts splits the stored mounts into listings and statuses, for a fleet. The keys of all maps are
// configuration hashes.
func rememberedMounts(mounts map[string]store.MountRecord) (known map[string]drawbridge.Listing,
	last map[string]drawbridge.ServerStatus) {
	known, last = map[string]drawbridge.Listing{}, map[string]drawbridge.ServerStatus{}
	for row, m := range mounts {
		if m.Listing != nil {
			known[row] = *m.Listing
		}
		if m.Status != nil {
			last[row] = *m.Status
		}
	}
	return known, last
}

// diffRows compares the mountable servers before and after a reload. leaving are the servers to stop: the removed
// servers, and the changed servers, which are started again.
func diffRows(before, now []config.Server) (c Changes, leaving []drawbridge.ServerID) {
	c = Changes{Added: []drawbridge.ServerID{}, Removed: []drawbridge.ServerID{}, Changed: []drawbridge.ServerID{}}
	find := func(rows []config.Server, id drawbridge.ServerID) (config.Server, bool) {
		i := slices.IndexFunc(rows, func(row config.Server) bool { return row.ID == id })
		if i < 0 {
			return config.Server{}, false
		}
		return rows[i], true
	}
	for _, old := range before {
		row, ok := find(now, old.ID)
		switch {
		case !ok:
			c.Removed = append(c.Removed, old.ID)
		case !isSameServer(old, row):
			c.Changed = append(c.Changed, old.ID)
		default:
			continue
		}
		leaving = append(leaving, old.ID)
	}
	for _, row := range now {
		if _, ok := find(before, row.ID); !ok {
			c.Added = append(c.Added, row.ID)
		}
	}
	return c, leaving
}

// isSameServer reports whether two servers have the same configuration, except for the file that it comes from.
func isSameServer(a, b config.Server) bool {
	return reflect.DeepEqual(a.WithoutOrigin(), b.WithoutOrigin())
}

// mountableIDs returns the names of the mountable servers, in configuration order.
func mountableIDs(set config.Configuration) (ids []drawbridge.ServerID) {
	for _, row := range set.Mountable() {
		ids = append(ids, row.ID)
	}
	return ids
}
