package store_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

func openAndClose(b *testing.B, path string) {
	db, err := store.Open(b.Context(), path, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOpen opens and closes a store that has 1,000 entries.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "store.db")
	fill(b, open(b, path), "deck", 1000)
	for b.Loop() {
		openAndClose(b, path)
	}
}

// BenchmarkOpenNew makes the file and the tables.
func BenchmarkOpenNew(b *testing.B) {
	dir, i := b.TempDir(), 0
	for b.Loop() {
		openAndClose(b, filepath.Join(dir, fmt.Sprint(i)))
		i++
	}
}

// places are a file and, where there is one, a Postgres database.
func places(b *testing.B, bench func(b *testing.B, db *store.DB)) {
	b.Run("SQLite", func(b *testing.B) { bench(b, open(b, filepath.Join(b.TempDir(), "store.db"))) })
	b.Run("Postgres", func(b *testing.B) { bench(b, open(b, storetest.PostgresSchema(b))) })
}

// BenchmarkAppend has the mean, and the median beside it: a disk that is busy with others' work now and then counts
// less.
func BenchmarkAppend(b *testing.B) {
	places(b, func(b *testing.B, db *store.DB) {
		one := batch(1)
		var took []time.Duration
		b.ReportAllocs()
		for b.Loop() {
			begin := time.Now()
			if _, err := db.Append(b.Context(), "deck", one); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns/op")
	})
}

// batch is n tools of 50 servers, with half a kilobyte each to say.
func batch(n int) []ledger.Entry {
	entries := make([]ledger.Entry, n)
	for i := range entries {
		entries[i] = storetest.NewEnrolment(drawbridge.ServerID(fmt.Sprint("server-", i%50)), fmt.Sprintf("tool_%d", i))
		entries[i].Card.Definition = json.RawMessage(
			fmt.Sprintf(`{"name":"tool_%d","description":"%s","inputSchema":{"type":"object",`+
				`"properties":{"path":{"type":"string"}},"required":["path"]}}`, i,
				strings.Repeat("what it does, ", 28)))
	}
	return entries
}

func BenchmarkAppend10000(b *testing.B) {
	places(b, func(b *testing.B, db *store.DB) {
		entries := batch(10_000)
		for b.Loop() {
			if _, err := db.Append(b.Context(), "deck", entries); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkReplay1000(b *testing.B) {
	places(b, func(b *testing.B, db *store.DB) {
		if _, err := db.Append(b.Context(), "deck", batch(1000)); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := db.Replay(b.Context(), "deck"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMounts50 reads what start-up needs: 50 listings of 20 tools of about a kilobyte.
func BenchmarkMounts50(b *testing.B) {
	places(b, func(b *testing.B, db *store.DB) {
		tool := json.RawMessage(`{"name":"tool","description":"` + strings.Repeat("x", 1000) + `"}`)
		for i := range 50 {
			l := drawbridge.Listing{Server: drawbridge.ServerID(fmt.Sprint("s", i)), ConfigHash: fmt.Sprint("row", i)}
			for range 20 {
				l.Tools = append(l.Tools, tool)
			}
			if err := db.SaveListing(b.Context(), l); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			if _, err := db.Mounts(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
