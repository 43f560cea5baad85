package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// vectorReadBatch is the maximum number of keys in one query.
const vectorReadBatch = 500

const (
	// maxVectors is the maximum number of stored vectors of a model: twice the number of texts that an index knows. A
	// limit is necessary because servers choose their texts, and may change them every day. If a model has more
	// vectors, the excess vectors and spareVectors further ones are deleted, so that the next calls need not delete.
	// A deleted vector is computed again if it is needed.
	maxVectors   = 200_000
	spareVectors = 1000
)

// sqlVectors stores vectors in the store's tables. To find the nearest vectors, it compares the question with the
// vector of every given key.
type sqlVectors struct {
	db *DB
	// limit is the maximum number of vectors of a model: maxVectors, except in tests.
	limit int
}

// Close does nothing: the store is closed by its owner.
func (sqlVectors) Close() error { return nil }

func (o sqlVectors) Check(ctx context.Context) error { return o.db.reader.PingContext(ctx) }

func (o sqlVectors) Have(ctx context.Context, model string, keys []index.TextKey) (map[index.TextKey][]float32, error) {
	all := map[index.TextKey][]float32{}
	err := o.each(ctx, model, keys, func(key index.TextKey, packed []byte) (err error) {
		all[key], err = UnpackVector(packed)
		return err
	})
	return all, err
}

func (o sqlVectors) Nearest(ctx context.Context, model string, question []float32, most int, among []index.TextKey) (
	[]index.Neighbor, error) {
	var all []index.Neighbor
	err := o.each(ctx, model, among, func(key index.TextKey, packed []byte) error {
		if len(packed) != 4*len(question) {
			return &DimensionError{Model: model, Have: len(packed) / 4, Want: len(question)}
		}
		all = append(all, index.Neighbor{Key: key, Cosine: DotPacked(question, packed)})
		return nil
	})
	slices.SortFunc(all, CompareNear)
	return all[:min(most, len(all))], err
}

// each calls take for each saved vector of the keys. The packed vector is valid only during the call.
func (o sqlVectors) each(ctx context.Context, model string, keys []index.TextKey, take func(index.TextKey,
	[]byte) error) error {
	for part := range slices.Chunk(keys, vectorReadBatch) {
		args := make([]any, 0, 1+len(part))
		args = append(args, model)
		for i := range part {
			args = append(args, part[i][:])
		}
		var b strings.Builder
		b.WriteString("SELECT key, vector FROM vectors WHERE model = ")
		o.db.dialect.writeParameters(&b, 1, 1)
		b.WriteString(" AND key IN (")
		o.db.dialect.writeParameters(&b, 2, len(part))
		b.WriteString(")")
		if err := o.queryVectors(ctx, b.String(), args, take); err != nil {
			return err
		}
	}
	return nil
}

func (o sqlVectors) queryVectors(ctx context.Context, query string, args []any, take func(index.TextKey,
	[]byte) error) error {
	rows, err := o.db.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key, packed sql.RawBytes
		if err := rows.Scan(&key, &packed); err != nil {
			return err
		}
		if len(key) != len(index.TextKey{}) {
			return fmt.Errorf("a key of %d bytes is damaged", len(key))
		}
		if err := take(index.TextKey(key), packed); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (o sqlVectors) Keep(ctx context.Context, model string, dimension int, keys []index.TextKey,
	vectors map[index.TextKey][]float32) error {
	return o.db.inTransaction(ctx, "keep vectors", func(tx *sql.Tx) error {
		have := dimension
		_, err := tx.ExecContext(ctx,
			"INSERT INTO vector_models (model, dimension) VALUES ($1, $2) ON CONFLICT (model) DO NOTHING",
			model, dimension)
		if err == nil {
			err = tx.QueryRowContext(ctx, "SELECT dimension FROM vector_models WHERE model = $1", model).Scan(&have)
		}
		if err == nil && have != dimension {
			err = &DimensionError{Model: model, Have: have, Want: dimension}
		}
		for part := range slices.Chunk(keys, writeRows) {
			if err != nil {
				return err
			}
			var b strings.Builder
			b.WriteString("INSERT INTO vectors (model, key, vector) VALUES ")
			args := make([]any, 0, 3*len(part))
			for i := range part {
				if i > 0 {
					b.WriteString(", ")
				}
				b.WriteString("(")
				o.db.dialect.writeParameters(&b, len(args)+1, 3)
				b.WriteString(")")
				args = append(args, model, part[i][:], PackVector(vectors[part[i]]))
			}
			b.WriteString(" ON CONFLICT (model, key) DO NOTHING")
			_, err = tx.ExecContext(ctx, b.String(), args...)
		}
		if err != nil {
			return err
		}
		return o.dropExcess(ctx, tx, model)
	})
}

// dropExcess deletes vectors of a model that has more vectors than the limit. It starts at a random key and deletes
// vectors in the order of their keys.
func (o sqlVectors) dropExcess(ctx context.Context, tx *sql.Tx, model string) error {
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM vectors WHERE model = $1", model).Scan(&n); err != nil ||
		n <= o.limit {
		return err
	}
	const some = `DELETE FROM vectors WHERE model = $1 AND key IN (SELECT key FROM vectors WHERE model = $2 AND key >= $3 ORDER BY key LIMIT $4)`
	var from index.TextKey
	rand.Read(from[:]) // never fails: see its documentation
	left := min(n, n-o.limit+spareVectors)
	for _, key := range [][]byte{from[:], {}} { // continue at the first key if too few keys follow
		done, err := tx.ExecContext(ctx, o.db.expandKeywords(some), model, model, key, left)
		if err != nil {
			return err
		}
		gone, err := done.RowsAffected()
		if left -= int(gone); err != nil || left <= 0 {
			return err
		}
	}
	return nil
}

func (o sqlVectors) Forget(ctx context.Context, model string) error {
	return o.db.inTransaction(ctx, "forget vectors", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM vectors WHERE model = $1", model)
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM vector_models WHERE model = $1", model)
		}
		return err
	})
}

// DropOtherVectors deletes the vectors of all models except the model but, and returns the number of deleted vectors.
// If but is empty, it deletes the vectors of all models. The error is a *drawbridge.Fault.
func (db *DB) DropOtherVectors(ctx context.Context, but string) (dropped int64, err error) {
	err = db.inTransaction(ctx, "drop the vectors of other models", func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "DELETE FROM vectors WHERE model <> $1", but)
		if err == nil {
			dropped, err = done.RowsAffected()
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM vector_models WHERE model <> $1", but)
		}
		return err
	})
	return dropped, err
}

// writeParameters writes n placeholders of parameters, separated by commas. If the dialect numbers the placeholders,
// the first one has the number from.
func (d dialect) writeParameters(b *strings.Builder, from, n int) {
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		if d.isSQLite {
			b.WriteString("?")
		} else {
			fmt.Fprintf(b, "$%d", from+i)
		}
	}
}
