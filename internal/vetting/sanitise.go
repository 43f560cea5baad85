package vetting

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// CodeUnreadable is the code of what cannot be shown in any words: what is no JSON, and a template whose URI would be
// another.
const CodeUnreadable = "unreadable"

// A Sanitiser is the stage that shows what package shield leaves of each object. It looks at nothing twice that it
// knows, from this process or from records of an earlier one. It is safe for concurrent use, and several chains may
// share one.
type Sanitiser struct {
	// capped cuts long texts, long leaves them; made when they are first needed, since their lists take time to read.
	capped, uncapped func() (*shield.Shield, error)

	mu        sync.Mutex
	results   map[string]*rowResult
	snapshots map[string]*rowSnapshot
	// skills are what is shown of entries, by a hash of the rules and the entry; nil is not shown. weight counts their
	// bytes.
	skills     map[[sha256.Size]byte]json.RawMessage
	skillBytes int
}

// maxCachedRows bounds of how many rows something is known: a process may see any number, one after the other. What is
// forgotten is looked at again.
const maxCachedRows = 1024

// A rowSnapshot is a row's last book as text. One that came from elsewhere is opened once.
type rowSnapshot struct {
	text   []byte
	opened bool
}

var _ Stage = (*Sanitiser)(nil)

// A rowResult has the book of one row. Who looks at a listing of the row holds it.
type rowResult struct {
	mu     sync.Mutex
	result *listingResult
}

// NewSanitiser makes a Sanitiser that knows nothing.
func NewSanitiser() *Sanitiser {
	made := func(o shield.Options) func() (*shield.Shield, error) {
		return sync.OnceValues(func() (*shield.Shield, error) { return shield.New(o) })
	}
	return &Sanitiser{
		capped: made(shield.Options{}), uncapped: made(shield.Options{NoCaps: true}),
		results: map[string]*rowResult{}, snapshots: map[string]*rowSnapshot{},
		skills: map[[sha256.Size]byte]json.RawMessage{},
	}
}

// Restore takes the record of a row, by which the row's next listing is shown if it is the one that the record is
// about, also where the rules have changed since: see Stale.
func (s *Sanitiser) Restore(row string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) > 0 && s.snapshots[row] == nil {
		s.setSnapshot(row, &rowSnapshot{text: text})
	}
}

// setSnapshot keeps the record of a row. The lock is held.
func (s *Sanitiser) setSnapshot(row string, r *rowSnapshot) {
	if len(s.snapshots) >= maxCachedRows && s.snapshots[row] == nil {
		clear(s.snapshots)
	}
	s.snapshots[row] = r
}

// Snapshot gives what is to be remembered of a row; nil where nothing of it was looked at.
func (s *Sanitiser) Snapshot(row string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.snapshots[row]; r != nil {
		return r.text
	}
	return nil
}

// IsStale says whether what is shown of a row's listing was made by other rules than today's. To look at the listing
// again is to look by today's.
func (s *Sanitiser) IsStale(m deck.Server) bool {
	b := s.rowResultOf(m).latest()
	return b != nil && b.Rules != rulesID(m)
}

// rulesID names all that decides what becomes of a member's listing.
func rulesID(m deck.Server) string {
	return fmt.Sprintf("%s foreign %t", shield.RulesVersion(), m.FromProject)
}

func (s *Sanitiser) rowResultOf(m deck.Server) *rowResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%s\x00%s\x00%t", m.ID, m.ConfigHash, m.FromProject)
	if s.results[key] == nil {
		if len(s.results) >= maxCachedRows {
			clear(s.results)
		}
		s.results[key] = &rowResult{}
	}
	return s.results[key]
}

func (f *rowResult) latest() *listingResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.result
}

// takeRestored gives the record of a row that came from elsewhere, once.
func (s *Sanitiser) takeRestored(row string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.snapshots[row]
	if r == nil || r.opened {
		return nil
	}
	r.opened = true
	return r.text
}

// Apply implements [Stage].
func (s *Sanitiser) Apply(ctx context.Context, sight *Inspection) error {
	all, places, err := itemsToShow(sight)
	if err != nil {
		return err
	}
	shelf := s.rowResultOf(sight.Server)
	shelf.mu.Lock()
	defer shelf.mu.Unlock()
	b := shelf.result
	if b == nil || b.Rules != rulesID(sight.Server) {
		b = parseListingResult(s.takeRestored(sight.Server.ConfigHash), all)
	}
	if b == nil || !b.covers(all) {
		if b, err = s.sanitiseItems(ctx, sight, b, all); err != nil {
			return err
		}
	}
	if !sight.Listing.ListedAt.IsZero() {
		shelf.result = b
	}
	b.applyTo(sight, all, places)
	return nil
}

// itemsToShow are the objects that may be shown, by part, with their places: those that nobody left out, and of the
// tools no more than there is room for. What a server says of itself is its info, its capabilities and its
// instructions.
func itemsToShow(s *Inspection) (all [partCount][]json.RawMessage, places [partCount][]int, err error) {
	names := map[string]bool{} // of the tools, where there are more than there is room for
	bounded := s.Server.MaxTools > 0 && len(s.Tools) > s.Server.MaxTools
	for part, list := range [...][]deck.VettedItem{s.Tools, s.Prompts, s.Resources, s.Templates} {
		all[part], places[part] = make([]json.RawMessage, 0, len(list)), make([]int, 0, len(list))
		for i, object := range list {
			if object.OmitReason != "" || part == partTools && bounded && len(names) >= s.Server.MaxTools {
				continue
			}
			if part == partTools && bounded {
				names[rawjson.GetString(object.Original, "name")] = true
			}
			all[part], places[part] = append(all[part], object.Original), append(places[part], i)
		}
	}
	text, err := json.Marshal(s.Listing.Instructions)
	if err != nil {
		return all, places, fmt.Errorf("read the instructions: %w", err)
	}
	all[partServer] = []json.RawMessage{s.Listing.Info, s.Listing.Capabilities, text}
	return all, places, nil
}

// sanitiseItems looks at all objects that an earlier book of the same rules does not have.
func (s *Sanitiser) sanitiseItems(ctx context.Context, sight *Inspection, before *listingResult,
	all [partCount][]json.RawMessage) (*listingResult, error) {
	b := &listingResult{Rules: rulesID(sight.Server), Digest: itemsDigest(all)}
	if before != nil && before.Rules != b.Rules {
		before = nil
	}
	for part, list := range all {
		for at, raw := range list {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("look at %s: %w", countOf(len(list), partNouns[part]), err)
			}
			l, ok := before.find(part, at, raw)
			if !ok {
				var err error
				if l, err = s.sanitiseItem(sight.Server, part, at, raw); err != nil {
					return nil, err
				}
			}
			if l.Did != "" || l.LeftOut != "" || len(l.Definition) > 0 {
				l.Part, l.At = part, at
				b.Items = append(b.Items, l)
			}
		}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("keep what was made of the listing: %w", err)
	}
	if !sight.Listing.ListedAt.IsZero() {
		s.mu.Lock()
		s.setSnapshot(sight.Server.ConfigHash, &rowSnapshot{text, true})
		s.mu.Unlock()
	}
	return b.withItems(all), nil
}

// sanitiseItem looks at one object.
func (s *Sanitiser) sanitiseItem(m deck.Server, part, at int, raw json.RawMessage) (itemResult, error) {
	if len(raw) == 0 {
		return itemResult{}, nil
	}
	of := s.uncapped
	if m.FromProject {
		of = s.capped
	}
	sh, err := of()
	if err != nil {
		return itemResult{}, err
	}
	var report shield.Report
	if part == partServer && at == selfInstructions {
		text, _ := rawjson.DecodeString(raw)
		out, verdict, reasons := sh.CheckText(text)
		report = shield.Report{Verdict: verdict, Reasons: reasons, Canonical: raw}
		if out != text {
			report.Canonical = rawjson.Quote(out)
		}
	} else if report, err = sh.CheckDefinition(raw); err != nil {
		return itemResult{LeftOut: "it is " + err.Error()}, nil
	}
	return newItemResult(part, raw, report), nil
}

// newItemResult is what is kept of a report.
func newItemResult(part int, raw json.RawMessage, report shield.Report) (l itemResult) {
	l.Names = report.Renamed
	if !sameBytes(report.Canonical, raw) {
		l.Definition = report.Canonical
	}
	l.Did, l.Why = summariseReasons(report.Reasons)
	l.Slight = l.Did == "flagged" && !slices.ContainsFunc(report.Reasons,
		func(r shield.Finding) bool { return r.Action == l.Did && r.Rule != shield.WeighedRule })
	if part != partResources && part != partTemplates || len(l.Definition) == 0 {
		return l
	}
	own := rawjson.GetString(raw, partMembers[part])
	switch {
	case rawjson.GetString(l.Definition, partMembers[part]) == own:
	case part == partTemplates: // no URI could be made of it
		return itemResult{LeftOut: "its URI is not what it looks like"}
	default:
		sum := sha256.Sum256([]byte(own))
		l.Definition = rawjson.Apply(l.Definition, rawjson.Put(rawjson.Quote("sanitized:"+hex.EncodeToString(sum[:6])),
			"uri"))
	}
	return l
}

// severities orders what is done to a text, the gravest first; what is not in it is not noted.
var severities = [...]string{"blanked", "renamed", "flagged", "stripped", "cut"}

// summariseReasons says what was done, the gravest of it in full.
func summariseReasons(reasons []shield.Finding) (did, why string) {
	rank := func(r shield.Finding) int { return slices.Index(severities[:], r.Action) }
	reasons = slices.DeleteFunc(slices.Clone(reasons), func(r shield.Finding) bool { return rank(r) < 0 })
	if len(reasons) == 0 {
		return "", ""
	}
	worst := slices.MinFunc(reasons, func(a, b shield.Finding) int { return cmp.Compare(rank(a), rank(b)) })
	place := "it"
	if worst.Path != "" {
		place = safetext.Line(safetext.Truncate(worst.Path, 80, safetext.Runes, "…"))
	}
	why = fmt.Sprintf("%s %s (%s)", place, worst.Why, worst.Rule)
	if more := len(reasons) - 1; more > 0 {
		why += fmt.Sprintf(", and %d more", more)
	}
	return worst.Action, why
}
