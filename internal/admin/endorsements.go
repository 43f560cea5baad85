package admin

import (
	"context"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// An Endorsement is a person's statement that a value may be used although it comes from a source that is not trusted.
type Endorsement = store.Endorsement

// Endorsements returns the endorsements that hold, the newest first. Without a store there are none.
func (r *Service) Endorsements(ctx context.Context) (all []Endorsement, err error) {
	db, err := r.openStoreOfSettings(ctx, false)
	if err != nil || db == nil {
		return nil, err
	}
	all, err = db.Endorsements(ctx)
	return all, closeStore(db, err)
}

// RevokeEndorsement removes an endorsement: its value must be endorsed again. The removal is recorded in the audit. It
// returns an error if no such endorsement holds.
func (r *Service) RevokeEndorsement(ctx context.Context, id string) error {
	unknown := fmt.Errorf("endorsement %s not found (drawbridge review endorsements lists them)", shortID(id))
	db, err := r.openStoreOfSettings(ctx, false)
	if err != nil {
		return err
	}
	if db == nil {
		return unknown
	}
	err = r.o.AdminRecorder.Run(gateway.AdminAction{Command: "review endorsements revoke", Detail: id}, func() error {
		removed, err := db.RemoveEndorsement(ctx, id)
		if err == nil && !removed {
			return unknown
		}
		return err
	})
	return closeStore(db, err)
}
