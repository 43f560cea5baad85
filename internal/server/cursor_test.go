package server

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// FuzzCursor reads cursors: what is read is a place in the list.
func FuzzCursor(f *testing.F) {
	items := []json.RawMessage{[]byte(`{"name":"a"}`), []byte(`{"name":"b"}`), []byte(`{"name":"c"}`)}
	f.Add(pageCursor(items, 1))
	f.Add("")
	f.Add("____________________")
	f.Fuzz(func(t *testing.T, cursor string) {
		start, err := resolveCursor(items, rawjson.Quote(cursor))
		if err == nil && (start < 1 || start > len(items)) {
			t.Errorf("Resume(%q) = %d", cursor, start)
		}
	})
}
