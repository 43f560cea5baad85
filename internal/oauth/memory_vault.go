package oauth

import (
	"context"
	"strconv"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// A memoryVault is a Vault in memory.
type memoryVault struct {
	mu     sync.Mutex
	values map[string]func() []byte // functions, so that printing the vault shows no value
	stamps map[string]int
	held   map[string]chan struct{}
}

var _ Vault = (*memoryVault)(nil)

func newMemoryVault() *memoryVault {
	return &memoryVault{values: map[string]func() []byte{}, stamps: map[string]int{}, held: map[string]chan struct{}{}}
}

func (m *memoryVault) Get(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.values[name]
	if !ok {
		return nil, secrets.ErrNotFound
	}
	return value(), nil
}

func (m *memoryVault) Put(name string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] = func() []byte { return value }
	m.stamps[name]++
	return nil
}

func (m *memoryVault) Delete(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, name)
	m.stamps[name]++
	return nil
}

func (m *memoryVault) Stamp(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strconv.Itoa(m.stamps[name])
}

func (m *memoryVault) Lock(ctx context.Context, name string) (func(), error) {
	m.mu.Lock()
	lock := m.held[name]
	if lock == nil {
		lock = make(chan struct{}, 1)
		m.held[name] = lock
	}
	m.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
