package cli

import (
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/spf13/cobra"
)

func (a *app) ledgerCommand() *cobra.Command {
	return asCommandGroup(ledgerCommands{Out: a.Out, Err: a.Err, Admin: a.adminService,
		ErrAlreadyPrinted: errAlreadyPrinted}.command())
}

func (a *app) auditCommand() *cobra.Command {
	return asCommandGroup(AuditCommands{Out: a.Out, Err: a.Err, Admin: a.adminService,
		ErrAlreadyPrinted: errAlreadyPrinted}.Command())
}

// recordAction calls do, which carries out an action of a person, and records the action in the audit.
func (a *app) recordAction(act gateway.AdminAction, do func() error) error {
	return a.gatewayConfig().AdminRecorder()(act, do)
}

// asCommandGroup makes a command print its help, and refuse arguments that are not subcommands.
func asCommandGroup(cmd *cobra.Command) *cobra.Command {
	cmd.Args = rejectUnknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}
