package gateway

import (
	"os"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway/keeper"
	"github.com/drawbridge-mcp/drawbridge/secrets"
	"github.com/drawbridge-mcp/drawbridge/store"
)

// OpenVectors gives what keeps the vectors of tools where the settings say so: in the store, or elsewhere. Nobody is connected to
// before it is used; it is to be closed before the store is. Of the configuration it takes Environ. Code InvalidInput means a
// URL that leads nowhere.
func OpenVectors(c Config, s config.Settings, db *store.DB, kept secrets.Keeper) (*keeper.Keeper, error) {
	environ := c.Environ
	if environ == nil {
		environ = os.Environ()
	}
	return keeper.New(keeper.Options{Settings: s.Vectors, Store: db, Secrets: kept, Environ: environ})
}
