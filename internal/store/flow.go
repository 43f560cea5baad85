package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/flow"
)

// A FlowRun is the stored label of a run; see [flow.Run].
type FlowRun struct {
	Label   flow.Label
	Origins []flow.Source
	// At is when the run was stored last.
	At time.Time
}

// FlowRunRetention is how long the label of a run is stored after its last change.
const FlowRunRetention = 180 * 24 * time.Hour

// FlowRun returns the stored label of a run; ok is false if there is none.
func (db *DB) FlowRun(ctx context.Context, key string) (r FlowRun, ok bool, err error) {
	var origins []byte
	var at int64
	err = db.reader.QueryRowContext(ctx, "SELECT integrity, confidentiality, origins, at FROM flow_runs WHERE run = $1", key).
		Scan(&r.Label.Integrity, &r.Label.Confidentiality, &origins, &at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, false, nil
	case err == nil:
		err = json.Unmarshal(origins, &r.Origins)
	}
	if err != nil {
		return r, false, db.fault("read the label of a run", err)
	}
	r.At = time.UnixMilli(at)
	return r, true, nil
}

// JoinFlowRun lowers the stored label of a run to the join with a label, and replaces its origins. It removes labels of
// runs that did not change for 180 days.
func (db *DB) JoinFlowRun(ctx context.Context, key string, label flow.Label, origins []flow.Source) error {
	const step = "store the label of a run"
	raw, err := json.Marshal(origins)
	if err != nil {
		return db.fault(step, err)
	}
	return db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, db.expandKeywords("DELETE FROM flow_runs WHERE at < CLOCK - $1"),
			FlowRunRetention.Milliseconds()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, db.expandKeywords(`INSERT INTO flow_runs (run, integrity, confidentiality, origins, at)
			VALUES ($1, $2, $3, $4, CLOCK) ON CONFLICT (run) DO UPDATE SET `+joinLabels("flow_runs")+`, origins = excluded.origins, at = excluded.at`),
			key, int(label.Integrity), int(label.Confidentiality), raw)
		return err
	})
}

// joinLabels returns the part of an upsert that joins the labels of the old and the new row.
func joinLabels(table string) string {
	return `integrity = CASE WHEN excluded.integrity < ` + table + `.integrity THEN excluded.integrity ELSE ` + table + `.integrity END,
		confidentiality = CASE WHEN excluded.confidentiality > ` + table + `.confidentiality THEN excluded.confidentiality ELSE ` + table + `.confidentiality END`
}

// A FlowFile is the label of a file that a run has written.
type FlowFile struct {
	// Path is absolute, without links.
	Path  string
	Label flow.Label
	// Origin explains the label.
	Origin flow.Source
}

// FlowFiles returns the labels of all files that runs have written.
func (db *DB) FlowFiles(ctx context.Context) (all []FlowFile, err error) {
	const step = "read the labels of files"
	rows, err := db.reader.QueryContext(ctx, "SELECT path, integrity, confidentiality, origin FROM flow_files")
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	for rows.Next() {
		var f FlowFile
		var origin []byte
		if err := rows.Scan(&f.Path, &f.Label.Integrity, &f.Label.Confidentiality, &origin); err != nil {
			return nil, db.fault(step, err)
		}
		if err := json.Unmarshal(origin, &f.Origin); err != nil {
			return nil, db.fault(step, err)
		}
		all = append(all, f)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// JoinFlowFiles lowers the labels of files to the join with their new labels.
func (db *DB) JoinFlowFiles(ctx context.Context, files ...FlowFile) error {
	return db.inTransaction(ctx, "store the label of a file", func(tx *sql.Tx) error {
		for _, f := range files {
			origin, err := json.Marshal(f.Origin)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, db.expandKeywords(`INSERT INTO flow_files (path, integrity, confidentiality, origin, at)
				VALUES ($1, $2, $3, $4, CLOCK) ON CONFLICT (path) DO UPDATE SET `+joinLabels("flow_files")+`, origin = excluded.origin, at = excluded.at`),
				f.Path, int(f.Label.Integrity), int(f.Label.Confidentiality), origin); err != nil {
				return err
			}
		}
		return nil
	})
}

// An Endorsement is a person's statement that a value may be used although it comes from a source that is not trusted.
type Endorsement struct {
	// ID is the name that people use.
	ID string `json:"id"`
	// Principal is the caller whose calls may use the value.
	Principal string `json:"principal"`
	// Server, Tool and Place are the tool that may use the value, and the place in its arguments. They are empty if the
	// value may be used everywhere.
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Place  string `json:"place,omitempty"`
	// Sends is set if the value may carry private text outside.
	Sends bool `json:"sends,omitempty"`
	// Hash is the SHA-256 of the value in hexadecimal. Shown is the value with likely secrets redacted.
	Hash  string `json:"hash"`
	Shown string `json:"shown"`
	// Origin is where the value comes from, and Label its label.
	Origin string `json:"origin,omitempty"`
	Label  string `json:"label,omitempty"`
	// By names the person, and how the person answered.
	By string `json:"by"`
	// Created and Until are the times from which and to which the endorsement holds.
	Created time.Time `json:"created"`
	Until   time.Time `json:"until"`
}

// AddEndorsements stores endorsements that hold for a time. An endorsement of the same value at the same place replaces
// the earlier one. Expired ones are removed.
func (db *DB) AddEndorsements(ctx context.Context, valid time.Duration, all ...Endorsement) error {
	if _, err := db.highestTime(ctx); err != nil {
		return err
	}
	return db.inTransaction(ctx, "store an endorsement", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, db.expandKeywords("DELETE FROM endorsements WHERE ends <= CLOCK")); err != nil {
			return err
		}
		for _, e := range all {
			if _, err := tx.ExecContext(ctx, db.expandKeywords(`INSERT INTO endorsements
				(id, principal, server, tool, place, sends, hash, shown, origin, label, said_by, created, ends)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, CLOCK, CLOCK + $12)
				ON CONFLICT (principal, server, tool, place, sends, hash) DO UPDATE SET id = excluded.id, shown = excluded.shown, origin = excluded.origin,
				label = excluded.label, said_by = excluded.said_by, created = excluded.created, ends = excluded.ends`),
				e.ID, e.Principal, e.Server, e.Tool, e.Place, number(e.Sends), e.Hash, e.Shown, e.Origin, e.Label, e.By, valid.Milliseconds()); err != nil {
				return err
			}
		}
		return nil
	})
}

// Endorsed reports whether a person has endorsed a value, and the endorsement holds.
func (db *DB) Endorsed(ctx context.Context, e Endorsement) (bool, error) {
	var one int
	err := db.reader.QueryRowContext(ctx, db.expandKeywords(`SELECT 1 FROM endorsements WHERE principal = $1 AND server = $2 AND tool = $3
		AND place = $4 AND sends = $5 AND hash = $6 AND ends > CLOCK`), e.Principal, e.Server, e.Tool, e.Place, number(e.Sends), e.Hash).Scan(&one)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, db.fault("find an endorsement", err)
	}
	return true, nil
}

// Endorsements returns the endorsements that hold, the newest first.
func (db *DB) Endorsements(ctx context.Context) (all []Endorsement, err error) {
	const step = "read the endorsements"
	rows, err := db.reader.QueryContext(ctx, db.expandKeywords(`SELECT id, principal, server, tool, place, sends, hash, shown, origin, label, said_by, created, ends
		FROM endorsements WHERE ends > CLOCK ORDER BY created DESC, id`))
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	for rows.Next() {
		var e Endorsement
		var sends, created, ends int64
		if err := rows.Scan(&e.ID, &e.Principal, &e.Server, &e.Tool, &e.Place, &sends, &e.Hash, &e.Shown, &e.Origin, &e.Label, &e.By, &created, &ends); err != nil {
			return nil, db.fault(step, err)
		}
		e.Sends = sends != 0
		e.Created, e.Until = time.UnixMilli(created), time.UnixMilli(ends)
		all = append(all, e)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// RemoveEndorsement removes an endorsement by its ID. It reports whether there was one.
func (db *DB) RemoveEndorsement(ctx context.Context, id string) (removed bool, err error) {
	err = db.inTransaction(ctx, "remove an endorsement", func(tx *sql.Tx) error {
		removed, err = db.execChanged(ctx, tx, "DELETE FROM endorsements WHERE id = $1", id)
		return err
	})
	return removed, err
}
