package deck

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// TestWhatWasSeenIsNotLookedAtAgain counts how often a text is looked at that comes twice for one principal, and once
// more for another.
func TestWhatWasSeenIsNotLookedAtAgain(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       int
	}{
		{"a text", "all is well", 2},
		{"the longest one that is remembered", strings.Repeat("a", maxSeenText), 2},
		{"a longer one", strings.Repeat("a", maxSeenText+1), 3},
		{"none", "", 2},
		{"one that meets a rule", "now obey", 3},
		{"one that is shown otherwise", "a\u200bb", 3},
	} {
		looked := 0
		d := desk(&keeps{})
		plain := d.Inspect
		d.Inspect = func(text string) (string, []string) {
			looked++
			shown, rules := plain(text)
			return strings.ReplaceAll(shown, "\u200b", ""), rules
		}
		said := map[string]bool{}
		for _, principal := range []string{"ada", "ada", "bob"} {
			call := drawbridge.Call{Method: mcp.MethodToolsCall, Caller: drawbridge.Caller{Principal: principal}}
			fenced := true
			result := json.RawMessage(`{"content":[{"type":"text","text":` + string(rawjson.Quote(tt.text)) + `}]}`)
			out, err := d.FilterFor(call, "s", "s__x", "x", ResultTreatment{Mark: &fenced}).Apply(t.Context(), result)
			if err != nil {
				t.Fatal(err)
			}
			said[withoutWord(t, out)] = true
		}
		if looked != tt.want || len(said) != 1 {
			t.Errorf("%s: looked at %d times, want %d; said in %d ways: %v", tt.name, looked, tt.want, len(said), said)
		}
	}
}

// withoutWord returns a fenced answer without what no two have in common.
func withoutWord(t *testing.T, answer json.RawMessage) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(answer), markerPrefix)
	word, _, named := strings.Cut(rest, "::BEGIN")
	if !ok || !named || len(word) != wordLength {
		t.Fatalf("it is not fenced: %s", answer)
	}
	return strings.ReplaceAll(string(answer), word, "")
}

// TestCallersDoNotSeeResultsOfOthers has each principal answered more texts than are remembered, and far more
// principals than have places: what was remembered for the first one stays.
func TestCallersDoNotSeeResultsOfOthers(t *testing.T) {
	var s seenTexts
	looked := 0
	look := func(text string) (string, []string) { looked++; return text, nil }
	s.skipSeen("ada", look)("all is well")
	for n := range 2 * maxSeenPrincipals {
		for m := range max(1, 4*hashesPerPrincipal/(n*n+1)) {
			s.skipSeen("bob"+strconv.Itoa(n), look)(strconv.Itoa(m))
		}
	}
	looked = 0
	if s.skipSeen("ada", look)("all is well"); looked != 0 {
		t.Error("what others were answered made ada's text be forgotten")
	}
	last := "bob" + strconv.Itoa(2*maxSeenPrincipals-1)
	for range 2 {
		s.skipSeen(last, look)("all is well")
	}
	if looked != 2 || len(s.all) != maxSeenPrincipals {
		t.Errorf("%d principals are remembered, and the last one's text was looked at %d times", len(s.all), looked)
	}
}

// TestSeenByMany has many look at more texts than are remembered: each is told of its own.
func TestSeenByMany(t *testing.T) {
	var s seenTexts
	look := s.skipSeen("ada", func(text string) (string, []string) {
		if strings.HasSuffix(text, "7") {
			return text, []string{"seven"}
		}
		return text, nil
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range 4 * hashesPerPrincipal {
				text := strconv.Itoa(n % (2 * hashesPerPrincipal))
				if shown, rules := look(text); shown != text || (len(rules) > 0) != strings.HasSuffix(text, "7") {
					t.Errorf("%s is shown as %s and met %v", text, shown, rules)
				}
			}
		})
	}
	all.Wait()
}
