package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A LearnedOutputKey identifies a tool whose output type was learned from its results.
type LearnedOutputKey struct {
	// Row is the hash of the server's configuration row, and Tool the server's own name of the tool.
	Row, Tool string
	Server    drawbridge.ServerID
	// Definition is the hash of the tool's definition.
	Definition string
}

// A LearnedOutput is the type of a tool's output.
type LearnedOutput struct {
	// Version is 1 for the first definition of the tool, and increases with each other definition.
	Version int
	// Schema is a JSON Schema. Results is the number of results that it was learned from, and At the time of the last
	// change.
	Schema  json.RawMessage
	Results int
	At      time.Time
}

// maxLearnedOutputs is the maximum number of stored learned outputs.
const maxLearnedOutputs = 4096

// UpdateLearnedOutput adds results to the number of results of a tool, and replaces its schema by the result of update,
// in one transaction. The function update gets the stored schema; it is empty if nothing was learned for the tool with
// this definition. If update returns nil, nothing changes. If there are more than 4,096 learned outputs, those that
// were not changed for the longest time are deleted.
func (db *DB) UpdateLearnedOutput(ctx context.Context, key LearnedOutputKey, results int,
	update func(schema json.RawMessage) json.RawMessage) error {
	unchanged := false
	err := db.inTransaction(ctx, "store a learned output", func(tx *sql.Tx) error {
		// The upsert locks the row.
		var definition string
		var version, count int
		var schema []byte
		err := tx.QueryRowContext(ctx, db.expandKeywords(`INSERT INTO learned_outputs
			(row, tool, server, definition, version, schema, results, at) VALUES ($1, $2, $3, $4, 1, $5, 0, CLOCK)
			ON CONFLICT (row, tool) DO UPDATE SET server = excluded.server RETURNING definition, version, schema, results`),
			key.Row, key.Tool, string(key.Server), key.Definition, []byte{}).Scan(&definition, &version, &schema, &count)
		if err != nil {
			return err
		}
		if definition != key.Definition {
			version, schema, count = version+1, nil, 0
		}
		if schema = update(schema); schema == nil {
			unchanged = true
			return errors.New("nothing was learned")
		}
		if _, err := tx.ExecContext(ctx, db.expandKeywords(`UPDATE learned_outputs SET definition = $1, version = $2,
			schema = $3, results = $4, at = CLOCK WHERE row = $5 AND tool = $6`), key.Definition, version, schema,
			count+results, key.Row, key.Tool); err != nil {
			return err
		}
		if count > 0 {
			return nil // the number of rows did not change
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM learned_outputs WHERE (row, tool) IN (SELECT row, tool FROM (
			SELECT row, tool, ROW_NUMBER() OVER (ORDER BY at DESC, row, tool) AS place FROM learned_outputs) AS ranked
			WHERE place > $1)`, maxLearnedOutputs)
		return err
	})
	if unchanged {
		return nil
	}
	return err
}

// LearnedOutput returns what was learned for a tool with this definition; the zero value if nothing was.
func (db *DB) LearnedOutput(ctx context.Context, key LearnedOutputKey) (out LearnedOutput, err error) {
	var at int64
	err = db.reader.QueryRowContext(ctx, `SELECT version, schema, results, at FROM learned_outputs
		WHERE row = $1 AND tool = $2 AND definition = $3`, key.Row, key.Tool, key.Definition).
		Scan(&out.Version, (*[]byte)(&out.Schema), &out.Results, &at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return LearnedOutput{}, nil
	case err != nil:
		return LearnedOutput{}, db.fault("read a learned output", err)
	}
	out.At = fromMillis(at)
	return out, nil
}

// ForgetLearnedOutputs deletes the learned outputs of configuration rows.
func (db *DB) ForgetLearnedOutputs(ctx context.Context, rows []string) error {
	return db.inTransaction(ctx, "forget learned outputs", func(tx *sql.Tx) error {
		for _, row := range rows {
			if _, err := tx.ExecContext(ctx, "DELETE FROM learned_outputs WHERE row = $1", row); err != nil {
				return err
			}
		}
		return nil
	})
}
