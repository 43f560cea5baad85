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
	for i := range 2*mostRows + 10 {
		m := deck.Member{ID: "s", Row: fmt.Sprint("row-", i)}
		s.Remember(m.Row, []byte(`{}`))
		s.Stale(m)
		if s.Record(m.Row) == nil {
			t.Fatalf("the record of row %d is not known", i)
		}
	}
	if len(s.books) > mostRows || len(s.records) > mostRows {
		t.Errorf("%d books and %d records are known", len(s.books), len(s.records))
	}
	text := strings.Repeat("A skill that is long and says the same again. ", 24_000)
	for i := range 40 {
		entry := fmt.Appendf(nil, `{"uri":"skill://%d","name":"x","note":"%s"}`, i, text)
		if _, err := s.LookAtSkill(t.Context(), deck.Member{ID: "s"}, entry); err != nil {
			t.Fatal(err)
		}
	}
	bytes := 0
	for _, shown := range s.skills {
		bytes += len(shown)
	}
	if bytes != s.weight || bytes > maxSkillBytes || bytes == 0 {
		t.Errorf("%d bytes of skills are known, and %d counted", bytes, s.weight)
	}
	for i := range maxSkills + 10 {
		entry, _ := json.Marshal(map[string]string{"uri": fmt.Sprint("skill://", i), "name": "x"})
		if _, err := s.LookAtSkill(t.Context(), deck.Member{ID: "s"}, entry); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.skills) > maxSkills {
		t.Errorf("%d skills are known", len(s.skills))
	}
}
