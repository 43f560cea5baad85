package upstream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

func TestChanged(t *testing.T) {
	l := func(instructions string, tools ...string) *drawbridge.Listing {
		out := &drawbridge.Listing{Instructions: instructions}
		for _, text := range tools {
			out.Tools = append(out.Tools, json.RawMessage(text))
		}
		return out
	}
	prompts := l("")
	prompts.Prompts = []json.RawMessage{json.RawMessage(`{"name":"a"}`)}
	for _, tt := range []struct {
		name          string
		before, after *drawbridge.Listing
		want          int
	}{
		{"nothing", l("i", `{"name":"a"}`, `{"name":"b"}`), l("i", `{"name":"b"}`, `{"name":"a"}`), 0},
		{"one is new", l("", `{"name":"a"}`), l("", `{"name":"a"}`, `{"name":"bcd"}`), len(`{"name":"bcd"}`)},
		{"one is gone", l("", `{"name":"a"}`, `{"name":"bcd"}`), l("", `{"name":"a"}`), len(`{"name":"bcd"}`)},
		{"one is another", l("", `{"name":"a"}`), l("", `{"name":"a","x":1}`), len(`{"name":"a"}`) +
			len(`{"name":"a","x":1}`)},
		{"one is there twice", l("", `{"name":"a"}`), l("", `{"name":"a"}`, `{"name":"a"}`), 0},
		{"it is of another kind", l("", `{"name":"a"}`), prompts, 2 * len(`{"name":"a"}`)},
		{"instructions", l("abc"), l("de"), 5},
	} {
		if got := changedBytes(tt.before, tt.after); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", tt.name, got, tt.want)
		}
	}
}

// TestBudget has lists of 10,000 tools come and go.
func TestBudget(t *testing.T) {
	var b relistBudget
	now := time.Unix(1e9, 0)
	var last *drawbridge.Listing
	change := func() time.Duration {
		next := &drawbridge.Listing{}
		for i := range maxListItems {
			next.Tools = append(next.Tools, json.RawMessage(fmt.Sprintf(`{"name":"%d %d","description":%q}`, i,
				now.Unix(), strings.Repeat("x", 400))))
		}
		b.recordChange(last, next, now)
		last = next
		return b.waitTime(now)
	}
	if wait := change(); wait > 0 {
		t.Errorf("the first list makes the next one wait for %v", wait)
	}
	for wait := time.Duration(0); wait == 0; now = now.Add(5 * time.Second) {
		wait = change()
	}
	wait := b.waitTime(now)
	if wait < 10*time.Minute || wait > 3*time.Hour {
		t.Errorf("the next one is in %v", wait)
	}
	now = now.Add(wait)
	if again := b.waitTime(now); again > time.Second {
		t.Errorf("that time is over, and it is another %v", again)
	}
	now = now.Add(-time.Hour) // a clock that is set back
	if again := b.waitTime(now); again > time.Second {
		t.Errorf("an hour earlier it is %v", again)
	}
}

// TestALargeListOfWhichLittleChanges has one word change in a list that is as large as any, and its order: all of it
// is looked at and saved each time.
func TestALargeListOfWhichLittleChanges(t *testing.T) {
	large := json.RawMessage(strings.Repeat("x", 16<<20))
	l := func(tools ...json.RawMessage) *drawbridge.Listing { return &drawbridge.Listing{Tools: tools} }
	a, b := json.RawMessage(`"a"`), json.RawMessage(`"b"`)
	for name, tt := range map[string]struct{ before, after *drawbridge.Listing }{
		"a word": {l(a, large), l(b, large)}, "its order": {l(a, large), l(large, a)},
	} {
		var budget relistBudget
		now, looks := time.Unix(1e9, 0), 0
		for end := now.Add(time.Hour); now.Before(end); looks++ {
			budget.recordChange(tt.before, tt.after, now)
			now = now.Add(max(5*time.Second, budget.waitTime(now)))
		}
		if looks > 90 {
			t.Errorf("%s: it was looked at %d times in an hour", name, looks)
		}
		if budget.recordChange(tt.after, tt.after, now); budget.waitTime(now.Add(time.Hour)) > 0 {
			t.Errorf("%s: a list that stays costs something", name)
		}
	}
}
