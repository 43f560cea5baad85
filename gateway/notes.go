package gateway

import (
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

const (
	// maxSimilarNotes is how many notes that differ only in the name are shown one by one.
	maxSimilarNotes = 5
	// maxNoteNameLength bounds how many characters of a name that a server chose are repeated in a note.
	maxNoteNameLength = 100
)

// A noteGroup holds the notes of one kind, and a function that returns one note in place of many.
type noteGroup struct {
	notes     []string
	summarise func(count int) string
}

// noteGroups are groups in the order of their first notes. The zero value is empty.
type noteGroups struct {
	inOrder []*noteGroup
	byKey   map[string]*noteGroup
}

// add adds a note to the group with a key. summarise is that of the group.
func (g *noteGroups) add(key, note string, summarise func(count int) string) {
	if g.byKey == nil {
		g.byKey = map[string]*noteGroup{}
	}
	if g.byKey[key] == nil {
		g.byKey[key] = &noteGroup{summarise: summarise}
		g.inOrder = append(g.inOrder, g.byKey[key])
	}
	g.byKey[key].notes = append(g.byKey[key].notes, note)
}

// texts returns the notes, and one text in place of a large group.
func (g *noteGroups) texts() (out []string) {
	for _, group := range g.inOrder {
		if n := len(group.notes); n > maxSimilarNotes {
			out = append(out, group.summarise(n))
			continue
		}
		out = append(out, group.notes...)
	}
	return out
}

// memberNotes describes for people which items of a server are not on the deck, or not under their own name.
func memberNotes(m deck.ServerSummary) []string { return append(clashNotes(m), itemNotes(m)...) }

// clashNotes describes the items whose names another server has. They depend on the style of names.
func clashNotes(m deck.ServerSummary) []string {
	var groups noteGroups
	for _, c := range m.Clashes {
		rest, allRest := "; listed as "+c.Listed, ""
		if c.Listed == "" {
			rest, allRest = "; not listed", "; not listed"
		}
		winner := nameHolder(c.Winner)
		groups.add("taken "+c.Kind+" "+winner+allRest, fmt.Sprintf("%s: the name is taken by %s%s",
			describeItem(c.Kind, c.Name), winner, rest),
			func(n int) string {
				return fmt.Sprintf("%d %ss: their names are taken by %s%s", n, c.Kind, winner, allRest)
			})
	}
	return groups.texts()
}

// itemNotes describes the other items that are left out, and those that were changed.
func itemNotes(m deck.ServerSummary) []string {
	// told holds the name clashes that left an item out: their notes say more than the reason does.
	told := map[[2]string]bool{}
	for _, c := range m.Clashes {
		told[[2]string{c.Kind, c.Tool}] = c.Listed == "" || told[[2]string{c.Kind, c.Tool}]
	}
	var groups noteGroups
	for _, l := range m.Omitted {
		if told[[2]string{l.Kind, l.Name}] {
			continue
		}
		groups.add("out "+l.Kind+" "+l.Reason, fmt.Sprintf("%s: left out, because %s", describeItem(l.Kind, l.Name), l.Reason),
			func(n int) string { return fmt.Sprintf("%d %ss: left out, each because %s", n, l.Kind, l.Reason) })
	}
	for _, n := range m.Notes {
		done := describeChange(n)
		groups.add("did "+n.Kind+" "+n.Action, fmt.Sprintf("%s: %s, because %s", describeItem(n.Kind, n.Name), done, n.Why),
			func(count int) string {
				return fmt.Sprintf("%d %ss: %s; see drawbridge shield scan --server %s", count,
					n.Kind, done, m.Server)
			})
	}
	return groups.texts()
}

// CardNotes describes for people how the definition of a server's card was changed.
func (g *Gateway) CardNotes(card drawbridge.Spec) (all []string) {
	for _, m := range g.deck.ServerSummaries() {
		for _, n := range m.Notes {
			if m.Server == card.Server && n.Kind == "tool" && n.Name == card.Tool {
				all = append(all, fmt.Sprintf("shield: %s, because %s", describeChange(n), n.Why))
			}
		}
	}
	return all
}

// describeChange describes for people how an item of a server was changed.
func describeChange(n deck.VettingNote) string {
	switch n.Action {
	case "blanked":
		return "a text was blanked"
	case "renamed":
		return "a name was replaced"
	case "stripped":
		return "hidden characters were taken out"
	case "cut":
		return "a long text was cut"
	case "kept":
		return "the first definition is kept"
	}
	return n.Action
}

func nameHolder(id drawbridge.ServerID) string {
	if id == "" {
		return "Drawbridge itself"
	}
	return "server " + string(id)
}

// describeItem returns the kind and the name of an item that a server lists, fit for a terminal.
func describeItem(kind, name string) string {
	if name == "" {
		return "a " + kind
	}
	return kind + " " + safetext.Line(safetext.Truncate(name, maxNoteNameLength, safetext.Runes, "…"))
}
