package storetest

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// LearnedOutputs contains the methods of a store for output types that were learned from the results of tools.
type LearnedOutputs interface {
	UpdateLearnedOutput(ctx context.Context, key store.LearnedOutputKey, results int,
		update func(schema json.RawMessage) json.RawMessage) error
	LearnedOutput(ctx context.Context, key store.LearnedOutputKey) (store.LearnedOutput, error)
	ForgetLearnedOutputs(ctx context.Context, rows []string) error
}

// learn stores a schema, and checks the schema that was stored before.
func learn(t *testing.T, s LearnedOutputs, key store.LearnedOutputKey, results int, before, schema string) {
	t.Helper()
	requireNoError(t, s.UpdateLearnedOutput(t.Context(), key, results, func(stored json.RawMessage) json.RawMessage {
		if string(stored) != before {
			t.Errorf("stored before: %s, want %s", stored, before)
		}
		if schema == "" {
			return nil
		}
		return json.RawMessage(schema)
	}))
}

func wantLearned(t *testing.T, s LearnedOutputs, key store.LearnedOutputKey, want store.LearnedOutput) {
	t.Helper()
	got, err := s.LearnedOutput(t.Context(), key)
	requireNoError(t, err)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.LearnedOutput{}, "At")); diff != "" {
		t.Errorf("learned (-want +got):\n%s", diff)
	}
	if got.At.IsZero() != (want.Results == 0) {
		t.Errorf("learned at %v", got.At)
	}
}

func testLearnedOutputs(t *testing.T, p OpenStore) {
	s, reader := p(), p()
	key := store.LearnedOutputKey{Row: "row-1", Server: "fs", Tool: "read", Definition: "d1"}
	other, elsewhere, changed := key, key, key
	other.Tool, elsewhere.Row, changed.Definition = "list", "row-2", "d2"
	wantLearned(t, s, key, store.LearnedOutput{})
	learn(t, s, key, 3, "", "")
	wantLearned(t, reader, key, store.LearnedOutput{})
	learn(t, s, key, 3, "", "one")
	learn(t, s, key, 2, "one", "two")
	learn(t, s, key, 1, "two", "")
	learn(t, s, other, 1, "", "other")
	learn(t, s, elsewhere, 1, "", "elsewhere")
	wantLearned(t, reader, key, store.LearnedOutput{Version: 1, Schema: json.RawMessage("two"), Results: 5})
	wantLearned(t, reader, changed, store.LearnedOutput{})

	learn(t, s, changed, 1, "", "three")
	wantLearned(t, reader, changed, store.LearnedOutput{Version: 2, Schema: json.RawMessage("three"), Results: 1})
	wantLearned(t, reader, key, store.LearnedOutput{})
	learn(t, s, key, 1, "", "four")
	wantLearned(t, reader, key, store.LearnedOutput{Version: 3, Schema: json.RawMessage("four"), Results: 1})

	requireNoError(t, s.ForgetLearnedOutputs(t.Context(), []string{"row-1", "row-3"}))
	wantLearned(t, reader, key, store.LearnedOutput{})
	wantLearned(t, reader, other, store.LearnedOutput{})
	wantLearned(t, reader, elsewhere, store.LearnedOutput{Version: 1, Schema: json.RawMessage("elsewhere"), Results: 1})
}

// testLearnedOutputsOneAfterTheOther has several processes add to one schema concurrently. Nothing may be lost.
func testLearnedOutputsOneAfterTheOther(t *testing.T, p OpenStore) {
	key := store.LearnedOutputKey{Row: "row-1", Server: "fs", Tool: "read", Definition: "d1"}
	const processes, times = 4, 5
	var wg sync.WaitGroup
	for range processes {
		s := p()
		wg.Go(func() {
			for range times {
				if err := s.UpdateLearnedOutput(t.Context(), key, 1, func(stored json.RawMessage) json.RawMessage {
					return append(stored, 'x')
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantLearned(t, p(), key, store.LearnedOutput{Version: 1, Schema: json.RawMessage("xxxxxxxxxxxxxxxxxxxx"),
		Results: processes * times})
}
