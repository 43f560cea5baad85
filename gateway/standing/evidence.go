package standing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/trust"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A finding is one thing in a listing that speaks against its server: what it is about, and what tells it from others.
type finding struct{ about, seen string }

// Evidence is what a look at a listing says against its server: an event for each kind. What was seen before is marked, and
// counts once: neither a restart nor a second listing of the same makes it worse.
func Evidence(l drawbridge.Listing, v deck.Vetted) (events []trust.Event) {
	found := map[trust.Kind][]finding{}
	for _, n := range v.Notes {
		about := strings.TrimSpace(n.Kind + " " + n.Name)
		switch {
		case n.Slight: // a guess is shown, and costs nothing
		case n.Did == "blanked", n.Did == "flagged":
			found[trust.Sanitised] = append(found[trust.Sanitised], finding{about, n.Did + " " + n.Why})
		case n.Did == "held":
			found[trust.Changed] = append(found[trust.Changed], finding{about, definition(l, n)})
		}
	}
	for _, tool := range v.Tools {
		if tool.Code == "unexpected" {
			found[trust.Unexpected] = append(found[trust.Unexpected], finding{"tool " + wire.GetText(tool.Own, "name"), ""})
		}
	}
	for _, kind := range []trust.Kind{trust.Changed, trust.Sanitised, trust.Unexpected} {
		if all := found[kind]; len(all) > 0 {
			events = append(events, event(kind, all))
		}
	}
	return events
}

// definition is how a server defines what a note is about now, in its canonical form.
func definition(l drawbridge.Listing, n deck.Note) string {
	list, member := l.Tools, "name"
	switch n.Kind {
	case "server":
		return l.Instructions
	case "prompt":
		list = l.Prompts
	case "template":
		list, member = l.Templates, "uriTemplate"
	}
	for _, raw := range list {
		if wire.GetText(raw, member) == n.Name {
			return string(wire.Canonical(raw))
		}
	}
	return ""
}

// shown is how many things an event names.
const shown = 3

// event is the event of findings of one kind. Servers choose the names in it: it is for terminals that are shown what is quoted.
func event(kind trust.Kind, all []finding) trust.Event {
	e := trust.Event{Kind: kind, Count: len(all)}
	var about []string
	for i, f := range all {
		sum := sha256.Sum256([]byte(string(kind) + "\x00" + f.about + "\x00" + f.seen))
		e.Marks = append(e.Marks, hex.EncodeToString(sum[:12]))
		if i < shown {
			about = append(about, fmt.Sprintf("%.80q", f.about))
		}
	}
	e.Why = strings.Join(about, ", ")
	if more := len(all) - shown; more > 0 {
		e.Why += fmt.Sprintf(" and %d more", more)
	}
	return e
}
