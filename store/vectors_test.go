package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
	"github.com/drawbridge-mcp/drawbridge/store"
)

// patient is for what a test has to wait for, on whatever machine.
var patient = store.VectorOptions{Answer: time.Minute}

func openVectors(t testing.TB, location string, o store.VectorOptions) *store.Vectors {
	t.Helper()
	v, err := store.OpenVectors(location, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func TestVectorsOfTheStore(t *testing.T) {
	t.Run("Memory", func(t *testing.T) {
		storetest.RunVectors(t, func(t *testing.T) storetest.VectorPlace {
			db := open(t, ":memory:")
			return func() index.Vectors { return db.Vectors() }
		})
	})
	t.Run("SQLite", func(t *testing.T) {
		storetest.RunVectors(t, func(t *testing.T) storetest.VectorPlace {
			path := filepath.Join(t.TempDir(), "store.db")
			return func() index.Vectors { return open(t, path).Vectors() }
		})
	})
	t.Run("Postgres", func(t *testing.T) {
		storetest.RunVectors(t, func(t *testing.T) storetest.VectorPlace {
			location := storetest.Postgres(t)
			return func() index.Vectors { return open(t, location).Vectors() }
		})
	})
}

// TestPgvectorOfAServer is for a server that has pgvector; one that has not says so. The peers have another one.
func TestPgvectorOfAServer(t *testing.T) {
	v := openVectors(t, storetest.Postgres(t), patient)
	if err := v.Check(t.Context()); err != nil {
		wantFault(t, err, drawbridge.InvalidInput, "CREATE EXTENSION vector")
		wantFault(t, keepOne(t.Context(), v), drawbridge.InvalidInput, "CREATE EXTENSION vector")
		return
	}
	storetest.RunVectors(t, func(t *testing.T) storetest.VectorPlace {
		location := storetest.Postgres(t)
		return func() index.Vectors { return openVectors(t, location, patient) }
	})
}

func TestQdrant(t *testing.T) {
	storetest.RunVectors(t, func(t *testing.T) storetest.VectorPlace {
		q := storetest.StartQdrant(t, "", nil)
		return func() index.Vectors { return openVectors(t, "qdrant://"+q.Addr, patient) }
	})
}
