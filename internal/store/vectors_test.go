package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
)

// patient is for what a test has to wait for, on whatever machine.
var patient = store.VectorOptions{SearchTimeout: time.Minute}

func openVectors(t testing.TB, location string, o store.VectorOptions) *store.VectorStore {
	t.Helper()
	v, err := store.OpenVectorStore(location, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func TestVectorsOfTheStore(t *testing.T) {
	t.Run("Memory", func(t *testing.T) {
		storetest.RunVectorTests(t, func(t *testing.T) storetest.OpenVectors {
			db := open(t, ":memory:")
			return func() index.VectorStore { return db.VectorStore() }
		})
	})
	t.Run("SQLite", func(t *testing.T) {
		storetest.RunVectorTests(t, func(t *testing.T) storetest.OpenVectors {
			path := filepath.Join(t.TempDir(), "store.db")
			return func() index.VectorStore { return open(t, path).VectorStore() }
		})
	})
	t.Run("Postgres", func(t *testing.T) {
		storetest.RunVectorTests(t, func(t *testing.T) storetest.OpenVectors {
			location := storetest.PostgresSchema(t)
			return func() index.VectorStore { return open(t, location).VectorStore() }
		})
	})
}

// TestDropVectors lets go of models that nobody asks any more.
func TestDropVectors(t *testing.T) {
	for name, place := range map[string]func(*testing.T) string{
		"SQLite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "store.db") },
		"Postgres": func(t *testing.T) string { return storetest.PostgresSchema(t) },
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, place(t))
			v, keys := db.VectorStore(), []index.TextKey{index.TextKeyOf("one"), index.TextKeyOf("two")}
			for _, model := range []string{"old", "older", "new"} {
				if err := v.Put(t.Context(), model, map[index.TextKey][]float32{keys[0]: {1, 0},
					keys[1]: {0, 1}}); err != nil {
					t.Fatal(err)
				}
			}
			for _, tt := range []struct {
				but  string
				want int64
			}{{"new", 4}, {"new", 0}, {"", 2}, {"", 0}} {
				if n, err := db.DropOtherVectors(t.Context(), tt.but); err != nil || n != tt.want {
					t.Errorf("all but those of %q: %d, %v, want %d", tt.but, n, err, tt.want)
				}
				if kept, err := v.Get(t.Context(), "new", keys); err != nil || (len(kept) == 2) != (tt.but == "new") {
					t.Errorf("all but those of %q: %v, %v", tt.but, kept, err)
				}
			}
			if err := v.Put(t.Context(), "old", map[index.TextKey][]float32{keys[0]: {1, 0, 0}}); err != nil {
				t.Error("its dimension is still known: ", err)
			}
		})
	}
}

// TestPgvectorOfAServer is for a server that has pgvector; one that has not says so. The peers have another one.
func TestPgvectorOfAServer(t *testing.T) {
	v := openVectors(t, storetest.PostgresSchema(t), patient)
	if err := v.Check(t.Context()); err != nil {
		wantFault(t, err, drawbridge.InvalidInput, "CREATE EXTENSION vector")
		wantFault(t, keepOne(t.Context(), v), drawbridge.InvalidInput, "CREATE EXTENSION vector")
		return
	}
	storetest.RunVectorTests(t, func(t *testing.T) storetest.OpenVectors {
		location := storetest.PostgresSchema(t)
		return func() index.VectorStore { return openVectors(t, location, patient) }
	})
}

func TestQdrant(t *testing.T) {
	storetest.RunVectorTests(t, func(t *testing.T) storetest.OpenVectors {
		q := storetest.StartQdrant(t, "", nil)
		return func() index.VectorStore { return openVectors(t, "qdrant://"+q.Addr, patient) }
	})
}
