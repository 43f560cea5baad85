package cli

import (
	"github.com/spf13/cobra"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

func (a *app) reviewEndorsementsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "endorsements",
		Short: "List the values that you have endorsed",
		Long: `List the values that you have endorsed: values from sources that are not trusted, which calls may
use until the endorsement ends, and private text that may be sent. FROM is the source of a value,
and FOR says which tools may use it, in whose calls. A value that looks like a secret is shown by
its length only. docs/information-flow.md is the guide.`,
		Example: `  drawbridge review endorsements
  drawbridge review endorsements revoke k3f9qzab`,
		Args: rejectUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.adminService().Endorsements(cmd.Context())
			if err != nil {
				return err
			}
			return listPrinter[admin.Endorsement]{
				Header: "ID\tVALUE\tLABEL\tFROM\tFOR\tBY\tENDS", EmptyText: "You have endorsed no values.",
				Columns: endorsementColumns,
			}.print(a.Out, a.Err, all, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(a.revokeEndorsementCommand())
	return cmd
}

// endorsementColumns returns the cells of an endorsement. They are made printable.
func endorsementColumns(e admin.Endorsement) string {
	from := "-"
	if e.Origin != "" {
		from = truncateEscaped(e.Origin, 60)
	}
	return safetext.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", e.ID, truncateEscaped(e.Shown, 60), e.Label, from,
		endorsedUse(e), truncateEscaped(e.By, 60), formatLocalTime(e.Until))
}

// endorsedUse returns where an endorsed value may be used.
func endorsedUse(e admin.Endorsement) string {
	use := "all tools"
	if e.Tool != "" {
		if use = truncateEscaped(e.Tool, 60); e.Server != "" {
			use = truncateEscaped(e.Server, 40) + " " + use
		}
		place := "all arguments"
		if e.Place != "" {
			place = truncateEscaped(e.Place, 60)
		}
		use += ", " + place
	}
	if e.Sends {
		use += ", sends private text"
	}
	return use + ", calls of " + truncateEscaped(e.Principal, 40)
}

func (a *app) revokeEndorsementCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke an endorsement",
		Long:  "Revoke an endorsement: the next call that uses the value is asked about again. The audit records it.",
		Args:  exactArgs(1, "the ID of one endorsement (drawbridge review endorsements)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.adminService().RevokeEndorsement(cmd.Context(), args[0]); err != nil {
				return err
			}
			_, err := safetext.Fprintln(a.Out, "Revoked", args[0])
			return err
		},
	}
}
