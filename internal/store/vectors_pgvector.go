package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/jackc/pgx/v5"
)

// pgvectorConnections is the maximum number of connections to a server. pgvectorIdleConnections is the maximum
// number of idle connections that stay open.
const (
	pgvectorConnections     = 4
	pgvectorIdleConnections = 1
)

// errNoVectorExtension is the error if the extension "vector" is missing and cannot be created.
var errNoVectorExtension = errors.New("the database has no extension vector")

// A pgvectorBackend stores vectors in a table with the name of the collection. A second table contains the
// dimensions of the models.
type pgvectorBackend struct {
	db     *sql.DB
	tables *strings.Replacer
}

// openPgvector returns the backend of a collection. name is the address of the database without a password, for
// messages. The function does not connect yet. The error does not contain parts of the URL.
func openPgvector(location, collection string) (k *pgvectorBackend, name string, err error) {
	pool, name, err := OpenPostgresPool(location, pgvectorConnections, pgvectorIdleConnections)
	if err != nil {
		return nil, "", err
	}
	words := strings.NewReplacer("VECTORS", pgx.Identifier{collection}.Sanitize(), "MODELS", pgx.Identifier{collection +
		"_models"}.Sanitize())
	return &pgvectorBackend{pool, words}, name, nil
}

// Close closes the backend. It waits for operations in progress.
func (k *pgvectorBackend) Close() error { return k.db.Close() }

// Check returns an error if the database does not answer, or has no extension "vector" installed on its server.
func (k *pgvectorBackend) Check(ctx context.Context) error {
	var known int
	err := k.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM pg_available_extensions WHERE name = 'vector'").Scan(&known)
	if err == nil && known == 0 {
		return errNoVectorExtension
	}
	return err
}

// Have returns the saved vectors of the keys, by key.
func (k *pgvectorBackend) Have(ctx context.Context, model string, keys []index.TextKey) (map[index.TextKey][]float32,
	error) {
	all := map[index.TextKey][]float32{}
	rows, err := k.db.QueryContext(ctx,
		k.tables.Replace("SELECT key, vector_send(embedding) FROM VECTORS WHERE model = $1 AND key = ANY($2)"), model,
		keysAsBytes(keys))
	if postgresCode(err) == postgresUndefinedTable {
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
		v, err := decodePgvector(sent)
		if err != nil || len(key) != len(index.TextKey{}) {
			return nil, errors.New("the saved vectors are damaged")
		}
		all[index.TextKey(key)] = v
	}
	return all, rows.Err()
}

// decodePgvector decodes pgvector's binary format: the number of elements (two bytes), two unused bytes, and the
// elements. All values have the most significant byte first.
func decodePgvector(sent []byte) ([]float32, error) {
	if len(sent) < 4 || len(sent) != 4+4*int(binary.BigEndian.Uint16(sent)) {
		return nil, fmt.Errorf("a vector of %d bytes", len(sent))
	}
	v := make([]float32, 0, len(sent)/4-1)
	for b := sent[4:]; len(b) > 0; b = b[4:] {
		v = append(v, math.Float32frombits(binary.BigEndian.Uint32(b)))
	}
	return v, nil
}

// Nearest returns the keys of the nearest vectors, nearest first.
func (k *pgvectorBackend) Nearest(ctx context.Context, model string, question []float32, most int,
	among []index.TextKey) ([]index.Neighbor, error) {
	rows, err := k.db.QueryContext(ctx, k.tables.Replace(`SELECT key, 1 - (embedding <=> $2::vector) FROM VECTORS
		WHERE model = $1 AND key = ANY($3) ORDER BY embedding <=> $2::vector, key LIMIT $4`),
		model, pgvectorLiteral(question), keysAsBytes(among), most)
	switch postgresCode(err) {
	case postgresUndefinedTable:
		return nil, nil
	case postgresDataException:
		return nil, k.dimensionError(ctx, model, len(question), err)
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []index.Neighbor
	for rows.Next() {
		var key []byte
		var cosine float64
		if err := rows.Scan(&key, &cosine); err != nil {
			return nil, err
		}
		if len(key) != len(index.TextKey{}) {
			return nil, errors.New("the saved vectors are damaged")
		}
		all = append(all, index.Neighbor{Key: index.TextKey(key), Cosine: float32(cosine)})
	}
	if err := rows.Err(); postgresCode(err) == postgresDataException {
		return nil, k.dimensionError(ctx, model, len(question), err)
	} else if err != nil {
		return nil, err
	}
	return all, nil
}

// dimensionError returns a DimensionError if the model's saved vectors do not have the dimension want, or else
// because.
func (k *pgvectorBackend) dimensionError(ctx context.Context, model string, want int, because error) error {
	var have int
	err := k.db.QueryRowContext(ctx, k.tables.Replace("SELECT dimension FROM MODELS WHERE model = $1"),
		model).Scan(&have)
	if err != nil || have == want {
		return because
	}
	return &DimensionError{Model: model, Have: have, Want: want}
}

// Keep stores vectors in one transaction. If the tables do not exist, it creates them.
func (k *pgvectorBackend) Keep(ctx context.Context, model string, dimension int, keys []index.TextKey,
	vectors map[index.TextKey][]float32) error {
	err := k.insertVectors(ctx, model, dimension, keys, vectors)
	if postgresCode(err) == postgresUndefinedTable {
		if err = k.createTables(ctx); err == nil {
			err = k.insertVectors(ctx, model, dimension, keys, vectors)
		}
	}
	return err
}

func (k *pgvectorBackend) insertVectors(ctx context.Context, model string, dimension int, keys []index.TextKey,
	vectors map[index.TextKey][]float32) error {
	return k.inTransaction(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			k.tables.Replace("INSERT INTO MODELS (model, dimension) VALUES ($1, $2) ON CONFLICT (model) DO NOTHING"),
			model, dimension)
		if err != nil {
			return err
		}
		var have int
		if err := tx.QueryRowContext(ctx, k.tables.Replace("SELECT dimension FROM MODELS WHERE model = $1"),
			model).Scan(&have); err != nil {
			return err
		}
		if have != dimension {
			return &DimensionError{Model: model, Have: have, Want: dimension}
		}
		texts := make([]string, len(keys))
		for i, key := range keys {
			texts[i] = pgvectorLiteral(vectors[key])
		}
		// Insert the rows in the order of the keys, so that two gateways do not deadlock.
		_, err = tx.ExecContext(ctx, k.tables.Replace(`INSERT INTO VECTORS (model, key, embedding)
			SELECT $1::text, u.key, u.embedding::vector FROM unnest($2::bytea[], $3::text[]) WITH ORDINALITY AS u(key, embedding, n)
			ORDER BY u.n ON CONFLICT (model, key) DO NOTHING`), model, keysAsBytes(keys), texts)
		return err
	})
}

// Forget deletes the model's vectors and its dimension in one transaction.
func (k *pgvectorBackend) Forget(ctx context.Context, model string) error {
	err := k.inTransaction(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, k.tables.Replace("DELETE FROM VECTORS WHERE model = $1"), model)
		if err == nil {
			_, err = tx.ExecContext(ctx, k.tables.Replace("DELETE FROM MODELS WHERE model = $1"), model)
		}
		return err
	})
	if postgresCode(err) == postgresUndefinedTable {
		return nil // no vectors were ever saved
	}
	return err
}

// createTables creates the extension and the tables if they do not exist.
func (k *pgvectorBackend) createTables(ctx context.Context) error {
	return k.inTransaction(ctx, func(tx *sql.Tx) error {
		// An arbitrary lock number that other programs on the server are unlikely to use: its bytes spell
		// "drawbrvc". Without the lock, two processes that create the same object concurrently fail in spite of IF
		// NOT EXISTS.
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(7237970079022708323)"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "CREATE EXTENSION IF NOT EXISTS vector"); err != nil {
			switch postgresCode(err) {
			// no permission to create the extension; not installed (newer and older servers)
			case "42501", "0A000", "58P01":
				return fmt.Errorf("%w: %w", errNoVectorExtension, err)
			}
			return err
		}
		for _, statement := range []string{
			"CREATE TABLE IF NOT EXISTS MODELS (model TEXT NOT NULL PRIMARY KEY, dimension BIGINT NOT NULL)",
			"CREATE TABLE IF NOT EXISTS VECTORS (model TEXT NOT NULL, key BYTEA NOT NULL, embedding vector NOT NULL, PRIMARY KEY (model, key))",
		} {
			if _, err := tx.ExecContext(ctx, k.tables.Replace(statement)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (k *pgvectorBackend) inTransaction(ctx context.Context, work func(tx *sql.Tx) error) error {
	tx, err := k.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := work(tx); err != nil {
		_ = tx.Rollback() // the first error matters
		return err
	}
	return tx.Commit()
}

// SQLSTATEs of Postgres and pgvector.
const (
	postgresUndefinedTable = "42P01"
	postgresDataException  = "22000" // pgvector: vectors of different dimensions
)

// pgvectorLiteral returns a vector as a pgvector literal: [1,2,3].
func pgvectorLiteral(v []float32) string {
	b := []byte{'['}
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return string(append(b, ']'))
}

func keysAsBytes(keys []index.TextKey) [][]byte {
	all := make([][]byte, len(keys))
	for i := range keys {
		all[i] = keys[i][:]
	}
	return all
}
