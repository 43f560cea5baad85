package storetest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// HeldResults are the results that are held back.
type HeldResults interface {
	HoldResult(ctx context.Context, r store.HeldResult) error
	HeldResults(ctx context.Context) ([]store.HeldResult, error)
	HeldResult(ctx context.Context, id string) (store.HeldResult, error)
}

func testHeldResults(t *testing.T, p OpenStore) {
	s, person := p(), p()
	one := store.HeldResult{
		ID: "one", Principal: "ada", Card: "fs__read", Method: "tools/call", Server: "fs",
		Rules:  []string{"override", "secret"},
		Result: json.RawMessage(`{"content":[{"type":"text","text":"é\u0000"}],"n":1.0}`),
	}
	requireNoError(t, s.HoldResult(t.Context(), one))
	got, err := person.HeldResult(t.Context(), "one")
	requireNoError(t, err)
	if diff := cmp.Diff(one, got, cmpopts.IgnoreFields(store.HeldResult{}, "At")); diff != "" || got.At.IsZero() {
		t.Errorf("held at %v (-want +got):\n%s", got.At, diff)
	}
	_, err = person.HeldResult(t.Context(), "two")
	wantFaultCode(t, err, drawbridge.NotFound)
	requireNoError(t, s.HoldResult(t.Context(), store.HeldResult{ID: "two", Result: json.RawMessage(`"` +
		strings.Repeat("x", 1<<20) + `"`)}))
	all, err := person.HeldResults(t.Context())
	requireNoError(t, err)
	if len(all) != 2 || all[0].Result != nil || all[1].At.After(all[0].At) {
		t.Errorf("held: %+v", all)
	}
}
