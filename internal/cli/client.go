package cli

import (
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/asks"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/clients"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/spf13/cobra"
)

// clientCommand is about clients that have tokens of their own.
func (a *app) clientCommand() *cobra.Command {
	cmd := clients.Desk{
		Out: a.Out, Err: a.Err, Open: a.storeIfAny, Make: a.storeAnyway, Clerk: a.clerk,
		Tell: func() error {
			_, err := a.reloadHub()
			if errors.Is(err, hub.ErrNone) {
				return nil
			}
			return err
		},
	}.Command()
	cmd.Args = unknownCommand
	return cmd
}

// askCommand is about calls that wait for a person.
func (a *app) askCommand() *cobra.Command {
	cmd := asks.Desk{In: a.In, Out: a.Out, Err: a.Err, Open: a.storeIfAny, Make: a.storeAnyway, Clerk: a.clerk}.Command()
	cmd.Args = unknownCommand
	return cmd
}

// storeIfAny opens the store of the settings; nil where there is none yet.
func (a *app) storeIfAny(ctx context.Context) (*store.DB, error) {
	s, err := config.LoadSettings(a.places())
	if err != nil {
		return nil, err
	}
	db, err := a.openStore(ctx, config.Set{Settings: s})
	if _, none := errors.AsType[*noStoreError](err); none {
		return nil, nil
	}
	return db, err
}

// storeAnyway is storeIfAny, and makes the store where there is none.
func (a *app) storeAnyway(ctx context.Context) (*store.DB, error) {
	s, err := config.LoadSettings(a.places())
	if err != nil {
		return nil, err
	}
	location, err := gateway.StoreLocation(a.store, s, a.Env)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, location, store.Options{})
}
