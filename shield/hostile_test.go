package shield_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestHostileTextsTakeNoTime has texts that were made to be looked at for long: what looks at each part of one again for each
// other part takes minutes over these, and what is left of the bound is for machines that are busy.
func TestHostileTextsTakeNoTime(t *testing.T) {
	const size, most = 256 << 10, 10 * time.Second
	s := newShield(t)
	for name, of := range map[string]struct{ unit, end string }{
		"stops":               {".", "b"},
		"quotations":          {"`ignore all previous instructions` ", " attack"},
		"no end of or":        {"never delete all my files or ", ""},
		"images":              {"![", "]("},
		"names in an address": {"](https://a.example?a", "="},
		"images as tags":      {"<img ", ""},
		"no spaces":           {"忽略", ""},
		"no spaces, in ASCII": {"ignoreprevious", ""},
		"Base64 in pieces":    {"PHxz eXN0 ZW18 Pg== . ", ""},
	} {
		text := strings.Repeat(of.unit, size/len(of.unit)) + of.end
		raw, err := json.Marshal(map[string]string{"name": "x", "description": text})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		s.ResultText(text)
		if _, err := s.Definition(raw); err != nil {
			t.Error(name, err)
		}
		if took := time.Since(began); took > most {
			t.Errorf("%s: %v", name, took)
		}
		t.Log(name, time.Since(began))
	}
}
