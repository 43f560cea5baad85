package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// A PinKey is whose definitions are pinned: the server of a name in a file. A row that is edited is the same server,
// so that what its tools say after an update is held against what they said before.
type PinKey struct {
	Origin string
	Server drawbridge.ServerID
	// Part is what of the server is pinned there: its tools where it is empty, else another part of what it says, in
	// one word.
	Part string
}

// column is the server and the part in one column: the name of a server has no space.
func (p PinKey) column() string {
	if p.Part == "" {
		return string(p.Server)
	}
	return string(p.Server) + " " + p.Part
}

// parsePinKey reads it.
func parsePinKey(origin, column string) PinKey {
	server, part, _ := strings.Cut(column, " ")
	return PinKey{origin, drawbridge.ServerID(server), part}
}

// A PinState says which list of a server's tools was settled last, and how many of them make an offer, waiting or
// rejected.
type PinState struct {
	ListHash []byte
	Offers   int
}

// pinStateColumns reads what was settled of a place.
const pinStateColumns = `l.settled, (SELECT COUNT(*) FROM pins p WHERE p.origin = l.origin AND p.server = l.server AND p.offer_hash <> '') FROM pin_lists l`

// PinState gives what was settled of one place; the zero PinState where nothing was.
func (db *DB) PinState(ctx context.Context, place PinKey) (list PinState, err error) {
	err = db.reader.QueryRowContext(ctx, "SELECT "+pinStateColumns+" WHERE l.origin = $1 AND l.server = $2",
		place.Origin, place.column()).Scan(&list.ListHash, &list.Offers)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return PinState{}, db.fault("read what is pinned", err)
	}
	return list, nil
}

// PinStates gives what was settled, of all servers.
func (db *DB) PinStates(ctx context.Context) (map[PinKey]PinState, error) {
	const step = "read what is pinned"
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

// Pins gives what is pinned at a place, by the names of the tools, or of what else that part of a server has.
func (db *DB) Pins(ctx context.Context, place PinKey) (map[string]shield.Pin, error) {
	rows, err := db.reader.QueryContext(ctx, selectPins, place.Origin, place.column())
	if err != nil {
		return nil, db.fault("read what is pinned", err)
	}
	pins, err := readPins(rows)
	if err != nil {
		return nil, db.fault("read what is pinned", err)
	}
	return pins, nil
}

// readPins reads all rows, and closes them.
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

// PinUpdate makes of what is pinned of a server what is to be kept, and names the list of tools that is settled with
// it; nil leaves that as it is.
type PinUpdate func(pins map[string]shield.Pin) (changed []shield.Pin, settled []byte, err error)

// UpdatePins keeps what work makes of what is pinned of a server, in one transaction, which no other process is in at
// the same time: either all of it is kept, or nothing. An error of work's is given as it is.
func (db *DB) UpdatePins(ctx context.Context, place PinKey, work PinUpdate) error {
	var refused error
	err := db.inTransaction(ctx, "keep what is pinned", func(tx *sql.Tx) error {
		// This row is what two transactions about one server wait for.
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

// nonNilBytes is a definition as a column has it: never null.
func nonNilBytes(raw []byte) []byte {
	if raw == nil {
		return []byte{}
	}
	return raw
}
