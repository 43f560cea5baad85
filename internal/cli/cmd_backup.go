package cli

import (
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (a *app) backupCommand() *cobra.Command {
	var o gateway.BackupOptions
	var passphraseFile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the store, the vault and their keys to one file",
		Long: `Write the store, the vault and their keys to one file. Programs may go on using them meanwhile; the
file has the store as it is at one moment, with the records of calls that are not in it yet.

The file holds your secrets. Only you may read it; with --passphrase-file it is sealed with a passphrase
(age). A Postgres store is not part of it: copy that with pg_dump, and the rest with --without-store.`,
		Example: `  drawbridge backup ~/drawbridge.backup
  drawbridge backup --config --passphrase-file pass.txt /mnt/usb/drawbridge.backup`,
		Args: exactArgs(1, "the name of one file"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.Passphrase, err = a.readPassphraseFlag(passphraseFile); err != nil {
				return err
			}
			path := a.absolutePath(args[0])
			report, err := a.adminService().BackUp(cmd.Context(), path, o)
			if err != nil {
				return err
			}
			if asJSON {
				return PrintJSON(a.Out, report)
			}
			a.printBackup(path, report, o.Passphrase != "")
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.Config, "config", false, "include your own mcp.json and drawbridge.toml")
	cmd.Flags().BoolVar(&o.WithoutStore, "without-store", false, "leave the store out")
	cmd.Flags().BoolVar(&o.Overwrite, "force", false, "replace an existing file")
	cmd.Flags().StringVar(&passphraseFile, "passphrase-file", "", "seal it with the passphrase in `FILE`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the manifest as JSON")
	return cmd
}

// readPassphraseFlag returns the passphrase in a file, or "" if file is empty.
func (a *app) readPassphraseFlag(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	return admin.ReadPassphrase(a.absolutePath(file))
}

func (a *app) absolutePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.Dir, path)
}

func (a *app) printBackup(path string, r gateway.BackupReport, sealed bool) {
	var bytes int64
	for _, p := range r.Parts {
		bytes += p.Size
	}
	safetext.Fprintf(a.Out, "✓ wrote %s: %s, %s\n", a.abbreviateHome(path), formatCount(len(r.Parts), "part"),
		formatBytes(bytes))
	for _, p := range r.Parts {
		safetext.Fprintf(a.Out, "  %s\n", p.Name)
	}
	for _, note := range r.Notes {
		safetext.Fprintf(a.Out, "note: %s\n", note)
	}
	if !sealed {
		safetext.Fprintln(a.Out, "note: it holds secrets and is not sealed: keep it where only you can read it, or "+
			"use --passphrase-file")
	}
}

func (a *app) restoreCommand() *cobra.Command {
	var o gateway.RestoreOptions
	var passphraseFile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of the store and the vault",
		Long: `Put a backup in the place of the store and the vault. No program may use them meanwhile. With --force
an existing store and vault are replaced; they are kept beside, as *.before-restore.

Questions that wait for an answer, and approvals with an end, are over after a restore. If the replaced store
is an earlier or later state of the same one, client tokens, approvals and counts that ended there stay ended.`,
		Example: `  drawbridge restore ~/drawbridge.backup
  drawbridge restore --force --config --passphrase-file pass.txt drawbridge.backup`,
		Args: exactArgs(1, "the name of one file"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.Passphrase, err = a.readPassphraseFlag(passphraseFile); err != nil {
				return err
			}
			report, err := a.adminService().Restore(cmd.Context(), a.absolutePath(args[0]), o)
			if err != nil {
				return err
			}
			if asJSON {
				return PrintJSON(a.Out, report)
			}
			a.printRestore(report)
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.Config, "config", false, "restore your own mcp.json and drawbridge.toml too")
	cmd.Flags().BoolVar(&o.Replace, "force", false, "replace an existing store and vault, and keep them beside")
	cmd.Flags().StringVar(&passphraseFile, "passphrase-file", "", "the passphrase is in `FILE`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) printRestore(r gateway.RestoreReport) {
	safetext.Fprintf(a.Out, "✓ restored the backup of %s, made by drawbridge %s\n", formatLocalTime(r.Made), r.Program)
	for _, path := range r.Restored {
		safetext.Fprintf(a.Out, "  %s\n", a.abbreviateHome(path))
	}
	for _, path := range r.Aside {
		safetext.Fprintf(a.Out, "  kept the old one as %s\n", a.abbreviateHome(path))
	}
	if r.Asks+r.Grants > 0 {
		safetext.Fprintf(a.Out, "note: %s and %s of the backup are over\n", formatCount(int(r.Asks), "question"),
			formatCount(int(r.Grants), "approval"))
	}
	if r.Store != "" && !r.Carried {
		safetext.Fprintln(a.Out, "note: client tokens and approvals that were removed after the backup are valid again: "+
			"see drawbridge client list and drawbridge ask grants")
	}
	if r.KeychainSecrets > 0 {
		safetext.Fprintf(a.Out, "note: %s need the key in the keychain of the system where the backup was made: "+
			"on another system, set them again (drawbridge secret list)\n", formatCount(r.KeychainSecrets, "secret"))
	}
	safetext.Fprintln(a.Out, "next: drawbridge doctor")
}
