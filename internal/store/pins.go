package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// A PinKey identifies the pins of a server, or of one part of a server. A pin is the accepted definition of a tool or
// of another item. Origin is the file of the server's configuration row. The key does not change if the row is
// edited, so that new definitions are compared with the earlier ones.
type PinKey struct {
	Origin string
	Server drawbridge.ServerID
	// Part is the pinned part of the server: empty for its tools, or the name of another part, such as
	// "instructions".
	Part string
}

// column returns the server and the part as one column value. A space separates them, because a server's name cannot
// contain a space.
func (p PinKey) column() string {
	if p.Part == "" {
		return string(p.Server)
	}
	return string(p.Server) + " " + p.Part
}

// parsePinKey returns the key for an origin and a value that column returned.
func parsePinKey(origin, column string) PinKey {
	server, part, _ := strings.Cut(column, " ")
	return PinKey{origin, drawbridge.ServerID(server), part}
}

// A PinState is a summary of the pins of one key. ListHash is the hash of the server's list that was last compared
// with the pins. Offers is the number of pins with a changed definition that waits for a decision or was rejected.
type PinState struct {
	ListHash []byte
	Offers   int
}

// pinStateColumns is the part of a query that selects the columns of a PinState.
const pinStateColumns = `l.settled, (SELECT COUNT(*) FROM pins p WHERE p.origin = l.origin AND p.server = l.server AND p.offer_hash <> '') FROM pin_lists l`

// PinState returns the pin state of one key; the zero PinState if there is none.
func (db *DB) PinState(ctx context.Context, place PinKey) (list PinState, err error) {
	err = db.reader.QueryRowContext(ctx, "SELECT "+pinStateColumns+" WHERE l.origin = $1 AND l.server = $2",
		place.Origin, place.column()).Scan(&list.ListHash, &list.Offers)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return PinState{}, db.fault("read the pins", err)
	}
	return list, nil
}

// PinStates returns all pin states.
func (db *DB) PinStates(ctx context.Context) (map[PinKey]PinState, error) {
	const step = "read the pins"
	rows, err := db.reader.QueryContext(ctx, "SELECT l.origin, l.server, "+pinStateColumns)
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	all := map[PinKey]PinState{}
	for rows.Next() {
		var origin, server string
		var list PinState
		if err := rows.Scan(&origin, &server, &list.ListHash, &list.Offers); err != nil {
			return nil, db.fault(step, err)
		}
		all[parsePinKey(origin, server)] = list
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

const selectPins = "SELECT tool, hash, definition, how, at, offer_hash, offer, offer_at, rejected FROM pins WHERE origin = $1 AND server = $2"

// Pins returns the pins of a key. The keys of the map are the names of the pinned tools or other items.
func (db *DB) Pins(ctx context.Context, place PinKey) (map[string]shield.Pin, error) {
	rows, err := db.reader.QueryContext(ctx, selectPins, place.Origin, place.column())
	if err != nil {
		return nil, db.fault("read the pins", err)
	}
	pins, err := readPins(rows)
	if err != nil {
		return nil, db.fault("read the pins", err)
	}
	return pins, nil
}

// readPins returns the pins in rows, by the name of the pinned item, and closes rows.
func readPins(rows *sql.Rows) (map[string]shield.Pin, error) {
	defer rows.Close()
	pins := map[string]shield.Pin{}
	for rows.Next() {
		var p shield.Pin
		var o shield.PendingChange
		var definition, offer []byte
		var at, offerAt, rejected int64
		if err := rows.Scan(&p.Tool, &p.Hash, &definition, &p.Origin, &at, &o.Hash, &offer, &offerAt,
			&rejected); err != nil {
			return nil, err
		}
		p.Definition, p.At = definition, fromMillis(at)
		if o.Hash != "" {
			o.Definition, o.At, o.Rejected = offer, fromMillis(offerAt), rejected == 1
			p.Pending = &o
		}
		pins[p.Tool] = p
	}
	return pins, rows.Err()
}

// A PinUpdate computes new pins from the current pins of a key. changed contains only the pins to be saved. settled
// is the hash of the server's list that was compared with the pins; if it is nil, the stored hash remains unchanged.
type PinUpdate func(pins map[string]shield.Pin) (changed []shield.Pin, settled []byte, err error)

// UpdatePins calls work with the pins of a key and saves the result, in one transaction. No other process can change
// these pins meanwhile. If work returns an error, nothing is saved, and UpdatePins returns that error unchanged.
func (db *DB) UpdatePins(ctx context.Context, place PinKey, work PinUpdate) error {
	return db.updatePins(ctx, db.inTransaction, place, work)
}

// RecordPins is like UpdatePins, for pins that no person decided on. On a SQLite file it does not wait for the disk. A
// power failure may lose them, with all that was stored after them; then the server's next listing is its first.
func (db *DB) RecordPins(ctx context.Context, place PinKey, work PinUpdate) error {
	return db.updatePins(ctx, db.inCounterTransaction, place, work)
}

// A transactor is inTransaction or inCounterTransaction.
type transactor func(ctx context.Context, step string, work func(tx *sql.Tx) error) error

func (db *DB) updatePins(ctx context.Context, transact transactor, place PinKey, work PinUpdate) error {
	var refused error
	err := transact(ctx, "save the pins", func(tx *sql.Tx) error {
		// This statement locks the row: a second transaction for the same key waits.
		_, err := tx.ExecContext(ctx, `INSERT INTO pin_lists (origin, server, settled) VALUES ($1, $2, $3)
			ON CONFLICT (origin, server) DO UPDATE SET settled = pin_lists.settled`, place.Origin, place.column(), []byte{})
		if err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, selectPins, place.Origin, place.column())
		if err != nil {
			return err
		}
		pins, err := readPins(rows)
		if err != nil {
			return err
		}
		changed, settled, err := work(pins)
		if err != nil {
			refused = err
			return err
		}
		if settled != nil {
			_, err = tx.ExecContext(ctx, "UPDATE pin_lists SET settled = $1 WHERE origin = $2 AND server = $3", settled,
				place.Origin, place.column())
			if err != nil {
				return err
			}
		}
		return savePins(ctx, tx, place, changed)
	})
	if refused != nil {
		return refused
	}
	return err
}

// MovePins moves the pins of the key from to the key to. It does nothing if from has no pins, or if to already has
// pins.
func (db *DB) MovePins(ctx context.Context, from, to PinKey) error {
	const step = "move the pins"
	var n int
	err := db.reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM pin_lists WHERE origin = $1 AND server = $2",
		from.Origin, from.column()).Scan(&n)
	if err != nil {
		return db.fault(step, err)
	}
	if n == 0 {
		return nil
	}
	return db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		moved, err := db.execChanged(ctx, tx, `UPDATE pin_lists SET origin = $1, server = $2
			WHERE origin = $3 AND server = $4 AND NOT EXISTS
			(SELECT 1 FROM pin_lists AS there WHERE there.origin = $1 AND there.server = $2)`,
			to.Origin, to.column(), from.Origin, from.column())
		if err != nil || !moved {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE pins SET origin = $1, server = $2 WHERE origin = $3 AND server = $4",
			to.Origin, to.column(), from.Origin, from.column())
		return err
	})
}

func savePins(ctx context.Context, tx *sql.Tx, place PinKey, pins []shield.Pin) error {
	if len(pins) == 0 {
		return nil
	}
	save, err := tx.PrepareContext(ctx, `INSERT INTO pins (origin, server, tool, hash, definition, how, at, offer_hash, offer, offer_at, rejected)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (origin, server, tool) DO UPDATE SET hash = excluded.hash,
		definition = excluded.definition, how = excluded.how, at = excluded.at, offer_hash = excluded.offer_hash, offer = excluded.offer,
		offer_at = excluded.offer_at, rejected = excluded.rejected`)
	if err != nil {
		return err
	}
	defer save.Close()
	for _, p := range pins {
		var o shield.PendingChange
		rejected := 0
		if p.Pending != nil {
			o = *p.Pending
		}
		if o.Rejected {
			rejected = 1
		}
		if _, err := save.ExecContext(ctx, place.Origin, place.column(), p.Tool, p.Hash, nonNilBytes(p.Definition),
			p.Origin, toMillis(p.At),
			o.Hash, nonNilBytes(o.Definition), toMillis(o.At), rejected); err != nil {
			return err
		}
	}
	return nil
}

// nonNilBytes returns raw, or an empty slice instead of nil, because the column does not allow NULL.
func nonNilBytes(raw []byte) []byte {
	if raw == nil {
		return []byte{}
	}
	return raw
}
