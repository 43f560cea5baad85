package vetting

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
)

// failureWindow is the period in which all failed calls count as one failure. Otherwise one crash of a server would
// count many times, since all its calls fail.
const failureWindow = 5 * time.Second

// CallEvidence returns the trust events of one call to a server. err is the error of the call, or nil if the call
// succeeded. Only a fault of the connection or of the server lowers the trust; for other errors there is no event.
func CallEvidence(err error) []trust.Event {
	if err == nil {
		return []trust.Event{{Kind: trust.CallSucceeded}}
	}
	f := drawbridge.AsFault(err)
	if f.Kind != drawbridge.BridgeFault || f.Code != drawbridge.Transient && f.Code != drawbridge.ServerError {
		return nil
	}
	at := time.Now().Truncate(failureWindow)
	return []trust.Event{{Kind: trust.CallFailed, Why: f.Step, Marks: []string{"failed " +
		at.UTC().Format(time.RFC3339)}}}
}

// An evidence is one finding against a server. about names the item of the listing, and seen distinguishes findings
// about the same item.
type evidence struct{ about, seen string }

// TrustEvidence returns the findings in a vetted listing as trust events of the server, one event for each kind. The
// marks of an event identify its findings, so that each finding counts once. If a finding occurs again in a later
// listing or after a restart, it does not lower the score again.
func TrustEvidence(l drawbridge.Listing, v deck.VettedListing) (events []trust.Event) {
	found := map[trust.EventKind][]evidence{}
	d := definitionIndex{l: &l, byName: map[string]map[string]json.RawMessage{}}
	for _, n := range v.Notes {
		about := strings.TrimSpace(n.Kind + " " + n.Name)
		switch {
		case n.Weak: // a guess is shown and does not lower the score
		case n.Action == "blanked", n.Action == "renamed", n.Action == "flagged":
			found[trust.TextSanitised] = append(found[trust.TextSanitised], evidence{about, n.Action + " " + n.Why})
		case n.Action == "held":
			found[trust.DefinitionChanged] = append(found[trust.DefinitionChanged], evidence{about, d.canonical(n)})
		}
	}
	for _, tool := range v.Tools {
		if tool.Code == "unexpected" {
			found[trust.UnexpectedTool] = append(found[trust.UnexpectedTool],
				evidence{"tool " + rawjson.GetString(tool.Original, "name"), ""})
		}
	}
	for _, kind := range []trust.EventKind{trust.DefinitionChanged, trust.TextSanitised, trust.UnexpectedTool} {
		if all := found[kind]; len(all) > 0 {
			events = append(events, newTrustEvent(kind, all))
		}
	}
	return events
}

// A definitionIndex finds definitions of a listing by name. It reads each list only once.
type definitionIndex struct {
	l      *drawbridge.Listing
	byName map[string]map[string]json.RawMessage // by the kind of a note, then by name
}

// canonical returns the listed definition of the item that the note n is about, in canonical form. If two items have
// the same name, it returns the first. For a note about the server it returns the instructions.
func (d definitionIndex) canonical(n deck.VettingNote) string {
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
			all[rawjson.GetString(raw, member)] = raw
		}
		d.byName[n.Kind] = all
	}
	if raw, ok := d.byName[n.Kind][n.Name]; ok {
		var b bytes.Buffer
		json.HTMLEscape(&b, rawjson.Canonical(raw)) // the marks of stored events are hashes of this form
		return b.String()
	}
	return ""
}

const (
	// maxNamedFindings is the number of findings that the text of an event names.
	maxNamedFindings = 3
	// maxEventMarks is the maximum number of marks of an event. It is limited because all marks of an account are
	// written again with every new event.
	maxEventMarks = 64
)

// newTrustEvent returns one event for all findings of one kind. The names of items are quoted, because servers choose
// them.
func newTrustEvent(kind trust.EventKind, all []evidence) trust.Event {
	e := trust.Event{Kind: kind}
	var about []string
	for i, f := range all {
		sum := sha256.Sum256([]byte(string(kind) + "\x00" + f.about + "\x00" + f.seen))
		e.Marks = append(e.Marks, hex.EncodeToString(sum[:12]))
		if i < maxNamedFindings {
			about = append(about, fmt.Sprintf("%.80q", f.about))
		}
	}
	e.Marks = mergeMarks(e.Marks)
	e.Count = len(e.Marks)
	e.Why = strings.Join(about, ", ")
	if more := len(all) - maxNamedFindings; more > 0 {
		e.Why += fmt.Sprintf(" and %d more", more)
	}
	return e
}

// mergeMarks returns at most maxEventMarks marks. If there are more marks, it combines several marks into one. The same
// set of findings always has the same marks.
func mergeMarks(marks []string) []string {
	if len(marks) <= maxEventMarks {
		return marks
	}
	parts := map[uint32][]string{}
	for _, mark := range slices.Sorted(slices.Values(marks)) {
		part := crc32.ChecksumIEEE([]byte(mark)) % maxEventMarks
		parts[part] = append(parts[part], mark)
	}
	gathered := make([]string, 0, len(parts))
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		sum := sha256.Sum256([]byte(strings.Join(parts[part], " ")))
		gathered = append(gathered, hex.EncodeToString(sum[:12]))
	}
	return gathered
}
