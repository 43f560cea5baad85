//go:build nomcp

package gateway

import (
	"context"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/config"
)

func TestWithoutMCPTheDeckIsTheShippedCards(t *testing.T) {
	g, err := Open(t.Context(), Config{Store: MemoryStore, Servers: []config.Server{{ID: "a", Command: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = g.Run(context.Background()) })
	cards, faults := g.MountAll(t.Context())
	if len(cards) != 4 || faults["a"] == nil {
		t.Errorf("cards %v, faults %v", cards, faults)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}
