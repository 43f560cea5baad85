package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// importServers writes the new rows, with their plain-text secrets or with references. It returns false if the person
// did not answer the question about the secrets.
func (a *app) importServers(ctx context.Context, o importFlags, found *admin.ImportReport) (done bool, err error) {
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
	question := "Store %s in the system keychain instead of in plain text? [Y/n] "
	if p, err := a.adminService().SecretProtection(); err == nil && !p.InKeychain {
		// Lines of their own: a terminal of 80 columns would break them in the prompt.
		fmt.Fprint(a.Err, "No system keychain was found. The key of the encrypted files is stored next to them:\n"+
			"this only protects against accidental display.\n")
		question = "Encrypt %s in files here? [Y/n] "
	}
	return a.confirm(ctx, fmt.Sprintf(question, formatCount(n, "secret")), true)
}

// printMovedSecrets prints where the secrets of the copied rows are, and where they remain in plain text.
func (a *app) printMovedSecrets(found admin.ImportReport) {
	files := found.PlaintextFiles()
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
	for _, c := range found.Servers {
		if c.Status == config.ImportNew && c.Movable {
			safetext.Fprintf(a.Out,
				"secrets of %s stay in plain text: drawbridge secret move %s stores them encrypted\n", c.Name, c.Name)
		}
	}
}
