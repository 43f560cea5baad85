package vetting

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/deck"
)

// TestWhatASanitiserKnowsIsBounded shows it more rows, and more and larger skills, than it has room for.
func TestWhatASanitiserKnowsIsBounded(t *testing.T) {
	s := NewSanitiser()
	for i := range 2*maxCachedRows + 10 {
		m := deck.Server{ID: "s", ConfigHash: fmt.Sprint("row-", i)}
		s.Restore(m.ConfigHash, []byte(`{}`))
		s.IsStale(m)
		if s.Snapshot(m.ConfigHash) == nil {
			t.Fatalf("the record of row %d is not known", i)
		}
	}
	if s.results.Len() > maxCachedRows || s.snapshots.Len() > maxCachedRows {
		t.Errorf("%d books and %d records are known", s.results.Len(), s.snapshots.Len())
	}
	text := strings.Repeat("A skill that is long and says the same again. ", 24_000)
	for i := range 40 {
		entry := fmt.Appendf(nil, `{"uri":"skill://%d","name":"x","note":"%s"}`, i, text)
		if _, err := s.ApplyToSkill(t.Context(), deck.Server{ID: "s"}, entry); err != nil {
			t.Fatal(err)
		}
	}
	bytes := 0
	for _, shown := range s.skills.Values() {
		bytes += len(shown)
	}
	if bytes != s.skillBytes || bytes > maxSkillBytes || bytes == 0 {
		t.Errorf("%d bytes of skills are known, and %d counted", bytes, s.skillBytes)
	}
	for i := range maxSkills + 10 {
		entry, _ := json.Marshal(map[string]string{"uri": fmt.Sprint("skill://", i), "name": "x"})
		if _, err := s.ApplyToSkill(t.Context(), deck.Server{ID: "s"}, entry); err != nil {
			t.Fatal(err)
		}
	}
	if s.skills.Len() > maxSkills {
		t.Errorf("%d skills are known", s.skills.Len())
	}
}
