package deck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
)

// A Card is a row of a [Catalogue]: it describes a built-in tool, and builds it.
type Card struct {
	// ID is the name that the tool is listed and called by.
	ID drawbridge.CardName
	// Title and Summary are for people: one line each.
	Title, Summary string
	// Profiles are the groups that the card belongs to.
	Profiles []Membership
	// Build returns the tool for a working context. It changes nothing outside the tool.
	Build func(Context) (drawbridge.Card, error)
}

// A Membership names a group of cards. A [Profile] selects groups. A group and a profile with one name are not the same:
// the profile Survey selects the group MemberAll.
type Membership string

// The memberships.
const (
	// MemberSurvey is the group of the built-in cards that only read.
	MemberSurvey Membership = "survey"
	// MemberAll is the group of all built-in cards.
	MemberAll Membership = "all"
	// MemberApp is the group of the app cards.
	MemberApp Membership = "app"
)

// A Profile is a named selection of cards.
type Profile string

// The profiles. The names are those of the system that Drawbridge follows: there, too, "authoring" selects the cards
// that only read, and "survey" selects all built-in cards.
const (
	// NoProfile selects no card.
	NoProfile Profile = ""
	// Authoring selects the built-in cards that only read. Its plain alias is "read-only".
	Authoring Profile = "authoring"
	// Survey selects every built-in card. Its plain alias is "built-in".
	Survey Profile = "survey"
	// All selects the built-in cards and the app cards.
	All Profile = "all"
)

// profileTable has the groups that each profile selects.
var profileTable = []struct {
	profile Profile
	alias   string
	selects []Membership
}{
	{Authoring, "read-only", []Membership{MemberSurvey}},
	{Survey, "built-in", []Membership{MemberAll}},
	{All, "", []Membership{MemberAll, MemberApp}},
}

// ParseProfile returns the profile with a name or an alias; "" and "none" are NoProfile. The error is an
// UnknownCapability fault that lists the names.
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

// Selects reports whether the profile selects cards with these memberships.
func (p Profile) Selects(member []Membership) bool {
	for _, row := range profileTable {
		if row.profile == p {
			return slices.ContainsFunc(member, func(m Membership) bool { return slices.Contains(row.selects, m) })
		}
	}
	return false
}

// A Catalogue is an ordered list of cards. Everything that is known of the built-in tools is derived from one. It is
// immutable.
type Catalogue struct {
	cards []Card
	index map[drawbridge.CardName]int
}

// NewCatalogue returns a catalogue of cards, in this order. The error names a card without an ID, a title or a builder,
// and an ID that occurs twice.
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

// Cards returns a copy of the list.
func (c *Catalogue) Cards() []Card { return slices.Clone(c.cards) }

// Has reports whether a card has the ID.
func (c *Catalogue) Has(id drawbridge.CardName) bool { _, ok := c.index[id]; return ok }

// Find returns the card with an ID.
func (c *Catalogue) Find(id drawbridge.CardName) (Card, bool) {
	i, ok := c.index[id]
	if !ok {
		return Card{}, false
	}
	return c.cards[i], true
}

// ForProfile returns the cards of a group, in order.
func (c *Catalogue) ForProfile(m Membership) []Card {
	return slices.DeleteFunc(c.Cards(), func(card Card) bool { return !slices.Contains(card.Profiles, m) })
}

// ProfilesOf returns the groups of a card; nil for an unknown one.
func (c *Catalogue) ProfilesOf(id drawbridge.CardName) []Membership {
	card, _ := c.Find(id)
	return slices.Clone(card.Profiles)
}

// CardsForDeckProfile returns the cards that a profile selects, in order. The error is an UnknownCapability fault for a
// profile that does not exist.
func (c *Catalogue) CardsForDeckProfile(p Profile) ([]Card, error) {
	if _, err := ParseProfile(string(p)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(c.Cards(), func(card Card) bool { return !p.Selects(card.Profiles) }), nil
}

// Build builds the card with an ID. The error is an UnknownCapability fault for an unknown ID, and a BuildFailed fault
// that names the card if it cannot be built.
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

// buildCard builds a card. A builder that panics or returns nil has failed.
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

// SelectTools returns the tools that a list of names selects, in their own order, with the names that select none. Case
// and the characters "_" and "-" are ignored, so "TodoRead" selects "todo_read". No names select all tools.
func SelectTools(tools []drawbridge.Card, names []string) (selected []drawbridge.Card, unknown []string) {
	if len(names) == 0 {
		return slices.Clone(tools), nil
	}
	wanted := make(map[string]bool, len(names)) // whether a tool was found
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
