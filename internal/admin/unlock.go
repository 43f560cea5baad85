package admin

import (
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// UnlockToolList removes the stored tool list of a server with lock_tool_list. Until then, tools that are not in this
// list are not shown. The next list that the server sends is then locked instead. found is false if no list was stored.
// live describes to the person what the running servers did. The error is the store's, or a UserError for a server that
// is not configured or does not have lock_tool_list.
func (r *Service) UnlockToolList(ctx context.Context, id drawbridge.ServerID) (found bool, live string, err error) {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return false, "", err
	}
	row, ok := roll.Lookup(id)
	switch {
	case !ok:
		return false, "", roll.notFoundError(id)
	case row.LockToolList == nil || !*row.LockToolList:
		return false, "", userErrorf("The list of server %q is not locked: its row has no \"lock_tool_list\".", id)
	}
	db, err := r.openStore(ctx, roll.Configuration, false)
	if err != nil || db == nil {
		return false, "", err
	}
	err = r.o.AdminRecorder.Run(gateway.AdminAction{Command: "shield unlock", Server: id}, func() (err error) {
		found, err = db.ForgetFirstTools(ctx, id)
		return err
	})
	if err = errors.Join(err, db.Close()); err != nil || !found {
		return found, "", err
	}
	return true, r.relistAfterDecision(ctx, id), nil
}
