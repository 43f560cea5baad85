package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// importServers writes the new rows, with their plain-text secrets or with references. It returns false if the person
// did not answer the question about the secrets.
func (a *app) importServers(ctx context.Context, o importFlags, found *importReport, rows []config.ImportCandidate) (
	done bool, err error) {
	move, err := a.confirmSecretsMove(ctx, o, rows)
	if err != nil {
		return false, nil
	}
	var all []admin.MovedSecrets
	undo := func(err error) error {
		for _, k := range all {
			err = errors.Join(err, k.Undo())
		}
		return err
	}
	if move {
		rows = slices.Clone(rows)
		for i, row := range rows {
			if row.Status != config.ImportNew {
				continue
			}
			kept, err := admin.MoveRowSecrets(a.vaultSecrets(), row.Name, row.Raw, a.Env)
			if err != nil {
				return false, undo(err)
			}
			all = append(all, kept)
			rows[i].Raw = kept.Row
		}
	}
	if found.Taken, err = config.ImportServers(found.File, rows); err != nil {
		return false, undo(err)
	}
	for _, k := range all {
		found.Kept = append(found.Kept, k.Names...)
	}
	return true, nil
}

// confirmSecretsMove reports whether to move secrets to the keychain; it asks if no flag decides. The error means that
// no answer came.
func (a *app) confirmSecretsMove(ctx context.Context, o importFlags, rows []config.ImportCandidate) (bool, error) {
	n := 0
	for _, row := range rows {
		if row.Status == config.ImportNew {
			n += admin.CountMovableSecrets(row.Raw, a.Env)
		}
	}
	switch {
	case n == 0 || o.secrets == "keep":
		return false, nil
	case o.secrets == "move":
		return true, nil
	case o.yes || o.asJSON || !a.isInteractive():
		return false, nil
	}
	to := "the keychain"
	if v, err := a.openVault(); err == nil && v.KeyLocation() != secrets.InKeychain {
		to = "sealed files (no keychain keeps their key)"
	}
	return a.confirm(ctx, fmt.Sprintf("Move %s to %s? [Y/n] ", formatCount(n, "secret"), to), true)
}

// printMovedSecrets prints where the secrets of the copied rows are.
func (a *app) printMovedSecrets(found importReport) {
	if len(found.Kept) > 0 {
		safetext.Fprintf(a.Out, "✓ %s moved out of it: %s\n", formatCount(len(found.Kept), "secret"),
			strings.Join(found.Kept, ", "))
		a.printSecretLocation()
		return
	}
	for _, f := range found.Servers {
		if slices.Contains(found.Taken, f.Name) && f.Status == config.ImportNew && f.movable {
			safetext.Fprintf(a.Out,
				"secrets of %s stay in plain text: drawbridge secret move %s has them in the keychain\n", f.Name,
				f.Name)
		}
	}
}
