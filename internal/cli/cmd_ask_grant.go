package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (d askCommands) allowCommand() *cobra.Command {
	var s admin.GrantScope
	cmd := &cobra.Command{
		Use:   "allow ID",
		Short: "Allow a waiting call once",
		Long: `Allow a waiting call once. The next call waits again, even with the same arguments.

Flags grant more: the same call again, by the same caller, with the same arguments, while the
tool's definition stays the same. With --any-arguments, the arguments may differ.

For the calls of a script, --count N allows N calls of each tool in all, the waiting ones
included. Further calls must be of the same script with the same input, and have arguments like
the waiting ones: those that differ may have any value, the others must be the same. --vary NAME
allows any value of one more argument. Call N+1 waits again. The grant ends after 24h, or after
--for TIME.`,
		Example: `  drawbridge ask allow k3f9qzab
  drawbridge ask allow k3f9qzab --for 10m
  drawbridge ask allow k3f9qzab --session --any-arguments
  drawbridge ask allow k3f9qzab --count 50 --vary title --for 1h`,
		Args: exactArgs(1, "the ID of one call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("for") && s.Duration == 0 {
				s.Duration = -1
			}
			if cmd.Flags().Changed("count") && s.Count == 0 {
				s.Count = -1
			}
			return d.withApprovals(cmd.Context(), func(queue *admin.Approvals) error {
				if err := s.Validate(); err != nil {
					return err // report invalid flags before the call is looked up
				}
				p, err := queue.Find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				grants, err := s.Preview(p)
				if err != nil {
					return err
				}
				if err := queue.Allow(cmd.Context(), p, s); err != nil {
					return err
				}
				return errors.Join(d.printAnswer("Allowed", p), d.printCounts(p, grants))
			})
		},
	}
	cmd.Flags().DurationVar(&s.Duration, "for", 0, "allow the same call again for a `TIME` such as 10m")
	cmd.Flags().BoolVar(&s.Session, "session", false,
		"allow the same call again until the caller's session ends, 24h at most")
	cmd.Flags().BoolVar(&s.Always, "always-this", false, "allow the same call again, until you revoke the grant")
	cmd.Flags().BoolVar(&s.AnyArguments, "any-arguments", false,
		"with --for or --session: the tool, with any arguments")
	cmd.Flags().IntVar(&s.Count, "count", 0,
		"for a script: allow `N` calls of each tool in all, with arguments like those that wait")
	cmd.Flags().StringArrayVar(&s.Varying, "vary", nil,
		"with --count: allow any value of the argument `NAME`; may be repeated")
	return cmd
}

// printCounts prints what the grants with a count allow, which were stored for the call.
func (d askCommands) printCounts(p admin.PendingCall, grants []admin.Grant) error {
	counted := false
	for _, g := range grants {
		if g.Max == 0 {
			continue
		}
		counted = true
		e := g.Call.Effects[0]
		if _, err := safetext.Fprintf(d.Out, "The script may make %s of %s until %s, with the %d that waited: %s\n",
			formatCount(g.Max, "call"), safetext.Exact(e.Card), formatLocalTime(g.Until), g.Uses, e.Pattern.String()); err != nil {
			return err
		}
	}
	if !counted {
		return nil
	}
	_, err := safetext.Fprintf(d.Out, "drawbridge ask revoke %s ends this\n", p.ID)
	return err
}

// grantColumns returns two cells of a table, separated by a tab: the arguments of a grant, and when the grant ends.
func grantColumns(g admin.Grant) string {
	with, ends := formatJSONLine(g.Call.Arguments, 40), "for ever"
	switch {
	case g.Max > 0:
		with = safetext.Truncate(g.Call.Effects[0].Pattern.String(), 100, safetext.Runes, "…")
	case g.AnyArguments:
		with = "any arguments"
	}
	if !g.Until.IsZero() {
		ends = "until " + formatLocalTime(g.Until)
	}
	if g.Session {
		ends += ", in its session"
	}
	return with + "\t" + ends
}

func (d askCommands) grantsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "List your grants, which allow more than one call",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.withApprovals(cmd.Context(), func(queue *admin.Approvals) error {
				all, err := queue.Grants(cmd.Context())
				if err != nil {
					return err
				}
				return listPrinter[admin.Grant]{
					Header:    "ID\tCALLER\tCALLS\tWITH\tCOUNTS\tUSED",
					EmptyText: "You have no grants.",
					Columns: func(g admin.Grant) string {
						calls, used := truncateEscaped(g.Call.Card, 40), strconv.Itoa(g.Uses)
						if g.Max > 0 {
							calls = truncateEscaped(g.Call.Effects[0].Card, 40) + " (a script)"
							used += " of " + strconv.Itoa(g.Max)
						}
						return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", g.ID, truncateEscaped(g.Call.Caller, 20), calls,
							grantColumns(g), used)
					},
				}.print(d.Out, d.Err, all, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (d askCommands) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a grant",
		Long:  "Revoke a grant. The ID of the answered call revokes all grants that the answer created.",
		Args:  exactArgs(1, "the ID of one grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.withApprovals(cmd.Context(), func(queue *admin.Approvals) error {
				if err := queue.Revoke(cmd.Context(), args[0]); err != nil {
					return err
				}
				_, err := safetext.Fprintln(d.Out, "Revoked", args[0])
				return err
			})
		},
	}
}
