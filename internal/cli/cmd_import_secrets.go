package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// importServers copies the new servers into the person's configuration. If the person agrees, it first stores their
// plain-text secrets encrypted, and the copies refer to the stored secrets. If the person does not answer the question
// about the secrets, nothing is copied, and done is false.
func (a *app) importServers(ctx context.Context, o importFlags, found *admin.ImportReport) (done bool, err error) {
	move, err := a.confirmSecretsMove(ctx, o, found.MovableSecrets)
	if err != nil {
		return false, nil
	}
	err = a.adminService().ImportServers(found, move)
	return err == nil, err
}

// confirmSecretsMove reports whether to store n secrets of copied servers encrypted, instead of in plain text in the
// configuration file. --secrets decides. Without it the person is asked at a terminal; elsewhere, or with --yes or
// --json, the result is false. The error means that the person did not answer.
func (a *app) confirmSecretsMove(ctx context.Context, o importFlags, n int) (bool, error) {
	switch {
	case n == 0 || o.secrets == "keep":
		return false, nil
	case o.secrets == "move":
		return true, nil
	case o.yes || o.asJSON || !a.isInteractive():
		return false, nil
	}
	question := "Store %s in the system keychain instead of in plain text?"
	if p, err := a.adminService().SecretProtection(); err == nil && !p.InKeychain {
		// The text is printed before the prompt: in the prompt, a terminal of 80 columns would break the lines.
		fmt.Fprint(a.Err, "No system keychain was found. The key of the encrypted files is stored next to them:\n"+
			"this only protects against accidental display.\n")
		question = "Encrypt %s in files here?"
	}
	return a.confirm(ctx, fmt.Sprintf(question, formatCount(n, "secret")), true)
}

// printMovedSecrets prints the names of the stored secrets, and the files and servers whose secrets remain in plain
// text.
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
