package workspace

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

var everything = []Capability{"*"}

func author() Actor { return Actor{Kind: AuthorActor, Principal: "ann", Capabilities: everything} }

func agentOf() Actor {
	return Actor{Kind: AgentActor, Principal: "ann", Thread: "t", Run: "r", Capabilities: []Capability{Read, Propose, Remember}}
}

func page() CreatePage {
	return CreatePage{Title: "A page", Blocks: []NewBlock{{Type: "markdown", Text: "text\n"}}}
}

func code(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// TestCallers has a row for each caller of the table: what its content becomes, and what it may not ask for.
func TestCallers(t *testing.T) {
	client := func(declared Origin, held ...Capability) Actor {
		return Actor{Kind: ClientActor, Principal: "client:x", Declared: declared, Capabilities: held}
	}
	script := func(a Actor) Actor { a.Script, a.Run = true, "r"; return a }
	withoutRun := agentOf()
	withoutRun.Run = ""
	for _, row := range []struct {
		name  string
		actor Actor
		asked Lifecycle
		want  string // origin and lifecycle, or the code of the error
	}{
		{"author", author(), "", "authored canonical"},
		{"author, candidate", author(), Candidate, "authored candidate"},
		{"author, draft", author(), Draft, "authored draft"},
		{"author, retired", author(), Retired, "invalid"},
		{"author, other", author(), "final", "invalid"},
		{"agent", agentOf(), "", "agent-produced candidate"},
		{"agent, draft", agentOf(), Draft, "agent-produced draft"},
		{"agent, canonical", agentOf(), Canonical, "forbidden"},
		{"agent without a run", withoutRun, "", "forbidden"},
		{"agent with all rights, canonical", Actor{Kind: AgentActor, Run: "r", Capabilities: everything}, Canonical, "forbidden"},
		{"script of an agent", script(agentOf()), "", "agent-produced candidate"},
		{"script of an author", script(author()), "", "authored candidate"},
		{"script of an author, canonical", script(author()), Canonical, "forbidden"},
		{"import", Actor{Kind: ImportActor, Capabilities: []Capability{Import}}, "", "imported draft"},
		{"import, canonical", Actor{Kind: ImportActor, Capabilities: everything}, Canonical, "forbidden"},
		{"import for a client", Actor{Kind: ImportActor, Declared: AgentProduced, Capabilities: []Capability{Import}}, "", "imported draft"},
		{"import for a client that observes", Actor{Kind: ImportActor, Declared: Observed, Capabilities: []Capability{Import}}, "", "observed draft"},
		{"import for a client with an unknown origin", Actor{Kind: ImportActor, Declared: "mine", Capabilities: everything}, "", "invalid"},
		{"client", client("", Propose), "", "agent-produced candidate"},
		{"client, canonical", client("", Propose), Canonical, "forbidden"},
		{"client that imports", client(Imported, Propose), "", "imported draft"},
		{"client that observes", client(Observed, Propose), "", "observed draft"},
		{"client that observes, candidate", client(Observed, Propose), Candidate, "forbidden"},
		{"client as an author", client(Authored, Propose), "", "forbidden"},
		{"client as an author with the scope", client(Authored, Propose, Author), "", "authored candidate"},
		{"client as an author, canonical", client(Authored, Propose, Author), Canonical, "authored canonical"},
		{"client with an unknown origin", client("mine", Propose), "", "invalid"},
		{"client that only reads", client("", Read), "", "forbidden"},
		{"nobody", Actor{Capabilities: everything}, "", "forbidden"},
		{"nobody at all", Actor{}, "", "forbidden"},
	} {
		w, err := NewWrite(row.actor, Proposal{Change: page(), Lifecycle: row.asked, At: noon})
		got := string(code(err))
		if err == nil {
			s := w.Stamp("1")
			got = fmt.Sprintf("%s %s", s.Origin, s.Lifecycle)
		} else if w.Change() != nil {
			t.Errorf("%s: a refused write has a change", row.name)
		}
		if got != row.want {
			t.Errorf("%s: %s (%v), want %s", row.name, got, err, row.want)
		}
	}
}

// changes has one valid value of each change.
func changes() []Change {
	return []Change{page(), SetTitle{"1", "x"}, MovePage{"1", "2"}, DeletePage{"1"}, RestorePage{"1"},
		AddBlock{Page: "1", Block: NewBlock{Type: "markdown"}}, SetBlock{Page: "1", Slot: "a"},
		MoveBlock{Page: "1", Slot: "a", After: "b"}, SetProperty{Page: "1", Name: "x", Type: TextProperty},
		SetTag{Page: "1", Tag: "x"}, Attach{Page: "1", Name: "x.png", Type: "image/png", Data: []byte{1}}, Derive{"1"},
		Promote{Revision: "1"}, Reject{"1"}, Retire{"1"}, Revalidate{"1"}, SetGrant{Principal: "bob"},
		SetMemory{Tier: WorkspaceTier, Name: "x"}, Forget{"1"},
		Summarise{[]ID{"1"}, SetMemory{Tier: WorkspaceTier, Name: "x"}}, ScrubText{[]ID{"1"}}}
}

// TestRightsOfChanges tries each change with each capability alone, for each kind of actor.
func TestRightsOfChanges(t *testing.T) {
	onlyPerson := map[string]bool{"Promote": true, "Reject": true, "Revalidate": true, "SetGrant": true, "ScrubText": true}
	needs := map[string]Capability{"MovePage": Author, "DeletePage": Author, "RestorePage": Author, "MoveBlock": Author,
		"Promote": Author, "Reject": Author, "Retire": Author, "Revalidate": Author, "SetGrant": Manage,
		"SetMemory": Remember, "Forget": Remember, "Summarise": Remember, "ScrubText": Scrub}
	for _, c := range changes() {
		name := fmt.Sprintf("%T", c)[len("workspace."):]
		need, ok := needs[name]
		if !ok {
			need = Propose
		}
		for _, kind := range []ActorKind{UnknownActor, AuthorActor, AgentActor, ClientActor, ImportActor} {
			for _, held := range Capabilities() {
				_, err := NewWrite(Actor{Kind: kind, Run: "r", Capabilities: []Capability{held}}, Proposal{Change: c, At: noon})
				want := held == need || need == Propose && (held == Author || kind == ImportActor && held == Import)
				want = want && kind != UnknownActor && (kind == AuthorActor || !onlyPerson[name])
				if kind == ImportActor && !c.rule().adds {
					want = false
				}
				if (err == nil) != want {
					t.Errorf("%s by %s with %s: %v", name, kind, held, err)
				}
			}
		}
	}
}

// TestInvariants makes random proposals of random actors. What is accepted holds the invariants.
func TestInvariants(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all := changes()
	accepted := 0
	for range 50_000 {
		a := Actor{Kind: ActorKind(random.IntN(6)), Script: random.IntN(3) == 0,
			Run: []string{"", "r"}[random.IntN(2)], Declared: []Origin{"", Authored, Imported, Observed, "x"}[random.IntN(5)]}
		for _, c := range Capabilities() {
			if random.IntN(2) == 0 {
				a.Capabilities = append(a.Capabilities, c)
			}
		}
		change := all[random.IntN(len(all))]
		asked := []Lifecycle{"", "", Draft, Candidate, Canonical, Retired}[random.IntN(6)]
		w, err := NewWrite(a, Proposal{Change: change, Lifecycle: asked, At: noon})
		if err != nil {
			continue
		}
		accepted++
		s := w.Stamp("1")
		switch {
		case len(a.Capabilities) == 0 || a.Kind == UnknownActor || a.Kind > ImportActor:
			t.Fatalf("a write without rights: %+v", a)
		case (a.Kind == AgentActor || a.Script) && s.Run == "":
			t.Fatalf("a write without a run: %+v", a)
		case s.Lifecycle == Canonical && (a.Script || a.Kind != AuthorActor && !a.May(Author) || s.Origin != Authored):
			t.Fatalf("canonical by %+v", a)
		case s.Origin == Authored && a.Kind != AuthorActor && !a.May(Author):
			t.Fatalf("authored by %+v", a)
		case change.rule().content != (s.Origin.Valid() && s.Lifecycle.Valid()):
			t.Fatalf("%T has the stamp %+v", change, s)
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d proposals were accepted", accepted)
	}
}

func TestSettle(t *testing.T) {
	stamp := func(o Origin, l Lifecycle) Stamp { return Stamp{Origin: o, Lifecycle: l} }
	for _, row := range []struct {
		old, fresh Stamp
		want       Settlement
	}{
		{stamp(Authored, Canonical), stamp(Authored, Canonical), Settlement{Current: true}},
		{stamp(Authored, Canonical), stamp(Authored, Draft), Settlement{Deviates: true}},
		{stamp(Authored, Canonical), stamp(AgentProduced, Candidate), Settlement{Deviates: true}},
		{stamp(AgentProduced, Canonical), stamp(AgentProduced, Candidate), Settlement{Deviates: true}},
		{stamp(Authored, Draft), stamp(AgentProduced, Candidate), Settlement{}},
		{stamp(Authored, Draft), stamp(Authored, Draft), Settlement{Current: true}},
		{stamp(AgentProduced, Candidate), stamp(AgentProduced, Candidate), Settlement{Current: true}},
		{stamp(AgentProduced, Candidate), stamp(Authored, Canonical), Settlement{Current: true}},
		{stamp(AgentProduced, Candidate), stamp(Observed, Draft), Settlement{}},
		{stamp(Imported, Draft), stamp(AgentProduced, Candidate), Settlement{}},
		{stamp(Imported, Draft), stamp(Observed, Draft), Settlement{}},
		{stamp(Imported, Draft), stamp(Authored, Draft), Settlement{Current: true}},
		{stamp(Observed, Draft), stamp(AgentProduced, Candidate), Settlement{Current: true}},
		{stamp(Authored, Retired), stamp(AgentProduced, Candidate), Settlement{}},
		{stamp(AgentProduced, Retired), stamp(AgentProduced, Candidate), Settlement{}},
		{stamp(AgentProduced, Retired), stamp(Authored, Draft), Settlement{Current: true}},
	} {
		if got := Settle(row.old, row.fresh); got != row.want {
			t.Errorf("%+v over %+v: %+v, want %+v", row.fresh, row.old, got, row.want)
		}
	}
}

func TestRemovable(t *testing.T) {
	script := author()
	script.Script = true
	for _, row := range []struct {
		old   Stamp
		actor Actor
		want  bool
	}{
		{Stamp{Origin: Authored, Lifecycle: Canonical}, author(), true},
		{Stamp{Origin: Authored, Lifecycle: Canonical}, script, false},
		{Stamp{Origin: AgentProduced, Lifecycle: Canonical}, agentOf(), false},
		{Stamp{Origin: AgentProduced, Lifecycle: Candidate}, agentOf(), true},
		{Stamp{Origin: Imported, Lifecycle: Draft}, agentOf(), false},
		{Stamp{Origin: AgentProduced, Lifecycle: Candidate}, Actor{}, false},
	} {
		if got := Removable(row.old, row.actor); got != row.want {
			t.Errorf("%+v by %s: %t", row.old, row.actor.Kind, got)
		}
	}
}

// TestWritesKeepTheirChange changes the slices of a proposal after NewWrite.
func TestWritesKeepTheirChange(t *testing.T) {
	held := []Capability{Read}
	w, err := NewWrite(author(), Proposal{Change: SetGrant{"bob", held}, At: noon})
	held[0] = "*"
	if got := w.Change().(SetGrant).Capabilities; err != nil || got[0] != Read {
		t.Errorf("%v, %v", got, err)
	}
}

// TestMemoryBelongsToItsActor has memory of other conversations and accounts, and grants of what the granter does not hold.
func TestMemoryBelongsToItsActor(t *testing.T) {
	manager := Actor{Kind: AuthorActor, Principal: "ann", Capabilities: []Capability{Manage}}
	for _, row := range []struct {
		actor  Actor
		change Change
		want   Code
	}{
		{agentOf(), SetMemory{Tier: ConversationTier, Key: "t", Name: "x"}, ""},
		{agentOf(), SetMemory{Tier: ConversationTier, Key: "other", Name: "x"}, Forbidden},
		{author(), SetMemory{Tier: ConversationTier, Key: "other", Name: "x"}, ""},
		{agentOf(), SetMemory{Tier: AccountTier, Key: "ann", Name: "x"}, ""},
		{agentOf(), SetMemory{Tier: AccountTier, Key: "bob", Name: "x"}, Forbidden},
		{agentOf(), SetMemory{Tier: AccountTier, Name: "x"}, Invalid},
		{author(), Summarise{[]ID{"1"}, SetMemory{Tier: ConversationTier, Key: "t", Name: "x"}}, Invalid},
		{manager, SetGrant{"bob", []Capability{Manage}}, ""},
		{manager, SetGrant{"ann", []Capability{Scrub}}, Forbidden},
	} {
		if _, err := NewWrite(row.actor, Proposal{Change: row.change, At: noon}); code(err) != row.want || row.want == "" && err != nil {
			t.Errorf("%+v by %s: %v", row.change, row.actor.Kind, err)
		}
	}
}

func TestChecks(t *testing.T) {
	long := make([]byte, MaxAttachment+1)
	for _, c := range []Change{CreatePage{}, CreatePage{Title: "a\nb"}, CreatePage{Title: "x", Slug: "A b"},
		CreatePage{Title: "x", Blocks: []NewBlock{{Type: "html"}}}, CreatePage{Title: "\xff"},
		CreatePage{Title: "x", Blocks: []NewBlock{{Type: "markdown", Slot: "a"}, {Type: "markdown", Slot: "a"}}},
		MovePage{"1", "1"}, SetBlock{Page: "1"}, MoveBlock{"1", "a", "a"},
		SetProperty{Page: "1", Name: "x", Type: "money"}, SetProperty{Page: "1", Name: "x", Type: NumberProperty, Values: []string{"ten"}},
		SetProperty{Page: "1", Name: "x", Type: DateProperty, Values: []string{"1 May"}},
		SetProperty{Page: "1", Name: "x", Type: YesNoProperty, Values: []string{"maybe"}},
		SetProperty{Page: "1", Name: "x", Type: TextProperty, Values: []string{"a", "b"}},
		Attach{Page: "1", Name: "x", Type: "text/html", Data: []byte{1}}, Attach{Page: "1", Name: "x", Type: "text/csv"},
		Attach{Page: "1", Name: "x", Type: "text/csv", Data: long}, SetGrant{Principal: "x", Capabilities: []Capability{"all"}},
		SetMemory{Tier: "other", Name: "x"}, SetMemory{Tier: WorkspaceTier, Key: "k", Name: "x"}, SetBlock{Page: "1", Slot: "a", Text: "\x00"},
		SetProperty{Page: "1", Name: "x", Type: NumberProperty, Values: []string{"NaN"}},
		SetProperty{Page: "1", Name: "x", Type: NumberProperty, Values: []string{"0x1p4"}},
		SetMemory{Tier: ConversationTier, Name: "x"}, Summarise{}, ScrubText{}} {
		if _, err := NewWrite(author(), Proposal{Change: c, At: noon}); code(err) != Invalid {
			t.Errorf("%#v: %v", c, err)
		}
	}
	if _, err := NewWrite(author(), Proposal{Change: page()}); code(err) != Invalid {
		t.Errorf("without a time: %v", err)
	}
	for _, p := range []Proposal{{Change: page(), At: time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)}, {Change: DeletePage{"1"}, At: noon, Sources: []ID{"2"}},
		{Change: page(), At: noon, References: []Reference{{Kind: "nonsense"}}},
		{Change: page(), At: noon, References: []Reference{{Kind: "file", Name: strings.Repeat("x", 3000)}}}} {
		if _, err := NewWrite(author(), p); code(err) != Invalid {
			t.Errorf("%+v: %v", p, err)
		}
	}
	w, err := NewWrite(author(), Proposal{Change: page(), At: noon, Sources: []ID{"1", "2", "1"}})
	if err != nil || !slices.Equal(w.Sources(), []ID{"1", "2"}) {
		t.Errorf("the sources are %v, %v", w.Sources(), err)
	}
}
