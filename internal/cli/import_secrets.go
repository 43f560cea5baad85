package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/secrets"
)

// takeOver writes what is new, with or without the secrets that stand there in plain text. It says false where the person,
// asked about those, went away.
func (a *app) takeOver(ctx context.Context, o importing, found *imported, rows []config.Found) (done bool, err error) {
	move, err := a.movesSecrets(ctx, o, rows)
	if err != nil {
		return false, nil
	}
	var all []roster.Kept
	undo := func(err error) error {
		for _, k := range all {
			err = errors.Join(err, k.Undo())
		}
		return err
	}
	if move {
		rows = slices.Clone(rows)
		for i, row := range rows {
			if row.Status != config.New {
				continue
			}
			kept, err := roster.Keep(a.keeper(), row.Name, row.Row, a.Env)
			if err != nil {
				return false, undo(err)
			}
			all = append(all, kept)
			rows[i].Row = kept.Row
		}
	}
	if found.Taken, err = config.TakeOver(found.File, rows); err != nil {
		return false, undo(err)
	}
	for _, k := range all {
		found.Kept = append(found.Kept, k.Names...)
	}
	return true, nil
}

// movesSecrets says whether secrets are to be moved to the keychain, and asks where nothing says so. The error means that
// there was no answer.
func (a *app) movesSecrets(ctx context.Context, o importing, rows []config.Found) (bool, error) {
	n := 0
	for _, row := range rows {
		if row.Status == config.New {
			n += roster.Movable(row.Row, a.Env)
		}
	}
	switch {
	case n == 0 || o.secrets == "keep":
		return false, nil
	case o.secrets == "move":
		return true, nil
	case o.yes || o.asJSON || !a.asks():
		return false, nil
	}
	to := "the keychain"
	if v, err := a.vault(); err == nil && v.Place() != secrets.InKeychain {
		to = "sealed files (no keychain keeps their key)"
	}
	return a.confirm(ctx, fmt.Sprintf("Move %s to %s? [Y/n] ", count(n, "secret"), to), true)
}

// sayKept says where the secrets of what was taken over are.
func (a *app) sayKept(found imported) {
	if len(found.Kept) > 0 {
		safetext.Fprintf(a.Out, "✓ %s moved out of it: %s\n", count(len(found.Kept), "secret"), strings.Join(found.Kept, ", "))
		a.sayWhere()
		return
	}
	for _, f := range found.Servers {
		if slices.Contains(found.Taken, f.Name) && f.Status == config.New && f.movable {
			safetext.Fprintf(a.Out, "secrets of %s stay in plain text: drawbridge secret move %s has them in the keychain\n", f.Name, f.Name)
		}
	}
}
