package storetest

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

func testVetted(t *testing.T, p OpenStore) {
	s := p()
	requireNoError(t, s.SaveListing(t.Context(), drawbridge.Listing{Server: "fs", ConfigHash: "row-1"}))
	requireNoError(t, s.RecordAttempt(t.Context(), "row-2", "db"))
	requireNoError(t, s.SaveVetted(t.Context(), map[string][]byte{"row-1": []byte("one"), "row-2": {0, 0xFF},
		"row-3": []byte("nobody's")}))
	requireNoError(t, s.SaveVetted(t.Context(), nil))
	requireNoError(t, s.SaveListing(t.Context(), drawbridge.Listing{Server: "fs", ConfigHash: "row-1"}))
	got := mounts(t, p())
	if len(got) != 2 || string(got["row-1"].Vetted) != "one" || string(got["row-2"].Vetted) != "\x00\xFF" {
		t.Errorf("kept %v", got)
	}
}

// testFirstTools tests that several processes that see a row for the first time concurrently get the same tools.
func testFirstTools(t *testing.T, p OpenStore) {
	one := []json.RawMessage{json.RawMessage(`{ "name":"one" }`)}
	var wg sync.WaitGroup
	got := make([][]json.RawMessage, 4)
	for i := range got {
		s, tools := p(), append(one[:1:1], json.RawMessage(`{"name":"`+string(rune('a'+i))+`"}`))
		wg.Go(func() {
			var err error
			if got[i], err = s.FirstTools(t.Context(), "row-1", "fs", tools); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, tools := range got {
		if diff := cmp.Diff(got[0], tools); diff != "" || len(tools) != 2 {
			t.Fatalf("%s %s", tools, diff)
		}
	}
	s := p()
	if _, err := s.FirstTools(t.Context(), "row-2", "db", nil); err != nil {
		t.Fatal(err)
	}
	if found, err := s.ForgetFirstTools(t.Context(), "fs"); err != nil || !found {
		t.Errorf("forgotten: %v, %v", found, err)
	}
	if found, err := s.ForgetFirstTools(t.Context(), "fs"); err != nil || found {
		t.Errorf("forgotten again: %v, %v", found, err)
	}
	again, err := s.FirstTools(t.Context(), "row-1", "fs", one)
	requireNoError(t, err)
	if diff := cmp.Diff(one, again); diff != "" {
		t.Error(diff)
	}
	if none, err := s.FirstTools(t.Context(), "row-2", "db", one); err != nil || len(none) != 0 {
		t.Errorf("a row that had no tools has %s, %v", none, err)
	}
}
