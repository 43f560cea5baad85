package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// A HeldTool is a tool whose server now sends a definition that differs from the pinned definition, which is the
// accepted one. Part is empty for a tool. Otherwise the changed item is a prompt, a template or the server's
// instructions; see shield.PinnedParts. Pin.Pending is the new definition.
type HeldTool struct {
	Server drawbridge.ServerID
	Part   string
	Pin    shield.Pin

	place    store.PinKey
	lockable bool
}

// Label returns a name for the item, in which the part distinguishes items with the same name; see shield.PinLabel.
func (h HeldTool) Label() string { return shield.PinLabel(h.Part, h.Pin.Tool) }

// HeldTools returns the items of a server whose changed definition waits for a decision or was rejected. If id is
// empty, it returns those of all servers, sorted by server. tools are labels; if there are any, it returns only these
// items, in their order. The error is the store's, or a UserError. A UserError reports a server that is not configured,
// or a named tool without a changed definition.
func (r *Service) HeldTools(ctx context.Context, id drawbridge.ServerID, tools ...string) ([]HeldTool, error) {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return nil, err
	}
	rows := roll.Servers
	if id != "" {
		row, ok := roll.Lookup(id)
		if !ok {
			return nil, roll.notFoundError(id)
		}
		rows = []config.Server{row}
	}
	all, err := r.readHeldTools(ctx, roll.Configuration, rows)
	if err != nil || len(tools) == 0 {
		return all, err
	}
	named := make([]HeldTool, 0, len(tools))
	for _, tool := range tools {
		i := slices.IndexFunc(all, func(h HeldTool) bool { return h.Label() == tool })
		if i < 0 {
			return nil, notHeldError(id, tool, all)
		}
		named = append(named, all[i])
	}
	return named, nil
}

// HeldToolsOf is like HeldTools for all servers of a list, and does not read the configuration again.
func (r *Service) HeldToolsOf(ctx context.Context, list ListResult) ([]HeldTool, error) {
	rows := list.InForce()
	return r.readHeldTools(ctx, config.Configuration{Settings: list.Settings, Servers: rows}, rows)
}

// notHeldError returns the error for a named tool that has no changed definition. The error suggests the most similar
// label of the tools in held.
func notHeldError(id drawbridge.ServerID, tool string, held []HeldTool) error {
	text := fmt.Sprintf("Tool %q of server %q is not held", tool, id)
	labels := make([]string, len(held))
	for i, h := range held {
		labels[i] = h.Label()
	}
	if near := configfile.Nearest(tool, labels); near != "" {
		return userErrorf("%s; did you mean %q?", text, near)
	}
	return userErrorf("%s. drawbridge shield held %s lists those that are.", text, id)
}

// readHeldTools returns the tools with a changed definition, for the servers of these rows, from the store.
func (r *Service) readHeldTools(ctx context.Context, set config.Configuration, rows []config.Server) (
	all []HeldTool, err error) {
	db, err := r.openStore(ctx, set, false)
	if err != nil || db == nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := gateway.MoveLinkedPins(ctx, db, rows); err != nil {
		return nil, err
	}
	lists, err := db.PinStates(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		place := gateway.PinKeyOf(row)
		for _, place.Part = range shield.PinnedParts() {
			if lists[place].Offers == 0 {
				continue
			}
			pins, err := db.Pins(ctx, place)
			if err != nil {
				return nil, err
			}
			for _, tool := range slices.Sorted(maps.Keys(pins)) {
				if pins[tool].Pending != nil {
					all = append(all, HeldTool{row.ID, place.Part, pins[tool], place, gateway.LockfileCovers(row)})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b HeldTool) int { return cmp.Compare(a.Server, b.Server) })
	return all, nil
}

// AcceptTools accepts the new definitions of tools that HeldTools returned: it pins them in the store. In the lockfile
// it replaces the definitions of those tools that the lockfile contains. live describes to the person what the running
// servers did. The error is the store's or the lockfile's, or it names a tool whose definition has changed again since.
// After an error, the tools before the failed one are accepted.
func (r *Service) AcceptTools(ctx context.Context, tools []HeldTool) (live string, err error) {
	return r.decideHeldTools(ctx, tools, func(p shield.Pin, hash string) (shield.Pin, error) {
		return p.Accept(hash,
			time.Now())
	}, true)
}

// RejectTools rejects the new definitions of tools that HeldTools returned. A rejected definition is not used, and the
// person is not asked about it again. The results have the same meaning as those of AcceptTools.
func (r *Service) RejectTools(ctx context.Context, tools []HeldTool) (live string, err error) {
	return r.decideHeldTools(ctx, tools, shield.Pin.Reject, false)
}

func (r *Service) decideHeldTools(ctx context.Context, tools []HeldTool, decide func(p shield.Pin,
	hash string) (shield.Pin, error), lock bool) (string, error) {
	if len(tools) == 0 {
		return "", nil
	}
	set, err := config.Load(r.o.ConfigOptions)
	if err != nil {
		return "", err
	}
	db, err := r.openStore(ctx, set, true)
	if err != nil {
		return "", err
	}
	done := 0
	for _, h := range tools {
		act := gateway.AdminAction{Command: "shield reject", Server: h.Server, Subject: h.Label(),
			Detail: h.Pin.Pending.Hash}
		if lock {
			act.Command = "shield accept"
		}
		err = r.o.AdminRecorder.Run(act, func() error {
			return db.UpdatePins(ctx, h.place, func(pins map[string]shield.Pin) ([]shield.Pin, []byte, error) {
				p, err := decide(pins[h.Pin.Tool], h.Pin.Pending.Hash)
				return []shield.Pin{p}, nil, err
			})
		})
		if err != nil {
			err = fmt.Errorf("%s %q was left as it was: %w", h.Server, h.Label(), err)
			break
		}
		done++
	}
	err = errors.Join(err, db.Close())
	if done == 0 {
		return "", err
	}
	if lock {
		err = errors.Join(err, r.updateLockfile(set, tools[:done]))
	}
	var servers []drawbridge.ServerID
	for _, h := range tools[:done] {
		servers = append(servers, h.Server)
	}
	return r.relistAfterDecision(ctx, slices.Compact(servers)...), err
}

// updateLockfile replaces definitions in the configured lockfile with the accepted definitions of tools. It does not
// add tools that the lockfile does not contain, and does nothing if there is no lockfile.
func (r *Service) updateLockfile(set config.Configuration, tools []HeldTool) error {
	path, _, err := config.LockfilePath(r.o.ConfigOptions, set.Settings)
	if err != nil || path == "" {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return nil // there is no lockfile
	}
	_, err = gateway.EditLockfile(path, func(said []shield.LockedTool) []shield.LockedTool {
		for i, l := range said {
			for _, h := range tools {
				if h.lockable && h.Server == l.Server && h.Part == l.Part && h.Pin.Tool == l.Tool {
					said[i].Definition = h.Pin.Pending.Definition
				}
			}
		}
		return said
	})
	return err
}
