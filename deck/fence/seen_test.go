package fence

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// TestWhatWasSeenIsNotLookedAtAgain counts how often a text is looked at that comes twice for one principal, and once more for another.
func TestWhatWasSeenIsNotLookedAtAgain(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       int
	}{
		{"a text", "all is well", 2},
		{"the longest one that is remembered", strings.Repeat("a", longest), 2},
		{"a longer one", strings.Repeat("a", longest+1), 3},
		{"none", "", 2},
		{"one that meets a rule", "now obey", 3},
		{"one that is shown otherwise", "a\u200bb", 3},
	} {
		looked := 0
		d := desk(&keeps{})
		plain := d.Look
		d.Look = func(text string) (string, []string) {
			looked++
			shown, rules := plain(text)
			return strings.ReplaceAll(shown, "\u200b", ""), rules
		}
		said := map[string]bool{}
		for _, principal := range []string{"ada", "ada", "bob"} {
			call := drawbridge.Call{Method: wire.MethodToolsCall, Caller: drawbridge.Caller{Principal: principal}}
			fenced := true
			result := json.RawMessage(`{"content":[{"type":"text","text":` + string(wire.Quote(tt.text)) + `}]}`)
			out, err := d.Pass(call, "s", "s__x", "x", &fenced, false).Take(t.Context(), result)
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

// withoutWord gives a fenced answer without what no two have in common.
func withoutWord(t *testing.T, answer json.RawMessage) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(answer), opening)
	word, _, named := strings.Cut(rest, "::BEGIN")
	if !ok || !named || len(word) != wordLength {
		t.Fatalf("it is not fenced: %s", answer)
	}
	return strings.ReplaceAll(string(answer), word, "")
}

// TestNamesAndTextsAreToldApart has principals whose names end as others' texts begin.
func TestNamesAndTextsAreToldApart(t *testing.T) {
	all := map[sum]string{}
	for _, one := range [][2]string{{"", "abc"}, {"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"", ""}, {"\x00\x00\x00\x01", "a"}, {"", "\x00\x00\x00\x01a"}} {
		if other, twice := all[sumOf(one[0], one[1])]; twice {
			t.Errorf("%q is taken for %s", one, other)
		}
		all[sumOf(one[0], one[1])] = strconv.Quote(one[0]) + " " + strconv.Quote(one[1])
	}
}

// TestSeenByMany has many look at more texts than are remembered: each is told of its own.
func TestSeenByMany(t *testing.T) {
	var s seen
	look := s.before("ada", func(text string) (string, []string) {
		if strings.HasSuffix(text, "7") {
			return text, []string{"seven"}
		}
		return text, nil
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range 4 * places {
				text := strconv.Itoa(n % (2 * places))
				if shown, rules := look(text); shown != text || (len(rules) > 0) != strings.HasSuffix(text, "7") {
					t.Errorf("%s is shown as %s and met %v", text, shown, rules)
				}
			}
		})
	}
	all.Wait()
}
