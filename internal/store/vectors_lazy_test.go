package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
)

// kept has secrets by name, and counts who asks.
type kept struct {
	mu     sync.Mutex
	values map[string]string
	asked  int
}

func (k *kept) Get(name string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if v, ok := k.values[name]; ok {
		return []byte(v), nil
	}
	return nil, errors.New("secret not found")
}

func (k *kept) set(name, value string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.values[name] = value
}

func newKeeper(t *testing.T, o store.LazyVectorOptions) *store.LazyVectors {
	t.Helper()
	o.SearchTimeout = time.Minute // on whatever machine
	k, err := store.NewLazyVectors(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// works keeps a vector and finds it again.
func works(ctx context.Context, v index.VectorStore) error {
	key := index.TextKeyOf("one")
	if err := v.Put(ctx, "m", map[index.TextKey][]float32{key: {0, 2}}); err != nil {
		return err
	}
	all, err := v.Get(ctx, "m", []index.TextKey{key})
	if err != nil {
		return err
	}
	near, err := v.Nearest(ctx, "m", []float32{1, 1}, 1, []index.TextKey{key})
	if err == nil && (len(all) != 1 || len(near) != 1) {
		err = errors.New("it is not there")
	}
	return err
}

func refused(t *testing.T, err error, code drawbridge.FaultCode, says string) {
	t.Helper()
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Code != code || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter") {
		t.Errorf("%v, want code %s, %s", err, code, says)
	}
}

func TestTheStoreKeeps(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	k := newKeeper(t, store.LazyVectorOptions{Store: db})
	if err := works(t.Context(), k); err != nil {
		t.Error(err)
	}
	if k.Close() != nil || works(t.Context(), db.VectorStore()) != nil {
		t.Error("the store was closed with it")
	}
	refused(t, works(t.Context(), k), drawbridge.Transient, "it was closed")
}

// TestReferencesAreFoundWhenNeeded has the key in a file and in the keychain, with characters that mean something in a
// URL.
func TestReferencesAreFoundWhenNeeded(t *testing.T) {
	const secret = "hunter2 @:/?#%+&="
	q := storetest.StartQdrant(t, secret, nil)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(p config.ValuePart) config.VectorStoreSettings {
		return config.VectorStoreSettings{Store: []config.ValuePart{{Text: "qdrant://"}, p, {Text: "@" + q.Addr}},
			Collection: "team"}
	}
	secrets := &kept{values: map[string]string{}}
	k := newKeeper(t, store.LazyVectorOptions{Settings: at(config.ValuePart{Kind: config.KeychainPart, Text: "qdrant"}),
		Secrets: secrets})
	if secrets.asked != 0 {
		t.Error("the keychain was asked before anything was kept")
	}
	refused(t, works(t.Context(), k), drawbridge.AuthFailure, `find "qdrant" in the keychain: secret not found`)
	secrets.set("qdrant", secret)
	for range 2 {
		if err := works(t.Context(), k); err != nil {
			t.Error(err)
		}
	}
	if secrets.asked != 2 {
		t.Errorf("the keychain was asked %d times, want once for each try", secrets.asked)
	}
	if err := works(t.Context(),
		newKeeper(t, store.LazyVectorOptions{Settings: at(config.ValuePart{Kind: config.FilePart,
			Text: file})})); err != nil {
		t.Error(err)
	}
	if name, err := k.Check(t.Context()); name != "qdrant://"+q.Addr || err != nil {
		t.Errorf("%s, %v", name, err)
	}
	if made := q.Collections(); len(made) != 1 || !strings.HasPrefix(made[0], "team_m_") {
		t.Errorf("collections %v", made)
	}
}

// TestOneOpens has many ask at once.
func TestOneOpens(t *testing.T) {
	q := storetest.StartQdrant(t, "hunter2", nil)
	secrets := &kept{values: map[string]string{"qdrant": "hunter2"}}
	k := newKeeper(t, store.LazyVectorOptions{Secrets: secrets, Settings: config.VectorStoreSettings{
		Store: []config.ValuePart{{Text: "qdrant://"}, {Kind: config.KeychainPart, Text: "qdrant"},
			{Text: "@" + q.Addr}},
	}})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := works(t.Context(), k); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if secrets.asked != 1 {
		t.Errorf("the keychain was asked %d times", secrets.asked)
	}
}

func TestAURLThatLeadsNowhere(t *testing.T) {
	_, err := store.NewLazyVectors(t.Context(),
		store.LazyVectorOptions{Settings: config.VectorStoreSettings{Store: []config.ValuePart{{Text: "qdrant://hunter2@vectors.example"}}}})
	refused(t, err, drawbridge.InvalidInput, "write qdrants://")
}
