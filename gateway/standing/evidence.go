package standing

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
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
	d := definitions{l: &l, byName: map[string]map[string]json.RawMessage{}}
	for _, n := range v.Notes {
		about := strings.TrimSpace(n.Kind + " " + n.Name)
		switch {
		case n.Slight: // a guess is shown, and costs nothing
		case n.Did == "blanked", n.Did == "renamed", n.Did == "flagged":
			found[trust.Sanitised] = append(found[trust.Sanitised], finding{about, n.Did + " " + n.Why})
		case n.Did == "held":
			found[trust.Changed] = append(found[trust.Changed], finding{about, d.of(n)})
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

// definitions are how a server defines what it lists, found by name: a list in which all changed is read once.
type definitions struct {
	l      *drawbridge.Listing
	byName map[string]map[string]json.RawMessage // by the kind of a note
}

// of is how the server defines what a note is about now, in its canonical form. Of two of one name the first counts.
func (d definitions) of(n deck.Note) string {
	list, member := d.l.Tools, "name"
	switch n.Kind {
	case "server":
		return d.l.Instructions
	case "prompt":
		list = d.l.Prompts
	case "template":
		list, member = d.l.Templates, "uriTemplate"
	}
	if d.byName[n.Kind] == nil {
		all := make(map[string]json.RawMessage, len(list))
		for _, raw := range slices.Backward(list) {
			all[wire.GetText(raw, member)] = raw
		}
		d.byName[n.Kind] = all
	}
	if raw, ok := d.byName[n.Kind][n.Name]; ok {
		return string(wire.Canonical(raw))
	}
	return ""
}

const (
	// shown is how many things an event names.
	shown = 3
	// mostMarks is how many marks an event has: all events are written at each that is noted.
	mostMarks = 64
)

// event is the event of findings of one kind. Servers choose the names in it: it is for terminals that are shown what is quoted.
func event(kind trust.Kind, all []finding) trust.Event {
	e := trust.Event{Kind: kind}
	var about []string
	for i, f := range all {
		sum := sha256.Sum256([]byte(string(kind) + "\x00" + f.about + "\x00" + f.seen))
		e.Marks = append(e.Marks, hex.EncodeToString(sum[:12]))
		if i < shown {
			about = append(about, fmt.Sprintf("%.80q", f.about))
		}
	}
	e.Marks = gathered(e.Marks)
	e.Count = len(e.Marks)
	e.Why = strings.Join(about, ", ")
	if more := len(all) - shown; more > 0 {
		e.Why += fmt.Sprintf(" and %d more", more)
	}
	return e
}

// gathered gives no more marks than an event has: each is of several findings then, the same ones for the same findings.
func gathered(marks []string) []string {
	if len(marks) <= mostMarks {
		return marks
	}
	parts := map[uint32][]string{}
	for _, mark := range slices.Sorted(slices.Values(marks)) {
		part := crc32.ChecksumIEEE([]byte(mark)) % mostMarks
		parts[part] = append(parts[part], mark)
	}
	gathered := make([]string, 0, len(parts))
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		sum := sha256.Sum256([]byte(strings.Join(parts[part], " ")))
		gathered = append(gathered, hex.EncodeToString(sum[:12]))
	}
	return gathered
}
