package cli

import (
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/spf13/cobra"
)

// clientCommand is about clients that have tokens of their own.
func (a *app) clientCommand() *cobra.Command {
	cmd := clientCommands{
		Out: a.Out, Err: a.Err, OpenIfExists: a.openStoreIfExists, OpenOrCreate: a.openOrCreateStore,
		AdminRecorder: a.recordAction,
		ReloadHub: func() error {
			_, err := a.reloadHub()
			if errors.Is(err, hub.ErrNoHub) {
				return nil
			}
			return err
		},
	}.command()
	cmd.Args = rejectUnknownCommand
	return cmd
}

// askCommand is about calls that wait for a person.
func (a *app) askCommand() *cobra.Command {
	cmd := askCommands{In: a.In, Out: a.Out, Err: a.Err, OpenIfExists: a.openStoreIfExists,
		OpenOrCreate: a.openOrCreateStore, AdminRecorder: a.recordAction}.command()
	cmd.Args = rejectUnknownCommand
	return cmd
}

// openStoreIfExists opens the store of the settings; nil where there is none yet.
func (a *app) openStoreIfExists(ctx context.Context) (*store.DB, error) {
	s, err := config.LoadSettings(a.configOptions())
	if err != nil {
		return nil, err
	}
	db, err := a.openStore(ctx, config.Configuration{Settings: s})
	if _, none := errors.AsType[*noStoreError](err); none {
		return nil, nil
	}
	return db, err
}

// openOrCreateStore is storeIfAny, and makes the store where there is none.
func (a *app) openOrCreateStore(ctx context.Context) (*store.DB, error) {
	s, err := config.LoadSettings(a.configOptions())
	if err != nil {
		return nil, err
	}
	location, err := gateway.StoreLocation(a.storeLocation, s, a.Env)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, location, store.Options{})
}
