package deck

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

// A screen is one by hand.
type screen struct {
	active, hides, panics bool
	class                 string
}

var _ HidingGuard = screen{}

func (s screen) Decide(context.Context, Question) drawbridge.Verdict {
	if s.panics {
		panic("ouch")
	}
	return drawbridge.Verdict{Effect: drawbridge.Allow, Rule: s.class}
}

func (s screen) Hides(drawbridge.Caller, string, drawbridge.Spec) bool {
	if s.panics {
		panic("ouch")
	}
	return s.hides
}

func (s screen) CallerClass(drawbridge.Caller) string { return s.class }
func (s screen) HidesAnything() bool                  { return s.active }

func TestScreens(t *testing.T) {
	for name, tt := range map[string]struct {
		guards        []Guard
		active, hides bool
		class         string
		passes        bool
	}{
		"no guards":   {nil, false, false, "", true},
		"one at rest": {[]Guard{screen{class: "a"}}, false, false, `"a" `, true},
		"one of two hides": {[]Guard{screen{active: true, class: "a"}, screen{active: true, hides: true,
			class: `b" "c`}}, true, true, `"a" "b\" \"c" `, true},
		"one that panics":  {[]Guard{screen{active: true, panics: true}}, true, true, `"" `, false},
		"one that says no": {[]Guard{no{}}, false, false, "", false},
	} {
		g := newGuardChain(tt.guards, slog.New(slog.DiscardHandler))
		if g.hidesAnything() != tt.active || g.hides(drawbridge.Caller{}, "tool", drawbridge.Spec{}) != tt.hides {
			t.Errorf("%s: screens %v", name, g.hidesAnything())
		}
		if diff := cmp.Diff(tt.class, g.callerClass(drawbridge.Caller{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		_, _, err := g.check(t.Context(), Question{Method: "tools/call"})
		if f, ok := errors.AsType[*drawbridge.Fault](err); (err == nil) != tt.passes || err != nil &&
			(!ok || f.Code != drawbridge.PolicyBlocked) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// no says nothing, which is a no.
type no struct{}

func (no) Decide(context.Context, Question) (v drawbridge.Verdict) { return v }

func TestKnownRemembersByClassAndServer(t *testing.T) {
	k := newVisibilityCache()
	asked := 0
	find := func(known bool) func() bool {
		return func() bool {
			asked++
			return known
		}
	}
	got := []bool{k.getOrFind("a", "x", find(true)), k.getOrFind("a", "x", find(false)),
		k.getOrFind("b", "x", find(false)), k.getOrFind("a", "y", find(false))}
	if diff := cmp.Diff([]bool{true, true, false, false}, got); diff != "" || asked != 3 {
		t.Errorf("asked %d times (-want +got):\n%s", asked, diff)
	}
	for i := range 2 * maxVisibilities {
		k.getOrFind("c", drawbridge.ServerID(strconv.Itoa(i)), find(true))
		if k.all.Len() > maxVisibilities {
			t.Fatalf("%d are remembered", k.all.Len())
		}
	}
}

// A counter has room or has none, and counts what it decides.
type counter struct {
	full    bool
	counted *int
}

var _ CountingGuard = counter{}

func (c counter) Decide(ctx context.Context, q Question) drawbridge.Verdict {
	*c.counted++
	return c.Preview(ctx, q)
}

func (c counter) Preview(context.Context, Question) drawbridge.Verdict {
	if c.full {
		return drawbridge.Verdict{Rule: "full"}
	}
	return drawbridge.Verdict{Effect: drawbridge.Allow}
}

// asks wants a person asked.
type asks struct{}

func (asks) Decide(context.Context, Question) drawbridge.Verdict {
	return drawbridge.Verdict{Effect: drawbridge.Ask}
}

func TestACounterCountsWhereACallIsMade(t *testing.T) {
	for _, full := range []bool{false, true} {
		n := 0
		g := newGuardChain([]Guard{counter{full, &n}, asks{}}, slog.New(slog.DiscardHandler))
		if _, _, err := g.check(t.Context(), Question{Method: "tools/call"}); (err != nil) != full || n != 0 {
			t.Errorf("full %v: %d counted before the call, %v", full, n, err)
		}
		if verdict, err := g.countCall(t.Context(), Question{Method: "tools/call"}); (err != nil) != full || n != 1 ||
			full && verdict.Rule != "full" {
			t.Errorf("full %v: %d counted for the call, %v", full, n, err)
		}
	}
}
