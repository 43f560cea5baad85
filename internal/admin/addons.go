package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/addons"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// Addons returns the addons in the person's own directory and in the working directory, each with its state, such as
// "active". It does not run them.
func (r *Service) Addons(ctx context.Context) ([]gateway.FoundAddon, error) {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return nil, err
	}
	db, err := r.openStoreOfSettings(ctx, false)
	if err != nil {
		return nil, err
	}
	var decisions store.RowApprovals
	if db != nil {
		decisions, err = db.RowApprovals(ctx, gateway.CurrentApprover())
		if err := errors.Join(err, db.Close()); err != nil {
			return nil, err
		}
	}
	return gateway.FindAddons(gateway.Config{Paths: r.o.ConfigOptions.Paths, Dir: r.o.ConfigOptions.Dir,
		LookupEnv: r.o.ConfigOptions.LookupEnv}, roll.Settings, decisions)
}

// FindProjectAddon returns the addon with this ID in the working directory, for a decision by DecideAddon. It returns a
// UserError if there is no such addon, if it is the person's own and needs no decision, or if it is unusable.
func (r *Service) FindProjectAddon(ctx context.Context, id string) (gateway.FoundAddon, error) {
	all, err := r.Addons(ctx)
	if err != nil {
		return gateway.FoundAddon{}, err
	}
	i := slices.IndexFunc(all, func(a gateway.FoundAddon) bool { return a.ID == id && a.FromProject })
	switch {
	case i < 0 && slices.ContainsFunc(all, func(a gateway.FoundAddon) bool { return a.ID == id }):
		return gateway.FoundAddon{}, userErrorf("Addon %q needs no approval: it is your own.", id)
	case i < 0:
		return gateway.FoundAddon{}, userErrorf("Addon %q is not in this directory (drawbridge addon list).", id)
	case all[i].State == gateway.AddonUnusable:
		return gateway.FoundAddon{}, userErrorf("Addon %q cannot be approved: %v", id, all[i].Err)
	}
	found := all[i]
	if found.Found = addons.Read(found.Dir, true); found.Err != nil {
		return found, userErrorf("Addon %q cannot be approved: %v", id, found.Err)
	}
	return found, nil
}

// DecideAddon stores a person's approval or rejection of an addon in the working directory, which FindProjectAddon
// returned. If the addon's files change later, the decision is no longer valid.
func (r *Service) DecideAddon(ctx context.Context, a gateway.FoundAddon, approved bool) error {
	db, err := r.openStoreOfSettings(ctx, true)
	if err != nil {
		return err
	}
	row := gateway.AddonRow(a.Found)
	act := gateway.AdminAction{Command: map[bool]string{true: "addon approve", false: "addon reject"}[approved],
		Subject: row.Origin.Path, Detail: "files " + row.Hash}
	err = r.o.AdminRecorder.Run(act, func() error {
		return db.SaveRowApproval(ctx, store.RowApproval{Path: row.Origin.Path, Server: row.ID, Hash: row.Hash,
			By: gateway.CurrentApprover(), Shown: AddonFacts(a.Found), Approved: approved})
	})
	return errors.Join(err, db.Close())
}

// AddonFacts returns lines that describe an addon to the person who decides on it: what it runs, which calls it changes
// or blocks, and its tools.
func AddonFacts(f addons.Found) (facts []config.NameValue) {
	add := func(name, format string, args ...any) {
		facts = append(facts, config.NameValue{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	add("addon", "%s %s", f.ID, f.Version)
	if f.Summary != "" {
		add("summary", "%s", f.Summary)
	}
	add("directory", "%s", f.Dir)
	if len(f.Exec) > 0 {
		add("runs", "%s", strings.Join(f.Exec, " "))
	}
	for _, h := range f.Handlers {
		what := map[string]string{addons.Observe: "is told of", addons.Transform: "may rewrite", addons.Block: "may block"}[h.Kind]
		add("handler", "%s %s, tools %s", what, h.Event, patternOf(h.MatchTool))
	}
	for _, g := range f.Gates {
		add("gate", "blocks tools %s: %s", patternOf(g.MatchTool), g.Reason)
	}
	for _, t := range f.Tools {
		add("tool", "%s: %s", t.Name, t.Description)
	}
	for _, c := range f.Commands {
		add("command", "%s runs %s", c.Name, strings.Join(c.Exec, " "))
	}
	if f.OnError == "continue" {
		add("on error", "calls continue")
	}
	if f.Digest != "" {
		add("files", "sha256:%s", f.Digest)
	}
	return facts
}

func patternOf(glob string) string {
	if glob == "" {
		return "*"
	}
	return glob
}
