package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// importServers writes the new rows, with their plain-text secrets or with references. It returns false if the person
// did not answer the question about the secrets.
func (a *app) importServers(ctx context.Context, o importFlags, found *admin.ImportReport) (done bool,
	err error) {
	move, err := a.confirmSecretsMove(ctx, o, found.MovableSecrets)
	if err != nil {
		return false, nil
	}
	err = a.adminService().ImportServers(found, move)
	return err == nil, err
}

// confirmSecretsMove reports whether to move n secrets to the keychain; it asks if no flag decides. The error means that
// no answer came.
func (a *app) confirmSecretsMove(ctx context.Context, o importFlags, n int) (bool, error) {
	switch {
	case n == 0 || o.secrets == "keep":
		return false, nil
	case o.secrets == "move":
		return true, nil
	case o.yes || o.asJSON || !a.isInteractive():
		return false, nil
	}
	to := "the keychain"
	if p, err := a.adminService().SecretProtection(); err == nil && !p.InKeychain {
		to = "sealed files (no keychain keeps their key)"
	}
	return a.confirm(ctx, fmt.Sprintf("Move %s to %s? [Y/n] ", formatCount(n, "secret"), to), true)
}

// printMovedSecrets prints where the secrets of the copied rows are.
func (a *app) printMovedSecrets(found admin.ImportReport) {
	if len(found.Kept) > 0 {
		safetext.Fprintf(a.Out, "✓ %s moved out of it: %s\n", formatCount(len(found.Kept), "secret"),
			strings.Join(found.Kept, ", "))
		a.printSecretLocation()
		return
	}
	for _, f := range found.Servers {
		if slices.Contains(found.Taken, f.Name) && f.Status == config.ImportNew && f.Movable {
			safetext.Fprintf(a.Out,
				"secrets of %s stay in plain text: drawbridge secret move %s has them in the keychain\n", f.Name,
				f.Name)
		}
	}
}
