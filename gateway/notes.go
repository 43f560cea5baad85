package gateway

import (
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

const (
	// maxSimilarNotes is the maximum number of notes of one kind that are shown separately. More notes are replaced by
	// one summary.
	maxSimilarNotes = 5
	// maxNoteNameLength is the maximum number of characters of a server's item name in a note.
	maxNoteNameLength = 100
)

// A noteGroup holds the notes of one kind. The function summarise returns one note that replaces count notes of this
// kind.
type noteGroup struct {
	notes     []string
	summarise func(count int) string
}

// noteGroups are groups of notes, in the order of their first notes. The zero value is empty.
type noteGroups struct {
	inOrder []*noteGroup
	byKey   map[string]*noteGroup
}

// add adds a note to the group with a key. The first call for a key sets the group's summarise.
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

// texts returns the notes of all groups. One summary replaces the notes of a group with more than maxSimilarNotes
// notes.
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

// memberNotes returns notes for people about the items of a server that are not on the deck, have another name there,
// or were changed.
func memberNotes(m deck.ServerSummary) []string { return append(clashNotes(m), itemNotes(m)...) }

// clashNotes returns notes about the items of a server whose names another server already has. Which names clash
// depends on the naming style.
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

// itemNotes returns notes about the items that are not on the deck although no name clash prevents it, and about the
// changed items.
func itemNotes(m deck.ServerSummary) []string {
	// told holds the items that are not on the deck because of a name clash. clashNotes explains the reason better, so
	// they are skipped here.
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

// CardNotes returns notes for people that describe how the shield changed the definition of a server's card.
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

// describeChange returns a phrase for people that describes how an item of a server was changed.
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

// describeItem returns the kind and the name of an item of a server as one line that is safe to print on a terminal.
func describeItem(kind, name string) string {
	if name == "" {
		return "a " + kind
	}
	return kind + " " + safetext.Line(safetext.Truncate(name, maxNoteNameLength, safetext.Runes, "…"))
}
