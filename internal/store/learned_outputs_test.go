package store_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// TestLearnedOutputsAreBounded fills the table. A new row removes the one that was not changed for the longest time.
func TestLearnedOutputsAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		const limit = 4096
		raw(t, location)(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d)
			INSERT INTO learned_outputs (row, tool, server, definition, version, schema, results, at)
			SELECT 'row', CAST(i AS TEXT), 's', 'd', 1, $1, 1, i FROM n`, limit), []byte(`{}`))
		key := store.LearnedOutputKey{Row: "row", Server: "s", Tool: "1", Definition: "d"}
		learn := func(tool string) {
			t.Helper()
			key := key
			key.Tool = tool
			err := db.UpdateLearnedOutput(t.Context(), key, 1, func(json.RawMessage) json.RawMessage {
				return json.RawMessage(`{"type":"string"}`)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		learn("1") // it is the last change now
		learn("new")
		for tool, want := range map[string]int{"1": 2, "2": 0, "3": 1, "new": 1} {
			key.Tool = tool
			if got, err := db.LearnedOutput(t.Context(), key); err != nil || got.Results != want {
				t.Errorf("%s: %+v, %v; want %d results", tool, got, err, want)
			}
		}
	})
}
