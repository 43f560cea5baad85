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
	return a.confirm(ctx, a.moveSecretsQuestion(n), true)
}

// moveSecretsQuestion asks to store n secrets, and names the place.
func (a *app) moveSecretsQuestion(n int) string {
	if v, err := a.openVault(); err == nil && v.KeyLocation() != secrets.InKeychain {
		return fmt.Sprintf("No system keychain found. Encrypt %s in files here? (The key is stored next to them, so this "+
			"only protects against accidental display.) [Y/n] ", formatCount(n, "secret"))
	}
	return fmt.Sprintf("Store %s in the system keychain instead of in plain text? [Y/n] ", formatCount(n, "secret"))
}

// printMovedSecrets prints where the secrets of the copied rows are, and where they remain in plain text.
func (a *app) printMovedSecrets(found importReport, rows []config.ImportCandidate) {
	files := admin.PlaintextFiles(rows)
	for i, path := range files {
		files[i] = a.abbreviateHome(path)
	}
	if len(found.Kept) > 0 {
		safetext.Fprintf(a.Out, "✓ Stored %s encrypted on this machine: %s\n", formatCount(len(found.Kept), "secret"),
			strings.Join(found.Kept, ", "))
		if len(files) > 0 {
			safetext.Fprintf(a.Out, "The originals remain in plain text in %s: change them there, or run drawbridge connect "+
				"CLIENT --replace.\n", strings.Join(files, " and "))
		}
		a.printSecretLocation()
		return
	}
	for _, c := range rows {
		if c.Status == config.ImportNew && admin.CountMovableSecrets(c.Raw, a.Env) > 0 {
			safetext.Fprintf(a.Out,
				"secrets of %s stay in plain text: drawbridge secret move %s stores them encrypted\n", c.Name, c.Name)
		}
	}
}
