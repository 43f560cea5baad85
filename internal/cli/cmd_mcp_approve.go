package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (a *app) mcpApproveCommand() *cobra.Command {
	var asJSON, all, yes bool
	cmd := &cobra.Command{
		Use:   "approve NAME... | --all",
		Short: "Approve servers of the project after you have seen them",
		Long: `Approve servers of this project directory after you have seen their rows. An approval is
for the row as shown: when the row changes, it waits again, and the changes are shown.

At a terminal it asks for each; --yes is for scripts.`,
		Example: "  drawbridge mcp approve github\n  drawbridge mcp approve --all",
		Args:    namesOrAllFlag(&all),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.approveServers(cmd.Context(), serverIDs(args), yes, asJSON)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every server that waits for approval")
	cmd.Flags().BoolVar(&yes, "yes", false, "approve without asking")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// namesOrAllFlag checks that the command line has either names of servers or --all.
func namesOrAllFlag(all *bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if *all == (len(args) > 0) {
			return usageError{fmt.Errorf("%s takes names of servers, or --all (see %q)", cmd.CommandPath(),
				cmd.CommandPath()+" --help")}
		}
		return nil
	}
}

func serverIDs(words []string) (ids []drawbridge.ServerID) {
	for _, word := range words {
		ids = append(ids, drawbridge.ServerID(word))
	}
	return ids
}

// approveServers shows the configurations of servers that wait for approval, and asks about each server unless yes is
// set. It approves the servers that the person agrees to.
func (a *app) approveServers(ctx context.Context, ids []drawbridge.ServerID, yes, asJSON bool) error {
	r := a.adminService()
	entries, err := r.DecidableServers(ctx, ids...)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		fmt.Fprintln(a.Err, "Nothing waits for approval.")
	}
	agreed, err := a.confirmApprovals(ctx, entries, yes)
	if err != nil {
		return err
	}
	changes, err := r.Approve(ctx, agreed)
	if err != nil {
		return err
	}
	if err := a.printChanges(changes, asJSON); err != nil {
		return err
	}
	if len(entries) > 0 && len(agreed) == 0 {
		return errAlreadyPrinted
	}
	return nil
}

// confirmApprovals shows the configurations of the servers that are not approved yet, and asks about each server unless
// yes is set. It returns the servers that the person agrees to, and the servers that were approved before. If yes is
// not set and there is no terminal, it returns an error.
func (a *app) confirmApprovals(ctx context.Context, entries []admin.ServerEntry,
	yes bool) (agreed []admin.ServerEntry, err error) {
	absent := !yes && !a.isInteractive()
	refused := false
	for _, e := range entries {
		if e.Decision == admin.DecisionApproved {
			agreed = append(agreed, e)
			continue
		}
		printApprovalQuestion(a.Err, e)
		if absent {
			refused = true
			continue
		}
		ok := yes
		if !yes {
			if ok, err = a.confirm(ctx, fmt.Sprintf("Approve %s?", e.Name), false); err != nil {
				return nil, errors.New("nothing was approved: there was no answer")
			}
		}
		if ok {
			agreed = append(agreed, e)
		} else {
			safetext.Fprintf(a.Err, "Server %q was left as it was.\n", e.Name)
		}
	}
	if refused {
		return nil, usageError{errors.New(
			"nothing was approved: no terminal to ask at (--yes approves the rows shown)")}
	}
	return agreed, nil
}

// printApprovalQuestion prints the configuration of a server before its approval. If the configuration changed since
// the last decision, it prints the changes first.
func printApprovalQuestion(w io.Writer, e admin.ServerEntry) {
	safetext.Fprintf(w, "%s, from %s:\n", e.Name, e.Source)
	if e.Decision == admin.DecisionOutdated {
		safetext.Fprintf(w, "  changed since %s:\n", e.DecidedAt.Local().Format("2006-01-02 15:04"))
		for _, line := range e.Changes {
			safetext.Fprintf(w, "    %s\n", line)
		}
	}
	printPairs(w, e.ApprovalLines())
}

// printPairs prints names and values in two columns.
func printPairs(w io.Writer, pairs []config.NameValue) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range pairs {
		safetext.Fprintf(tw, "  %s\t%s\n", p.Name, p.Value)
	}
	_ = tw.Flush() // a closed terminal shows nothing
}

// printChanges prints a line for each change, or all changes as one JSON array.
func (a *app) printChanges(changes []admin.Change, asJSON bool) error {
	if asJSON {
		if changes == nil {
			changes = []admin.Change{}
		}
		return PrintJSON(a.Out, changes)
	}
	for _, c := range changes {
		if err := a.printChange(c, false); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) mcpRejectCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "reject NAME...",
		Short:   "Keep servers of the project off, also approved ones",
		Example: "  drawbridge mcp reject github",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("%s takes names of servers (see %q)", cmd.CommandPath(),
					cmd.CommandPath()+" --help")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r := a.adminService()
			entries, err := r.DecidableServers(cmd.Context(), serverIDs(args)...)
			if err != nil {
				return err
			}
			changes, err := r.Reject(cmd.Context(), entries)
			if err != nil {
				return err
			}
			return a.printChanges(changes, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
