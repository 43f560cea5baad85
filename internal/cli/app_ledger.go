package cli

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/spf13/cobra"
)

func (a *app) ledgerCommand() *cobra.Command {
	return asCommandGroup(ledgerCommands{Out: a.Out, Err: a.Err, WithStore: a.withLedgerStore,
		ErrAlreadyPrinted: errAlreadyPrinted}.command())
}

func (a *app) auditCommand() *cobra.Command {
	return asCommandGroup(AuditCommands{Out: a.Out, Err: a.Err, WithStore: a.withLedgerStore,
		GatewayConfig: a.gatewayConfig, ErrAlreadyPrinted: errAlreadyPrinted}.Command())
}

// recordAction has on record what a person does to what guards go by.
func (a *app) recordAction(act gateway.AdminAction, do func() error) error {
	return a.gatewayConfig().AdminRecorder()(act, do)
}

// asCommandGroup has a command that only has subcommands show its help, and refuse what is none of them.
func asCommandGroup(cmd *cobra.Command) *cobra.Command {
	cmd.Args = rejectUnknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// withLedgerStore opens the store and hands over its journal, with the stream that the flags mean.
func (a *app) withLedgerStore(ctx context.Context, work func(db *store.DB, stream string) error) error {
	set, err := a.readConfig(ctx)
	if err != nil {
		return err
	}
	db, err := a.openStore(ctx, set)
	if err != nil {
		return err
	}
	defer db.Close()
	return work(db, gateway.LedgerStream(set, a.configPaths, a.Dir))
}
