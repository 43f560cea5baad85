package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// A RowApproval is a person's decision about a row of a configuration file in a project directory. A row is the entry
// of one server. The RowApproval also contains the content of the row at the time of the decision.
type RowApproval struct {
	// Path is the file that contains the row, and Server the name of the row.
	Path   string
	Server drawbridge.ServerID
	// By is the person who made the decision.
	By Approver
	// Hash is the hash of the row, see config.Server. Shown is the information about the row that the person saw.
	Hash  string
	Shown []config.NameValue
	// Approved reports whether the row was approved; otherwise it was rejected.
	Approved bool
	At       time.Time
}

// An Approver is a person on a machine. A decision is valid only for this approver, even if other people share the
// database and have equal project paths.
type Approver struct {
	// Principal is the operating system user, and Machine the name of the machine.
	Principal, Machine string
}

// RowApprovals are the decisions of one Approver: at most one for each name in a file.
type RowApprovals []RowApproval

// Program returns the file of the program that the row starts, as it was when the person decided. It returns the zero
// value if no file was found at that time.
func (a RowApproval) Program() config.ProgramFile { return config.ProgramInFacts(a.Shown) }

// Allows reports whether the row was approved with its current content, and its program file is unchanged since
// then. The method can be used as config.Options.Approved.
func (a RowApprovals) Allows(row config.Server) bool {
	last, ok := a.Find(row)
	if !ok || !last.Approved || last.Hash != row.Hash {
		return false
	}
	p := last.Program()
	return p == (config.ProgramFile{}) || p.CheckUnchanged() == nil
}

// Find returns the decision about a row with the same name in the same file, and reports whether there is one. The
// content of the row may have changed since the decision.
func (a RowApprovals) Find(row config.Server) (RowApproval, bool) {
	for _, one := range a {
		if one.Path == row.Origin.Path && one.Server == row.ID {
			return one, true
		}
	}
	return RowApproval{}, false
}

// RowApprovals returns the decisions of an approver, ordered by file and name. Decisions that earlier releases stored
// have no approver. Such a decision is included only if the store is a SQLite file and the approver has not decided
// about the same row. In a database on a server it may be the decision of another person.
func (db *DB) RowApprovals(ctx context.Context, by Approver) (RowApprovals, error) {
	unnamed := 0
	if db.file != nil {
		unnamed = 1
	}
	rows, err := db.reader.QueryContext(ctx, `SELECT path, server, principal, machine, hash, facts, approved, at
		FROM row_approvals AS a WHERE (principal = $1 AND machine = $2) OR (principal = '' AND machine = '' AND
		CAST($3 AS BIGINT) = 1 AND NOT EXISTS (SELECT 1 FROM row_approvals AS own WHERE own.path = a.path AND
		own.server = a.server AND own.principal = $1 AND own.machine = $2)) ORDER BY path, server`,
		by.Principal, by.Machine, unnamed)
	if err != nil {
		return nil, db.fault("read the approvals", err)
	}
	defer rows.Close()
	var all RowApprovals
	for rows.Next() {
		var a RowApproval
		var facts []byte
		var approved, at int64
		if err := rows.Scan(&a.Path, &a.Server, &a.By.Principal, &a.By.Machine, &a.Hash, &facts, &approved, &at); err != nil {
			return nil, db.fault("read the approvals", err)
		}
		if err := json.Unmarshal(facts, &a.Shown); err != nil {
			return nil, db.fault("read the approvals", err)
		}
		a.Approved, a.At = approved == 1, fromMillis(at)
		all = append(all, a)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault("read the approvals", err)
	}
	return all, nil
}

// SaveRowApproval stores a decision. It replaces an earlier decision of the same approver about the row with the same
// name in the same file. A fault with code InvalidInput means that By has no principal.
func (db *DB) SaveRowApproval(ctx context.Context, a RowApproval) error {
	const step = "record an approval"
	if a.By.Principal == "" {
		return db.newFault(step, drawbridge.InvalidInput, errors.New("the person who decided is not named"))
	}
	facts, err := json.Marshal(a.Shown)
	if err != nil {
		return db.newFault(step, drawbridge.InvalidInput, err)
	}
	approved := 0
	if a.Approved {
		approved = 1
	}
	return db.execWrite(ctx, step, `INSERT INTO row_approvals (path, server, principal, machine, hash, facts, approved, at)
		VALUES ($1, $2, $6, $7, $3, $4, $5, CLOCK) ON CONFLICT (path, server, principal, machine) DO UPDATE SET hash = excluded.hash, facts = excluded.facts, approved = excluded.approved,
		at = excluded.at`, a.Path, string(a.Server), a.Hash, facts, approved,
		a.By.Principal, a.By.Machine)
}
