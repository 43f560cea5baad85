package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) lockCommand() *cobra.Command {
	return asCommandGroup(lockCommands{Out: a.Out, Err: a.Err, ConfigOptions: a.configOptions, WithGateway: a.withDeck,
		AdminRecorder: a.recordAction, ErrAlreadyPrinted: errAlreadyPrinted}.command())
}
