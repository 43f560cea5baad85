//go:build peers

package interop

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	root "github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
)

// pglite starts PGlite and gives its URL. All its connections share one session, which has room for one statement of a
// name: in the mode "exec" statements have none.
func pglite(t *testing.T, args ...string) string {
	t.Helper()
	module(t, "@electric-sql/pglite-pgvector/dist/index.js")
	script, err := filepath.Abs("pglite.mjs")
	if err != nil {
		t.Fatal(err)
	}
	said, port := first(func(line string) (string, bool) { return strings.CutPrefix(line, "loopback port ") })
	p := start(t, exec.Command(node, append([]string{script}, args...)...), nil, said)
	return "postgres://postgres:hunter2@127.0.0.1:" + await(t, p, port, "its port") +
		"/postgres?sslmode=disable&default_query_exec_mode=exec"
}

func openVectors(t *testing.T, location, collection string) *store.VectorStore {
	t.Helper()
	v, err := store.OpenVectorStore(location, store.VectorOptions{Collection: collection, SearchTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// TestPgvector has the real pgvector pass what every keeper of vectors passes.
func TestPgvector(t *testing.T) {
	t.Parallel()
	location := pglite(t)
	var n atomic.Int64
	storetest.RunVectorTests(t, func(t *testing.T) storetest.OpenVectors {
		collection := fmt.Sprintf("tools_%d", n.Add(1))
		return func() index.VectorStore { return openVectors(t, location, collection) }
	})
	if err := openVectors(t, location, "").Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPgvectorIsMissing has a database without the extension say what is to be done.
func TestPgvectorIsMissing(t *testing.T) {
	t.Parallel()
	v := openVectors(t, pglite(t, "bare"), "")
	key := index.TextKeyOf("one")
	for step, err := range map[string]error{
		"keep":  v.Put(t.Context(), "m", map[index.TextKey][]float32{key: {1, 2}}),
		"check": v.Check(t.Context()),
	} {
		f, ok := errors.AsType[*root.Fault](err)
		if !ok || f.Code != root.InvalidInput || !strings.Contains(f.Next, "CREATE EXTENSION vector") ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", step, err)
		}
	}
	if all, err := v.Get(t.Context(), "m", []index.TextKey{key}); err != nil || len(all) != 0 {
		t.Errorf("have: %v, %v", all, err)
	}
}
