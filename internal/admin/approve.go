package admin

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// DecidableServers returns the rows with these names that a person may approve or reject. Only rows of project
// directories need an approval. Without names it returns the rows that wait for a decision. A row does not wait if it
// was rejected and has not changed since. The error is a UserError for a name that is not configured, and for a server
// that needs no approval or cannot be approved.
func (r *Service) DecidableServers(ctx context.Context, ids ...drawbridge.ServerID) ([]ServerEntry, error) {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return roll.pendingEntries(), nil
	}
	var entries []ServerEntry
	for _, id := range ids {
		row, err := roll.decidableRow(id)
		if err != nil {
			return nil, err
		}
		entries = append(entries, roll.newEntry(roll.programs.withProgram(row), false))
	}
	return entries, nil
}

// pendingEntries returns the rows that wait for a decision.
func (roll ServerList) pendingEntries() (entries []ServerEntry) {
	for _, row := range roll.Servers {
		if row.Phase != drawbridge.NeedsApproval {
			continue
		}
		if e := roll.newEntry(row, false); e.Decision != DecisionRejected {
			entries = append(entries, roll.newEntry(roll.programs.withProgram(row), false))
		}
	}
	return entries
}

// decidableRow returns the row with this name that a person can approve or reject. If several project directories have
// such a row, it prefers one that waits for approval. The error is a UserError if there is no row on which a person can
// decide.
func (roll ServerList) decidableRow(id drawbridge.ServerID) (config.Server, error) {
	rows := roll.rowsNamed(id)
	if len(rows) == 0 {
		return config.Server{}, roll.notFoundError(id)
	}
	var found config.Server
	for _, row := range rows {
		switch {
		case row.Origin.Kind != config.OriginProject:
		case row.Phase == drawbridge.NeedsApproval:
			return row, nil
		case found.ID == "" || found.Phase == drawbridge.Refused:
			found = row
		}
	}
	switch {
	case found.ID == "":
		return found, userErrorf("Server %q needs no approval: it is your own (%s).", id, rows[0].Origin)
	case found.Phase == drawbridge.Refused:
		return found, userErrorf("Server %q cannot be approved: %s", id, found.Reason)
	}
	return found, nil
}

// Approve approves the rows that DecidableServers returned. A row that has changed since then is not approved and still
// waits. The returned changes are in the order of entries. If the store returns an error, at least one row is not
// approved.
func (r *Service) Approve(ctx context.Context, entries []ServerEntry) ([]Change, error) {
	return r.decideEntries(ctx, entries, true)
}

// Reject rejects rows, also if they were approved before, so that their servers are not started. A rejected row waits
// for a decision again only after it has changed.
func (r *Service) Reject(ctx context.Context, entries []ServerEntry) ([]Change, error) {
	return r.decideEntries(ctx, entries, false)
}

func (r *Service) decideEntries(ctx context.Context, entries []ServerEntry, approved bool) ([]Change, error) {
	did, already, decided := Approved, AlreadyApproved, DecisionApproved
	if !approved {
		did, already, decided = Rejected, AlreadyRejected, DecisionRejected
	}
	changes := make([]Change, len(entries))
	var rows []config.Server
	var changed []*Change
	for i, e := range entries {
		changes[i] = Change{
			Server: e.Name, Kind: already, Scope: e.Server.Origin.Kind, Path: e.Server.Origin.Path,
			Phase: e.Phase, Reason: e.Reason,
		}
		if e.Decision != decided {
			changes[i].Kind = did
			rows, changed = append(rows, e.Server), append(changed, &changes[i])
		}
	}
	if len(rows) == 0 {
		return changes, nil
	}
	roll, err := r.ReadServers(ctx)
	if err == nil {
		err = r.storeDecision(ctx, roll.Configuration, rows, approved)
	}
	if err != nil {
		return nil, err
	}
	for _, c := range changed {
		if err := r.fillChangeState(ctx, c); err != nil {
			c.Notes = append(c.Notes, err.Error())
		}
	}
	r.reloadAfter(ctx, changed...)
	return changes, nil
}
