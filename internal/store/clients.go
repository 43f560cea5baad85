package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A Client is a client with its own token. The store contains only the hash of the token.
type Client struct {
	// Name is 1 to 64 characters of [A-Za-z0-9_.-].
	Name string
	// Scopes are the client's rights.
	Scopes []drawbridge.Scope
	// Origin is the origin of the content that the client writes to the workspace. AddClient stores
	// workspace.AgentProduced if it is empty.
	Origin workspace.Origin
	// Created is the time at which the token was issued, and Expires the time at which it expires; zero means never.
	Created, Expires time.Time
	// Used is the last day, in UTC, on which the token was used; zero means never.
	Used time.Time
	// Ended reports whether the token has expired by the store's clock, now or at any earlier time.
	Ended bool
}

const (
	maxClientName = 64
	clientChars   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
	day           = 24 * time.Hour
)

// AddClient stores a client and the SHA-256 of its token. A fault with code InvalidInput means that the name is
// invalid or in use, or that the origin does not exist.
func (db *DB) AddClient(ctx context.Context, c Client, token [sha256.Size]byte) error {
	const step = "add a client"
	if c.Name == "" || len(c.Name) > maxClientName || strings.Trim(c.Name, clientChars) != "" {
		return drawbridge.NameError(
			fmt.Sprintf("a client's name has 1 to %d letters, digits, dashes, dots and underscores", maxClientName))
	}
	origin := cmp.Or(c.Origin, workspace.AgentProduced)
	if !origin.Valid() {
		return db.newFault(step, drawbridge.InvalidInput, fmt.Errorf("the origin %.40q does not exist", c.Origin))
	}
	scopes, err := json.Marshal(append([]drawbridge.Scope{}, c.Scopes...))
	if err != nil {
		return db.newFault(step, drawbridge.InvalidInput, err)
	}
	return db.inTransaction(ctx, step, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, db.expandKeywords(`INSERT INTO clients
			(name, token, scopes, origin, created, expires) VALUES ($1, $2, $3, $4, CLOCK, $5)
			ON CONFLICT DO NOTHING`), c.Name, token[:], scopes, origin, toMillis(c.Expires))
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			return err
		}
		f := db.newFault(step, drawbridge.InvalidInput, fmt.Errorf("there is a client %s already", c.Name))
		f.Next = "drawbridge client remove " + c.Name
		return f
	})
}

// RemoveClient deletes a client, which revokes its token. It reports whether the client existed.
func (db *DB) RemoveClient(ctx context.Context, name string) (removed bool, err error) {
	err = db.inTransaction(ctx, "remove a client", func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "DELETE FROM clients WHERE name = $1", name)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		removed = n > 0
		return err
	})
	return removed, err
}

const selectClients = "SELECT name, token, scopes, origin, created, expires, used, " +
	"CASE WHEN ended <> 0 OR (expires <> 0 AND expires <= CLOCK) THEN 1 ELSE 0 END FROM clients "

// Clients returns all clients ordered by name, including clients with expired tokens.
func (db *DB) Clients(ctx context.Context) ([]Client, error) {
	const step = "read the clients"
	rows, err := db.reader.QueryContext(ctx, db.expandKeywords(selectClients+"ORDER BY name"))
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	var all []Client
	for rows.Next() {
		c, _, err := readClient(rows.Scan)
		if err != nil {
			return nil, db.fault(step, err)
		}
		all = append(all, c)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// ClientByToken returns the client whose token has the given SHA-256, and reports whether it exists. The client is
// returned even if its token has expired; see Client.Ended. The time of the query may reveal information about the
// stored hash, which does not reveal a token of 256 random bits.
func (db *DB) ClientByToken(ctx context.Context, token [sha256.Size]byte) (Client, bool, error) {
	if _, err := db.highestTime(ctx); err != nil {
		return Client{}, false, err
	}
	c, kept, err := readClient(db.reader.QueryRowContext(ctx, db.expandKeywords(selectClients+"WHERE token = $1"),
		token[:]).Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Client{}, false, nil
	case err != nil:
		return Client{}, false, db.fault("find a client", err)
	}
	return c, subtle.ConstantTimeCompare(kept, token[:]) == 1, nil
}

// HasClients reports whether the store contains at least one client.
func (db *DB) HasClients(ctx context.Context) (bool, error) {
	var n int
	if err := db.reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM clients").Scan(&n); err != nil {
		return false, db.fault("count the clients", err)
	}
	return n > 0, nil
}

// MarkClientUsed stores the day on which a client used its token. It changes nothing if the same or a later day is
// already stored.
func (db *DB) MarkClientUsed(ctx context.Context, name string, when time.Time) error {
	return db.execWrite(ctx, "note a client's day", "UPDATE clients SET used = $1 WHERE name = $2 AND used < $1",
		toMillis(when.Truncate(day)), name)
}

func readClient(scan func(...any) error) (c Client, token []byte, err error) {
	var scopes []byte
	var created, expires, used, ended int64
	if err := scan(&c.Name, &token, &scopes, &c.Origin, &created, &expires, &used, &ended); err != nil {
		return Client{}, nil, err
	}
	if err := json.Unmarshal(scopes, &c.Scopes); err != nil {
		return Client{}, nil, errors.New("the scopes of a client are damaged")
	}
	c.Created, c.Expires, c.Used = fromMillis(created), fromMillis(expires), fromMillis(used)
	c.Ended = ended != 0
	return c, token, nil
}

// toMillis returns the time in milliseconds since 1970, as stored in columns; 0 for the zero time.
func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
