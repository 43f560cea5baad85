package cli

import (
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (d AuditCommands) confirmClockCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm-clock",
		Short: "Say that the store's clock is right, after it jumped",
		Long: `Say that the store's clock is right, after it jumped by more than a day. Until then no record of a
call is removed by age; and where the clock went back, counts of calls and access tokens are judged
by the highest time that it has shown. Look at the clock first: records that are too old by it are
removed at the next occasion.`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			before, err := d.Admin().ConfirmClock(cmd.Context())
			if err != nil {
				return err
			}
			safetext.Fprintf(d.Out, "✓ the store's clock is confirmed: %s\n", before.Now.Local().Format(time.DateTime))
			if jump := before.Jump(); jump != "" {
				safetext.Fprintf(d.Out, "  until now %s\n", jump)
			}
			return nil
		},
	}
}

func (d AuditCommands) confirmStoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm-store",
		Short: "Go on with the store as it is, where another one was there before",
		Long: `Go on with the store as it is, where another one was there before: it was removed, emptied or
replaced. Until then no server is started, since what was approved, pinned and held is not known. If
there is a copy of the store, restore that instead. Afterwards each tool counts as it is found then;
look at them first, or hold them against a lockfile (drawbridge lock verify).`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := d.Admin().ConfirmStore(cmd.Context())
			if err != nil {
				return err
			}
			safetext.Fprintf(d.Out, "✓ the store is %s from now on\n", name)
			return nil
		},
	}
}
