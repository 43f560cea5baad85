package deck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
)

// A Card is an entry of a [Catalogue]. It describes a built-in tool, and has the function that creates the tool.
type Card struct {
	// ID is the name under which the tool is listed and called.
	ID drawbridge.CardName
	// Title and Summary describe the tool to people, in one line each.
	Title, Summary string
	// Profiles are the groups to which the card belongs.
	Profiles []Membership
	// Build creates the tool for a working context, and has no other effect.
	Build func(Context) (drawbridge.Card, error)
}

// A Membership is the name of a group of cards. A [Profile] selects one or more groups. The names of groups and
// profiles are independent: the profile Survey does not select the group MemberSurvey, but the group MemberAll.
type Membership string

// The groups of cards.
const (
	// MemberSurvey is the group of the built-in cards that only read.
	MemberSurvey Membership = "survey"
	// MemberAll is the group of all built-in cards.
	MemberAll Membership = "all"
	// MemberApp is the group of the cards that only the profile All selects, such as the tools of addons.
	MemberApp Membership = "app"
)

// A Profile is a named selection of groups of cards.
type Profile string

// The profiles. The names "authoring" and "survey" are taken from the system on which Drawbridge is modelled. They do
// not describe what the profiles select, but their aliases do.
const (
	// NoProfile selects no card.
	NoProfile Profile = ""
	// Authoring selects the built-in cards that change nothing. Its alias is "read-only".
	Authoring Profile = "authoring"
	// Survey selects every built-in card. Its alias is "built-in".
	Survey Profile = "survey"
	// All selects the built-in cards and the cards of the group MemberApp.
	All Profile = "all"
)

// profileTable lists the groups that each profile selects.
var profileTable = []struct {
	profile Profile
	alias   string
	selects []Membership
}{
	{Authoring, "read-only", []Membership{MemberSurvey}},
	{Survey, "built-in", []Membership{MemberAll}},
	{All, "", []Membership{MemberAll, MemberApp}},
}

// ParseProfile returns the profile with this name or alias; "" and "none" mean NoProfile. For an unknown name it
// returns an UnknownCapability fault that lists the valid names.
func ParseProfile(name string) (Profile, error) {
	if name == "" || name == "none" {
		return NoProfile, nil
	}
	names := []string{"none"}
	for _, row := range profileTable {
		if string(row.profile) == name || row.alias == name {
			return row.profile, nil
		}
		names = append(names, string(row.profile))
		if row.alias != "" {
			names = append(names, row.alias)
		}
	}
	return NoProfile, &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.InvalidInput,
		Step: fmt.Sprintf("profile %q", name), Err: errors.New("it must be " + strings.Join(names, ", ")),
	}
}

// Selects reports whether the profile selects a card that belongs to these groups. One common group is sufficient.
func (p Profile) Selects(member []Membership) bool {
	for _, row := range profileTable {
		if row.profile == p {
			return slices.ContainsFunc(member, func(m Membership) bool { return slices.Contains(row.selects, m) })
		}
	}
	return false
}

// A Catalogue is an ordered, immutable list of descriptions of built-in tools.
type Catalogue struct {
	cards []Card
	index map[drawbridge.CardName]int
}

// NewCatalogue returns a catalogue of cards, in this order. It returns an error if a card has no ID, title or builder,
// or if an ID occurs twice.
func NewCatalogue(cards ...Card) (*Catalogue, error) {
	c := &Catalogue{cards: slices.Clone(cards), index: make(map[drawbridge.CardName]int, len(cards))}
	for i, card := range cards {
		if card.ID == "" || card.Title == "" || card.Build == nil {
			return nil, fmt.Errorf("card %d (%q): it needs an ID, a title and a builder", i+1, card.ID)
		}
		if _, taken := c.index[card.ID]; taken {
			return nil, fmt.Errorf("card %q occurs twice", card.ID)
		}
		c.index[card.ID] = i
	}
	return c, nil
}

// IDs returns the IDs of all cards, in order.
func (c *Catalogue) IDs() []drawbridge.CardName {
	ids := make([]drawbridge.CardName, 0, len(c.cards))
	for _, card := range c.cards {
		ids = append(ids, card.ID)
	}
	return ids
}

// Cards returns a copy of the list of cards.
func (c *Catalogue) Cards() []Card { return slices.Clone(c.cards) }

// Has reports whether a card has the ID.
func (c *Catalogue) Has(id drawbridge.CardName) bool { _, ok := c.index[id]; return ok }

// Find returns the card with this ID, and whether it exists.
func (c *Catalogue) Find(id drawbridge.CardName) (Card, bool) {
	i, ok := c.index[id]
	if !ok {
		return Card{}, false
	}
	return c.cards[i], true
}

// ForProfile returns the cards that belong to the group m, in catalogue order. For the cards of a profile, see
// [Catalogue.CardsForDeckProfile].
func (c *Catalogue) ForProfile(m Membership) []Card {
	return slices.DeleteFunc(c.Cards(), func(card Card) bool { return !slices.Contains(card.Profiles, m) })
}

// ProfilesOf returns the groups to which a card belongs; nil if the card does not exist.
func (c *Catalogue) ProfilesOf(id drawbridge.CardName) []Membership {
	card, _ := c.Find(id)
	return slices.Clone(card.Profiles)
}

// CardsForDeckProfile returns the cards that a profile selects, in catalogue order. For an unknown profile it returns
// an UnknownCapability fault.
func (c *Catalogue) CardsForDeckProfile(p Profile) ([]Card, error) {
	if _, err := ParseProfile(string(p)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(c.Cards(), func(card Card) bool { return !p.Selects(card.Profiles) }), nil
}

// Build creates the tool of the card with this ID. It returns an UnknownCapability fault for an unknown ID. If the tool
// cannot be created, it returns a BuildFailed fault that names the card.
func (c *Catalogue) Build(id drawbridge.CardName, ctx Context) (drawbridge.Card, error) {
	card, ok := c.Find(id)
	if !ok {
		return nil, &drawbridge.Fault{
			Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound, Step: fmt.Sprintf("build card %q", id),
			Err: errors.New("the catalogue has no such card"),
		}
	}
	return buildCard(card, ctx)
}

// buildCard creates the tool of a card. It returns a BuildFailed fault if the card's Build function fails, panics or
// returns nil.
func buildCard(card Card, ctx Context) (built drawbridge.Card, err error) {
	fail := func(cause error) error {
		f := &drawbridge.Fault{
			Kind: drawbridge.BuildFailed, Code: drawbridge.ServerError, Step: fmt.Sprintf("build card %q", card.ID),
			Err: cause,
		}
		if inner, ok := errors.AsType[*drawbridge.Fault](cause); ok {
			f.Code = inner.Code
		}
		return f
	}
	defer func() {
		if r := recover(); r != nil {
			built, err = nil, fail(fmt.Errorf("panic: %v", r))
		}
	}()
	if built, err = card.Build(ctx); err != nil {
		return nil, fail(err)
	}
	if built == nil {
		return nil, fail(errors.New("the builder returned nothing"))
	}
	return built, nil
}

// SelectTools returns the tools with the given names, in the order of the slice tools, and the names that match no
// tool. A comparison of names ignores case and the characters "_" and "-", so "TodoRead" selects "todo_read". If names
// is empty, SelectTools returns all tools.
func SelectTools(tools []drawbridge.Card, names []string) (selected []drawbridge.Card, unknown []string) {
	if len(names) == 0 {
		return slices.Clone(tools), nil
	}
	wanted := make(map[string]bool, len(names)) // the value reports whether a tool was found
	for _, name := range names {
		wanted[naming.Canonical(name)] = false
	}
	for _, tool := range tools {
		name := naming.Canonical(string(tool.Spec().Name))
		if _, ok := wanted[name]; ok {
			wanted[name] = true
			selected = append(selected, tool)
		}
	}
	for _, name := range names {
		if !wanted[naming.Canonical(name)] {
			unknown = append(unknown, name)
		}
	}
	return selected, unknown
}
