package store

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// TestVectorsOfTextsThatComeAndGo keeps vectors of ever other texts, as servers make them: there are never more than a
// number of a model, and none of another model goes.
func TestVectorsOfTextsThatComeAndGo(t *testing.T) {
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	const most = 2 * spareVectors
	o := sqlVectors{db, most}
	keep := func(model string, from, n int) (keys []index.TextKey) {
		t.Helper()
		vectors := map[index.TextKey][]float32{}
		for i := range n {
			key := index.TextKeyOf(fmt.Sprintf("%s %d", model, from+i))
			keys, vectors[key] = append(keys, key), []float32{1}
		}
		if err := o.Keep(t.Context(), model, 1, keys, vectors); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	count := func(model string) (n int) {
		t.Helper()
		if err := db.reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM vectors WHERE model = $1",
			model).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	keep("quiet", 0, most)
	for at := 0; at < 10*most; at += 500 {
		keys := keep("busy", at, 500)
		if n := count("busy"); n > most || n < min(at+500, most-spareVectors) {
			t.Fatalf("%d are kept after %d", n, at+500)
		}
		if have, err := o.Have(t.Context(), "busy", keys); err != nil || at+500 <= most && len(have) != 500 {
			t.Errorf("%d of the last 500 are kept, %v", len(have), err)
		}
	}
	if n := count("quiet"); n != most {
		t.Errorf("%d of another model are kept", n)
	}
}
