package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// importFlags are the flags of "import".
type importFlags struct {
	from                []string
	servers, renames    []string // [PROGRAM:]NAME, and [PROGRAM:]NAME=NEW
	secrets             string   // what to do with plain-text secrets: "move", "keep", or "" to ask
	yes, dryRun, asJSON bool
}

func (a *app) importCommand() *cobra.Command {
	var o importFlags
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Copy the servers that you configured in other programs",
		Long: `Copy the servers that you configured in other programs. The command prints a table, asks, and
writes the new servers to your own mcp.json. It changes nothing in the other programs' files
(drawbridge connect puts Drawbridge into one) and starts no server.

  new        will be copied
  same       your own configuration or an earlier program has the same server
  shadowed   an earlier program has another server of that name, which wins
  conflict   your own configuration has another server of that name
  left out   --server did not name it
  refused    it could not be mounted

Servers of project directories are not copied: they stay there and wait for approval.

Values of "env" and "headers" that look like secrets can be moved to the keychain; the copied
row then refers to them. At a terminal the command asks; elsewhere --secrets move does it.`,
		Example: `  drawbridge import                          show, ask, and copy
  drawbridge import --as cursor:github=gh2   and a shadowed one under another name
  drawbridge import --from cursor --yes      without asking
  drawbridge import --yes --secrets move     and with secrets in the keychain
  drawbridge import --dry-run --json`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(a.configPaths) > 0 {
				return usageError{errors.New("import writes to your own mcp.json: --mcp has no place here")}
			}
			if o.secrets != "" && o.secrets != "move" && o.secrets != "keep" {
				return usageError{errors.New("invalid --secrets value: use move or keep")}
			}
			return a.runImport(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.from, "from", nil, "only the servers of `PROGRAM`, such as cursor or claude-code; may be repeated")
	flags.StringSliceVar(&o.servers, "server", nil,
		"only the server `[PROGRAM:]NAME`, such as cursor:github; may be repeated")
	flags.StringSliceVar(&o.renames, "as", nil,
		"copy a server under another name: `[PROGRAM:]NAME=NEW`; may be repeated")
	flags.StringVar(&o.secrets, "secrets", "",
		"`move` stores values that look like secrets in the keychain, keep leaves them in the file")
	flags.BoolVarP(&o.yes, "yes", "y", false, "copy without asking")
	flags.BoolVar(&o.dryRun, "dry-run", false, "change nothing")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON; no questions are asked, and only --yes copies")
	return cmd
}

func (a *app) runImport(ctx context.Context, o importFlags) error {
	scan, err := a.adminService().ScanImports(o.from)
	if err != nil {
		return err
	}
	picks, err := admin.ParseImportPicks(scan, o.servers, o.renames)
	if err != nil {
		return err
	}
	found, err := a.adminService().NewImportReport(scan, picks)
	if err != nil {
		return err
	}
	fresh := found.New
	if !o.asJSON {
		if err := a.printImportableServers(found); err != nil {
			return err
		}
	}
	take := fresh > 0 && !o.dryRun && o.yes
	asked := fresh > 0 && !o.dryRun && !o.yes && !o.asJSON && a.isInteractive()
	if asked {
		take = a.confirmDefaultNo(ctx, fmt.Sprintf("Copy %s into %s?", formatCount(fresh, "server"),
			a.abbreviateHome(found.File)))
	}
	if take {
		if take, err = a.importServers(ctx, o, &found); err != nil {
			return err
		}
	}
	if o.asJSON {
		err = PrintJSON(a.Out, found)
	} else {
		a.printImportResult(found, fresh, o)
	}
	if take && err == nil {
		err = a.reloadHubAfterImport()
	}
	if asked && !take && err == nil {
		return errAlreadyPrinted
	}
	return err
}

// reloadHubAfterImport makes a running hub read the copied servers. If the reload fails, it prints the error and
// returns nil, because the servers are copied already.
func (a *app) reloadHubAfterImport() error {
	live, err := a.reloadHub()
	switch {
	case errors.Is(err, hub.ErrNoHub): // no process has to reload
	case err != nil:
		safetext.Fprintf(a.Err, "reload the running hub: %v\n", err)
	default:
		safetext.Fprintln(a.Err, live)
	}
	return nil
}

// printImportableServers prints a table of the servers that other programs configure. Below the table it prints the
// notes on single servers.
func (a *app) printImportableServers(found admin.ImportReport) error {
	for _, w := range found.Notes {
		safetext.Fprintln(a.Err, w)
	}
	if len(found.Servers) == 0 {
		return nil
	}
	tw := NewTable(a.Out)
	fmt.Fprintln(tw, "NAME\tFROM\tTRANSPORT\tSTATUS")
	for _, f := range found.Servers {
		safetext.Fprintf(tw, "%s\t%s\t%s\t%s\n", f.Name, f.From, f.Transport, f.Status)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, f := range found.Servers {
		lines := slices.Clone(f.Notes)
		if f.Status != config.ImportSame && f.Reason != "" {
			lines = append([]string{strings.TrimPrefix(f.Reason, fmt.Sprintf("Server %q: ", f.Name))}, lines...)
		}
		if f.Status == config.ImportNew && len(f.Secrets) > 0 {
			lines = append(lines, plainSecretsNote(f.Secrets))
		}
		if f.Status == config.ImportSame || len(lines) == 0 {
			continue
		}
		safetext.Fprintf(a.Out, "\n%s of %s (%s), %s:\n", f.Name, f.From, a.abbreviateHome(f.Source), f.Status)
		for _, line := range lines {
			safetext.Fprintf(a.Out, "  %s\n", line)
		}
	}
	return nil
}

// plainSecretsNote returns a note that names plain-text values which look like secrets.
func plainSecretsNote(names []string) string {
	return fmt.Sprintf(
		"in plain text, and it looks like a secret: %s (drawbridge secret set NAME keeps it, and ${keychain:NAME} stands for it)", strings.Join(names, ", "))
}

// printImportResult prints which servers were copied, and the next step.
func (a *app) printImportResult(found admin.ImportReport, fresh int, o importFlags) {
	fmt.Fprintln(a.Out)
	switch {
	case len(found.Servers) == 0:
		fmt.Fprintln(a.Out, "no other program has a server configured (drawbridge mcp list shows your own)")
	case fresh == 0:
		fmt.Fprintln(a.Out, "nothing is new: nothing was changed")
	case len(found.Taken) > 0:
		safetext.Fprintf(a.Out, "✓ %s copied into %s\n", formatCount(len(found.Taken), "server"),
			a.abbreviateHome(found.File))
		a.printMovedSecrets(found)
		fmt.Fprintln(a.Out, "next: drawbridge connect CLIENT")
	case o.dryRun || !a.isInteractive():
		safetext.Fprintf(a.Out, "%s would be copied; nothing was changed (drawbridge import --yes does it)\n",
			formatCount(fresh, "server"))
	default:
		fmt.Fprintln(a.Out, "nothing was changed")
	}
}
