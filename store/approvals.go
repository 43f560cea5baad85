package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// An Approval is what a person decided about a row that a project directory brought: about the row as it was then.
type Approval struct {
	// Path is the file that the row stands in, Server its name there.
	Path   string
	Server drawbridge.ServerID
	// Hash is the row's, see config.Server; Facts what a person was shown of it.
	Hash  string
	Facts []config.Pair
	// Approved is false for a row that was rejected.
	Approved bool
	At       time.Time
}

// Approvals are the decisions of a store: at most one for a name in a file.
type Approvals []Approval

// Program is the file that was approved with the row; the zero one where none was found then.
func (a Approval) Program() config.Program { return config.ProgramIn(a.Facts) }

// Allows says whether the row, as it is written now, was approved, and its program still is the file that it was then. It is
// what config.Options.Approved wants.
func (a Approvals) Allows(row config.Server) bool {
	last, ok := a.Of(row)
	if !ok || !last.Approved || last.Hash != row.Hash {
		return false
	}
	p := last.Program()
	return p == (config.Program{}) || p.Check() == nil
}

// Of gives the last decision about a row of that name in that file, whatever it said then.
func (a Approvals) Of(row config.Server) (Approval, bool) {
	for _, one := range a {
		if one.Path == row.Origin.Path && one.Server == row.ID {
			return one, true
		}
	}
	return Approval{}, false
}

// Approvals gives every decision, in the order of files and names.
func (db *DB) Approvals(ctx context.Context) (Approvals, error) {
	rows, err := db.reader.QueryContext(ctx, "SELECT path, server, hash, facts, approved, at FROM approvals ORDER BY path, server")
	if err != nil {
		return nil, db.fault("read the approvals", err)
	}
	defer rows.Close()
	var all Approvals
	for rows.Next() {
		var a Approval
		var facts []byte
		var approved, at int64
		if err := rows.Scan(&a.Path, &a.Server, &a.Hash, &facts, &approved, &at); err != nil {
			return nil, db.fault("read the approvals", err)
		}
		if err := json.Unmarshal(facts, &a.Facts); err != nil {
			return nil, db.fault("read the approvals", err)
		}
		a.Approved, a.At = approved == 1, moment(at)
		all = append(all, a)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault("read the approvals", err)
	}
	return all, nil
}

// Approve records a decision, in the place of any earlier one about that name in that file.
func (db *DB) Approve(ctx context.Context, a Approval) error {
	const step = "record an approval"
	facts, err := json.Marshal(a.Facts)
	if err != nil {
		return db.refusal(step, drawbridge.InvalidInput, err)
	}
	approved := 0
	if a.Approved {
		approved = 1
	}
	return db.save(ctx, step, `INSERT INTO approvals (path, server, hash, facts, approved, at) VALUES ($1, $2, $3, $4, $5, CLOCK)
		ON CONFLICT (path, server) DO UPDATE SET hash = excluded.hash, facts = excluded.facts, approved = excluded.approved,
		at = excluded.at`, a.Path, string(a.Server), a.Hash, facts, approved)
}
