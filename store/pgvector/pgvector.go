// Package pgvector keeps vectors in a Postgres database by its extension "vector" (pgvector).
//
// It promises that tables are made when something is first kept, that what two gateways keep at once is kept once, and that
// the nearest are the nearest: it makes no index that guesses. Its errors have neither password nor vectors in them.
package pgvector

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/store/postgres"
	"github.com/drawbridge-mcp/drawbridge/store/vector"
	"github.com/jackc/pgx/v5"
)

// connections is how many connections to a server there are at most, spare how many stay when idle.
const (
	connections = 4
	spare       = 1
)

// ErrNoExtension says that the database has no extension "vector", and that it may not be made, or not found.
var ErrNoExtension = errors.New("the database has no extension vector")

// A Keeper keeps vectors in two tables: one of a collection's name, and one more for the dimensions of models.
type Keeper struct {
	db    *sql.DB
	words *strings.Replacer
}

// Open gives the keeper of a collection, and the name of its place for people. It connects to nothing yet. The error has
// nothing of the URL in it.
func Open(location, collection string) (k *Keeper, name string, err error) {
	pool, name, err := postgres.Open(location, connections, spare)
	if err != nil {
		return nil, "", err
	}
	words := strings.NewReplacer("VECTORS", pgx.Identifier{collection}.Sanitize(), "MODELS", pgx.Identifier{collection + "_models"}.Sanitize())
	return &Keeper{pool, words}, name, nil
}

// Close closes the keeper. It waits for what is going on.
func (k *Keeper) Close() error { return k.db.Close() }

// Check says whether the database answers and has the extension, or could have it.
func (k *Keeper) Check(ctx context.Context) error {
	var known int
	err := k.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM pg_available_extensions WHERE name = 'vector'").Scan(&known)
	if err == nil && known == 0 {
		return ErrNoExtension
	}
	return err
}

// Have gives those of the vectors that are kept.
func (k *Keeper) Have(ctx context.Context, model string, keys []index.Key) (map[index.Key][]float32, error) {
	all := map[index.Key][]float32{}
	rows, err := k.db.QueryContext(ctx, k.words.Replace("SELECT key, vector_send(embedding) FROM VECTORS WHERE model = $1 AND key = ANY($2)"), model, bytesOf(keys))
	if postgres.Code(err) == undefinedTable {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var key, sent sql.RawBytes
		if err := rows.Scan(&key, &sent); err != nil {
			return nil, err
		}
		v, err := received(sent)
		if err != nil || len(key) != len(index.Key{}) {
			return nil, errors.New("what is kept is damaged")
		}
		all[index.Key(key)] = v
	}
	return all, rows.Err()
}

// received reads a vector as pgvector sends it: how many numbers there are, two bytes, and the numbers, the most significant
// byte first.
func received(sent []byte) ([]float32, error) {
	if len(sent) < 4 || len(sent) != 4+4*int(binary.BigEndian.Uint16(sent)) {
		return nil, fmt.Errorf("a vector of %d bytes", len(sent))
	}
	v := make([]float32, 0, len(sent)/4-1)
	for b := sent[4:]; len(b) > 0; b = b[4:] {
		v = append(v, math.Float32frombits(binary.BigEndian.Uint32(b)))
	}
	return v, nil
}

// Nearest gives the keys whose vectors lie nearest, the nearest first.
func (k *Keeper) Nearest(ctx context.Context, model string, question []float32, most int, among []index.Key) ([]index.Near, error) {
	rows, err := k.db.QueryContext(ctx, k.words.Replace(`SELECT key, 1 - (embedding <=> $2::vector) FROM VECTORS
		WHERE model = $1 AND key = ANY($3) ORDER BY embedding <=> $2::vector, key LIMIT $4`),
		model, textOf(question), bytesOf(among), most)
	switch postgres.Code(err) {
	case undefinedTable:
		return nil, nil
	case dataException:
		return nil, k.otherDimension(ctx, model, len(question), err)
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []index.Near
	for rows.Next() {
		var key []byte
		var cosine float64
		if err := rows.Scan(&key, &cosine); err != nil {
			return nil, err
		}
		if len(key) != len(index.Key{}) {
			return nil, errors.New("what is kept is damaged")
		}
		all = append(all, index.Near{Key: index.Key(key), Cosine: float32(cosine)})
	}
	if err := rows.Err(); postgres.Code(err) == dataException {
		return nil, k.otherDimension(ctx, model, len(question), err)
	} else if err != nil {
		return nil, err
	}
	return all, nil
}

// otherDimension says what an error comes from that vectors of two dimensions make.
func (k *Keeper) otherDimension(ctx context.Context, model string, want int, because error) error {
	var have int
	err := k.db.QueryRowContext(ctx, k.words.Replace("SELECT dimension FROM MODELS WHERE model = $1"), model).Scan(&have)
	if err != nil || have == want {
		return because
	}
	return &vector.DimensionError{Model: model, Have: have, Want: want}
}

// Keep keeps vectors in one transaction. The first makes the tables.
func (k *Keeper) Keep(ctx context.Context, model string, dimension int, keys []index.Key, vectors map[index.Key][]float32) error {
	err := k.keep(ctx, model, dimension, keys, vectors)
	if postgres.Code(err) == undefinedTable {
		if err = k.make(ctx); err == nil {
			err = k.keep(ctx, model, dimension, keys, vectors)
		}
	}
	return err
}

func (k *Keeper) keep(ctx context.Context, model string, dimension int, keys []index.Key, vectors map[index.Key][]float32) error {
	return k.transact(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, k.words.Replace("INSERT INTO MODELS (model, dimension) VALUES ($1, $2) ON CONFLICT (model) DO NOTHING"), model, dimension)
		if err != nil {
			return err
		}
		var have int
		if err := tx.QueryRowContext(ctx, k.words.Replace("SELECT dimension FROM MODELS WHERE model = $1"), model).Scan(&have); err != nil {
			return err
		}
		if have != dimension {
			return &vector.DimensionError{Model: model, Have: have, Want: dimension}
		}
		texts := make([]string, len(keys))
		for i, key := range keys {
			texts[i] = textOf(vectors[key])
		}
		// Rows go in in the order of the keys, so that two gateways do not wait for one another.
		_, err = tx.ExecContext(ctx, k.words.Replace(`INSERT INTO VECTORS (model, key, embedding)
			SELECT $1::text, u.key, u.embedding::vector FROM unnest($2::bytea[], $3::text[]) WITH ORDINALITY AS u(key, embedding, n)
			ORDER BY u.n ON CONFLICT (model, key) DO NOTHING`), model, bytesOf(keys), texts)
		return err
	})
}

// Forget lets go of a model's vectors, and of their dimension, in one transaction.
func (k *Keeper) Forget(ctx context.Context, model string) error {
	err := k.transact(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, k.words.Replace("DELETE FROM VECTORS WHERE model = $1"), model)
		if err == nil {
			_, err = tx.ExecContext(ctx, k.words.Replace("DELETE FROM MODELS WHERE model = $1"), model)
		}
		return err
	})
	if postgres.Code(err) == undefinedTable {
		return nil // nothing was ever kept
	}
	return err
}

// make makes the extension and the tables, where they are not there.
func (k *Keeper) make(ctx context.Context) error {
	return k.transact(ctx, func(tx *sql.Tx) error {
		// Any number that no other program on the server is likely to have: it reads "drawbrvc". Two that make one thing at once
		// fail otherwise, whatever IF NOT EXISTS says.
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(7237970079022708323)"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "CREATE EXTENSION IF NOT EXISTS vector"); err != nil {
			switch postgres.Code(err) {
			case "42501", "0A000", "58P01": // it may not be made; it is not installed, as newer and older servers say it
				return fmt.Errorf("%w: %w", ErrNoExtension, err)
			}
			return err
		}
		for _, statement := range []string{
			"CREATE TABLE IF NOT EXISTS MODELS (model TEXT NOT NULL PRIMARY KEY, dimension BIGINT NOT NULL)",
			"CREATE TABLE IF NOT EXISTS VECTORS (model TEXT NOT NULL, key BYTEA NOT NULL, embedding vector NOT NULL, PRIMARY KEY (model, key))",
		} {
			if _, err := tx.ExecContext(ctx, k.words.Replace(statement)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (k *Keeper) transact(ctx context.Context, work func(tx *sql.Tx) error) error {
	tx, err := k.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := work(tx); err != nil {
		_ = tx.Rollback() // what went wrong before says more
		return err
	}
	return tx.Commit()
}

// The SQLSTATEs that mean something here.
const (
	undefinedTable = "42P01"
	dataException  = "22000" // pgvector's, for two dimensions
)

// textOf writes a vector as pgvector reads it.
func textOf(v []float32) string {
	b := []byte{'['}
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return string(append(b, ']'))
}

func bytesOf(keys []index.Key) [][]byte {
	all := make([][]byte, len(keys))
	for i := range keys {
		all[i] = keys[i][:]
	}
	return all
}
