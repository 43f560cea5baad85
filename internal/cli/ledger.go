package cli

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/record"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/spf13/cobra"
)

func (a *app) ledgerCommand() *cobra.Command {
	return group(record.Desk{Out: a.Out, Err: a.Err, Journal: a.withJournal, Quiet: errQuiet}.Command())
}

func (a *app) auditCommand() *cobra.Command {
	return group(audit.Desk{Out: a.Out, Err: a.Err, Journal: a.withJournal, Config: a.config, Quiet: errQuiet}.Command())
}

// clerk has on record what a person does to what guards go by.
func (a *app) clerk(act gateway.Act, do func() error) error { return a.config().Clerk()(act, do) }

// group has a command that only has subcommands show its help, and refuse what is none of them.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = unknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// withJournal opens the store and hands over its journal, with the stream that the flags mean.
func (a *app) withJournal(ctx context.Context, work func(db *store.DB, stream string) error) error {
	set, err := a.configuration(ctx)
	if err != nil {
		return err
	}
	db, err := a.openStore(ctx, set)
	if err != nil {
		return err
	}
	defer db.Close()
	return work(db, gateway.Stream(set, a.paths, a.Dir))
}
