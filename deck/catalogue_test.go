package deck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// plainCard is a card that only has a name.
type plainCard struct {
	name   drawbridge.CardName
	closed *int
}

func (c plainCard) Spec() drawbridge.Spec { return drawbridge.Spec{Name: c.name} }

func (plainCard) Run(context.Context, drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{}, nil
}

func (c plainCard) Close() error { *c.closed++; return nil }

// newTestCatalogue has a card that reads, one that writes, and an app card. built counts the builds, closed the cards
// that were closed; fail has the cause with which the app card fails.
func newTestCatalogue(t *testing.T, built, closed *int, fail func() (drawbridge.Card, error)) *Catalogue {
	t.Helper()
	row := func(id drawbridge.CardName, member ...Membership) Card {
		return Card{ID: id, Title: "T", Profiles: member, Build: func(Context) (drawbridge.Card, error) {
			*built++
			if fail != nil && id == "app-card" {
				return fail()
			}
			return plainCard{id, closed}, nil
		}}
	}
	c, err := NewCatalogue(row("read_it", MemberSurvey, MemberAll), row("write_it", MemberAll), row("app-card", MemberApp))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestProfiles(t *testing.T) {
	var built, closed int
	c := newTestCatalogue(t, &built, &closed, nil)
	for _, tt := range []struct {
		profile Profile
		want    string
	}{
		{Authoring, "[read_it]"}, {Survey, "[read_it write_it]"}, {All, "[read_it write_it app-card]"}, {NoProfile, "[]"},
	} {
		cards, err := c.CardsForDeckProfile(tt.profile)
		ids := []drawbridge.CardName{}
		for _, card := range cards {
			ids = append(ids, card.ID)
		}
		if got := fmt.Sprint(ids); got != tt.want || err != nil {
			t.Errorf("%q: %s, %v; want %s", tt.profile, got, err, tt.want)
		}
	}
	// The name of a membership is not the name of the profile that selects it.
	for member, want := range map[Membership]int{MemberSurvey: 1, MemberAll: 2, MemberApp: 1, "none": 0} {
		if got := len(c.ForProfile(member)); got != want {
			t.Errorf("%d cards have the membership %q, want %d", got, member, want)
		}
	}
	if got := c.ProfilesOf("read_it"); !slices.Equal(got, []Membership{MemberSurvey, MemberAll}) {
		t.Errorf("%v", got)
	}
	for name, want := range map[string]Profile{"": NoProfile, "none": NoProfile, "authoring": Authoring,
		"read-only": Authoring, "survey": Survey, "built-in": Survey, "all": All} {
		if got, err := ParseProfile(name); got != want || err != nil {
			t.Errorf("%q is %q, %v", name, got, err)
		}
	}
	_, err := c.CardsForDeckProfile("everything")
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Kind != drawbridge.UnknownCapability {
		t.Errorf("%v", err)
	}
}

func TestCatalogueLookups(t *testing.T) {
	var built, closed int
	c := newTestCatalogue(t, &built, &closed, nil)
	if got := fmt.Sprint(c.IDs()); got != "[read_it write_it app-card]" {
		t.Error(got)
	}
	if _, ok := c.Find("write_it"); !ok || !c.Has("write_it") || c.Has("Write_it") || c.ProfilesOf("x") != nil {
		t.Error("lookups by id")
	}
	c.Cards()[0].ID = "changed"
	if !c.Has("read_it") || c.Cards()[0].ID != "read_it" {
		t.Error("a caller changed the catalogue")
	}
	_, err := c.Build("x", Context{})
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Kind != drawbridge.UnknownCapability {
		t.Errorf("%v", err)
	}
	for name, cards := range map[string][]Card{
		"occurs twice":   {c.cards[0], c.cards[0]},
		"needs an ID":    {{Title: "T", Build: c.cards[0].Build}},
		"and a builder":  {{ID: "x", Title: "T"}},
		"a title and a ": {{ID: "x", Build: c.cards[0].Build}},
	} {
		if _, err := NewCatalogue(cards...); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProvision(t *testing.T) {
	var built, closed int
	c := newTestCatalogue(t, &built, &closed, nil)
	p, err := Provision(c, All, Context{})
	if err != nil {
		t.Fatal(err)
	}
	tools := p.Tools()
	tools[0] = nil
	delete(p.Box(), "write_it")
	if p.Tools()[0] == nil || len(p.Box()) != 3 || built != 3 {
		t.Errorf("a caller changed the deck, or cards were built again: %d", built)
	}
	if err := p.Close(); err != nil || closed != 3 {
		t.Errorf("%d cards were closed, %v", closed, err)
	}
	cause := errors.New("no disk")
	for name, fail := range map[string]func() (drawbridge.Card, error){
		"no disk":     func() (drawbridge.Card, error) { return nil, cause },
		"nothing":     func() (drawbridge.Card, error) { return nil, nil },
		"panic: ouch": func() (drawbridge.Card, error) { panic("ouch") },
	} {
		closed = 0
		_, err := Provision(newTestCatalogue(t, &built, &closed, fail), All, Context{})
		f, ok := errors.AsType[*drawbridge.Fault](err)
		if !ok || f.Kind != drawbridge.BuildFailed || !strings.Contains(err.Error(), "app-card") ||
			!strings.Contains(err.Error(), name) || closed != 2 {
			t.Errorf("%s: %v, %d closed", name, err, closed)
		}
	}
}

func TestSelectTools(t *testing.T) {
	var built, closed int
	p, err := Provision(newTestCatalogue(t, &built, &closed, nil), All, Context{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		names         []string
		want, unknown string
	}{
		{nil, "read_it write_it app-card", ""},
		{[]string{"ReadIt", "APP_CARD"}, "read_it app-card", ""},
		{[]string{"write-it", "gone"}, "write_it", "gone"},
	} {
		tools, unknown := SelectTools(p.Tools(), tt.names)
		var names []string
		for _, tool := range tools {
			names = append(names, string(tool.Spec().Name))
		}
		if strings.Join(names, " ") != tt.want || strings.Join(unknown, " ") != tt.unknown {
			t.Errorf("%v: %v, unknown %v", tt.names, names, unknown)
		}
	}
}

func TestHandle(t *testing.T) {
	c := Context{Handles: map[string]any{"n": 7, "nothing": nil}}
	if n, err := Handle[int](c, "n"); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, key := range []string{"absent", "nothing"} {
		if n, err := Handle[int](c, key); n != 0 || err != nil {
			t.Errorf("%s: %d, %v", key, n, err)
		}
	}
	_, err := Handle[fmt.Stringer](c, "n")
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Kind != drawbridge.Backend ||
		!strings.Contains(err.Error(), `handle "n": it is of type int, and must be of type fmt.Stringer`) {
		t.Errorf("%v", err)
	}
}

func TestReadTrail(t *testing.T) {
	trail := NewReadTrail()
	trail.Add("a", Source{Kind: "file", Name: "x"})
	trail.Add("a", Source{Kind: "file", Name: "x"})
	trail.Add("a", Source{Kind: "result", Name: "x", Server: "s"})
	if got, dropped := trail.Sources("a"); len(got) != 2 || dropped != 0 {
		t.Errorf("%v, %d", got, dropped)
	}
	for i := range maxTrailSources {
		trail.Add("b", Source{Name: fmt.Sprint(i)})
	}
	trail.Add("b", Source{Name: "one more"})
	if got, dropped := trail.Sources("b"); len(got) != maxTrailSources || dropped != 1 {
		t.Errorf("%d, %d", len(got), dropped)
	}
	for i := range maxTrailRuns {
		trail.Add(fmt.Sprint(i), Source{Name: "x"})
	}
	if got, _ := trail.Sources("a"); got != nil {
		t.Errorf("the oldest run is kept: %v", got)
	}
	var none *ReadTrail
	none.Add("a", Source{})
	if got, _ := none.Sources("a"); got != nil {
		t.Error(got)
	}
}

func TestRunOf(t *testing.T) {
	one := drawbridge.Caller{Principal: "ada", Session: "s", Thread: "t", Run: "r", Dir: "/d",
		Client: []byte(`{"name":"c"}`)}
	seen := map[string]bool{RunOf(one): true}
	for _, change := range []func(*drawbridge.Caller){
		func(c *drawbridge.Caller) { c.Run = "r2" },
		func(c *drawbridge.Caller) { c.Run = "" },
		func(c *drawbridge.Caller) { c.Session = "" },
		func(c *drawbridge.Caller) { c.Dir = "/e" },
		func(c *drawbridge.Caller) { c.Client = nil },
		func(c *drawbridge.Caller) { c.Principal = "bob" },
	} {
		change(&one)
		if run := RunOf(one); seen[run] {
			t.Errorf("two callers have the run %q", run)
		} else {
			seen[run] = true
		}
	}
}
