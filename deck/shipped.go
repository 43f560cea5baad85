package deck

import (
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
)

// shippedItem returns the item of a shipped card. inside reports that it is one of Options.Tools.
func shippedItem(c drawbridge.Card, inside bool) *item {
	spec := c.Spec()
	return &item{
		kind: tools.word, spec: spec, offer: offeredItem{Name: string(spec.Name), Raw: spec.Definition},
		names: []drawbridge.CardName{spec.Name, naming.QualifiedName(drawbridge.OwnServer, string(spec.Name))},
		card:  c, inside: inside,
	}
}

func indexOfCard(all []*item, name drawbridge.CardName) int {
	return slices.IndexFunc(all, func(it *item) bool { return it.spec.Name == name })
}

func duplicateCardFault(name drawbridge.CardName) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BuildFailed, Code: drawbridge.InvalidInput,
		Step: "make the deck", Err: fmt.Errorf("two shipped cards are named %q", name),
	}
}

// OpenBoundary adds the cards of a workspace, and templates of its resources, to a deck without one. Calls of its cards
// write through b, and the listeners are notified of the changed lists. A card replaces the shipped card of its name if
// that is one of replaced. Another card of its name is an error, and nothing changes.
func (d *Deck) OpenBoundary(b Boundary, cards, templates []drawbridge.Card, replaced ...drawbridge.CardName) error {
	if err := d.addWorkspace(b, cards, templates, replaced); err != nil {
		return err
	}
	d.Refresh()
	return nil
}

func (d *Deck) addWorkspace(b Boundary, cards, templates []drawbridge.Card, replaced []drawbridge.CardName) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	shipped := slices.Clone(d.shipped)
	for _, c := range cards {
		it := shippedItem(c, false)
		at := indexOfCard(shipped, it.spec.Name)
		switch {
		case at < 0:
			end := slices.IndexFunc(shipped, func(other *item) bool { return other.inside || other.card == nil })
			if end < 0 {
				end = len(shipped)
			}
			shipped = slices.Insert(shipped, end, it)
		case slices.Contains(replaced, it.spec.Name):
			shipped[at] = it
		default:
			return duplicateCardFault(it.spec.Name)
		}
	}
	for _, c := range templates {
		it, err := ownTemplate(c)
		if err != nil {
			return err
		}
		shipped = append(shipped, it)
	}
	d.shipped = shipped
	d.boundary.Store(&b)
	return nil
}
