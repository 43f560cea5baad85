package gateway

import (
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

const (
	// maxAlike is how many notes that differ in the name alone are told one by one.
	maxAlike = 5
	// maxNoted is the most characters of a server's own name for something that a note repeats.
	maxNoted = 100
)

// alike are the notes of one kind: each on its own, and the one that stands for all where they are many.
type alike struct {
	each []string
	all  func(count int) string
}

// notes says for people what of a server is not on the deck, or not by its name.
func notes(m deck.MemberStatus) []string {
	var kinds []*alike
	byKey := map[string]*alike{}
	add := func(key, note string, all func(int) string) {
		if byKey[key] == nil {
			byKey[key] = &alike{all: all}
			kinds = append(kinds, byKey[key])
		}
		byKey[key].each = append(byKey[key].each, note)
	}
	// told are the clashes that left something out: they say more than the reason does.
	told := map[[2]string]bool{}
	for _, c := range m.Clashes {
		rest, allRest := "; listed as "+c.Listed, ""
		if c.Listed == "" {
			rest, allRest = "; not listed", "; not listed"
			told[[2]string{c.Kind, c.Tool}] = true
		}
		winner := winnerOf(c.Winner)
		add("taken "+c.Kind+" "+winner+allRest, fmt.Sprintf("%s: the name is taken by %s%s", thing(c.Kind, c.Name), winner, rest),
			func(n int) string {
				return fmt.Sprintf("%d %ss: their names are taken by %s%s", n, c.Kind, winner, allRest)
			})
	}
	for _, l := range m.LeftOut {
		if told[[2]string{l.Kind, l.Name}] {
			continue
		}
		add("out "+l.Kind+" "+l.Reason, fmt.Sprintf("%s: left out, because %s", thing(l.Kind, l.Name), l.Reason),
			func(n int) string { return fmt.Sprintf("%d %ss: left out, each because %s", n, l.Kind, l.Reason) })
	}
	for _, n := range m.Notes {
		done := done(n)
		add("did "+n.Kind+" "+n.Did, fmt.Sprintf("%s: %s, because %s", thing(n.Kind, n.Name), done, n.Why),
			func(count int) string {
				return fmt.Sprintf("%d %ss: %s; drawbridge shield scan --server %s says why", count, n.Kind, done, m.Server)
			})
	}
	var out []string
	for _, k := range kinds {
		if n := len(k.each); n > maxAlike {
			out = append(out, k.all(n))
			continue
		}
		out = append(out, k.each...)
	}
	return out
}

// Notes says for people what was done to the definition of a server's card.
func (g *Gateway) Notes(card drawbridge.Spec) (all []string) {
	for _, m := range g.deck.Members() {
		for _, n := range m.Notes {
			if m.Server == card.Server && n.Kind == "tool" && n.Name == card.Tool {
				all = append(all, fmt.Sprintf("shield: %s, because %s", done(n), n.Why))
			}
		}
	}
	return all
}

// done says for people what was done to something of a server's.
func done(n deck.Note) string {
	switch n.Did {
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
	return n.Did
}

func winnerOf(id drawbridge.ServerID) string {
	if id == "" {
		return "Drawbridge itself"
	}
	return "server " + string(id)
}

// thing returns the kind and the name of an item that a server lists, fit for a terminal.
func thing(kind, name string) string {
	if name == "" {
		return "a " + kind
	}
	return kind + " " + safetext.Line(safetext.Truncate(name, maxNoted, safetext.Runes, "…"))
}
