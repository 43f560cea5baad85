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

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// CodeUnreadable marks an item that cannot be shown: its JSON is invalid, or it is a template whose URI the shield
// would change.
const CodeUnreadable = "unreadable"

// A Sanitiser is the stage that checks each item with package shield. It caches results, and uses the results of an
// earlier process that were passed to Restore. It is safe for concurrent use, and several chains may share it.
type Sanitiser struct {
	// capped returns a Shield that cuts long texts, and uncapped a Shield that does not. Each Shield is created on
	// first use, since reading its word lists takes time.
	capped, uncapped func() (*shield.Shield, error)

	mu        sync.Mutex
	results   *simplelru.LRU[string, *rowResult]
	snapshots *simplelru.LRU[string, *rowSnapshot]
	// skills caches the sanitised skills, by a hash of the rules and the skill. A nil value means that the skill is
	// hidden. skillBytes is the total size of the cached skills.
	skills     *simplelru.LRU[[sha256.Size]byte, json.RawMessage]
	skillBytes int
}

// maxCachedRows is the maximum number of server configurations with cached results. For a configuration that was
// evicted, the next listing is checked again.
const maxCachedRows = 1024

// A rowSnapshot is the last result for a server configuration, as JSON text. opened reports whether the text was
// already parsed.
type rowSnapshot struct {
	text   []byte
	opened bool
}

var _ Stage = (*Sanitiser)(nil)

// A rowResult contains the last result for a server configuration. mu is locked while a listing of the server is
// checked.
type rowResult struct {
	mu     sync.Mutex
	result *listingResult
}

// NewSanitiser returns a Sanitiser without cached results.
func NewSanitiser() *Sanitiser {
	made := func(o shield.Options) func() (*shield.Shield, error) {
		return sync.OnceValues(func() (*shield.Shield, error) { return shield.New(o) })
	}
	s := &Sanitiser{
		capped: made(shield.Options{}), uncapped: made(shield.Options{NoCaps: true}),
	}
	// NewLRU returns an error only for sizes below 1.
	s.results, _ = simplelru.NewLRU[string, *rowResult](maxCachedRows, nil)
	s.snapshots, _ = simplelru.NewLRU[string, *rowSnapshot](maxCachedRows, nil)
	s.skills, _ = simplelru.NewLRU(maxSkills, func(_ [sha256.Size]byte, shown json.RawMessage) {
		s.skillBytes -= len(shown)
	})
	return s
}

// Restore adds a result that Snapshot returned in an earlier process. row is the hash of the server's configuration. If
// the server's next listing has the same items, this result is used, even if the rules have changed since; see IsStale.
func (s *Sanitiser) Restore(row string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) > 0 && !s.snapshots.Contains(row) {
		s.snapshots.Add(row, &rowSnapshot{text: text})
	}
}

// Snapshot returns the last result for a server configuration, for Restore in a later process. row is the hash of the
// configuration. It returns nil if there is no result.
func (s *Sanitiser) Snapshot(row string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.snapshots.Get(row); ok {
		return r.text
	}
	return nil
}

// IsStale reports whether the last result for a server was made by rules that differ from the current rules. If so,
// vetting the same listing again applies the current rules.
func (s *Sanitiser) IsStale(m deck.Server) bool {
	b := s.rowResultOf(m).latest()
	return b != nil && b.Rules != rulesID(m)
}

// rulesID returns an identifier of the rules that apply to a server's listing.
func rulesID(m deck.Server) string {
	return fmt.Sprintf("%s foreign %t", shield.RulesVersion(), m.FromProject)
}

func (s *Sanitiser) rowResultOf(m deck.Server) *rowResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%s\x00%s\x00%t", m.ID, m.ConfigHash, m.FromProject)
	r, ok := s.results.Get(key)
	if !ok {
		r = &rowResult{}
		s.results.Add(key, r)
	}
	return r
}

func (f *rowResult) latest() *listingResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.result
}

// takeRestored returns the result that was passed to Restore for row, on the first call. On later calls it returns nil.
func (s *Sanitiser) takeRestored(row string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.snapshots.Get(row)
	if !ok || r.opened {
		return nil
	}
	r.opened = true
	return r.text
}

// Apply implements [Stage].
func (s *Sanitiser) Apply(ctx context.Context, in *Inspection) error {
	all, places, err := itemsToShow(in)
	if err != nil {
		return err
	}
	row := s.rowResultOf(in.Server)
	row.mu.Lock()
	defer row.mu.Unlock()
	b := row.result
	if b == nil || b.Rules != rulesID(in.Server) {
		b = parseListingResult(s.takeRestored(in.Server.ConfigHash), all)
	}
	if b == nil || !b.covers(all) {
		if b, err = s.sanitiseItems(ctx, in, b, all); err != nil {
			return err
		}
	}
	if !in.Listing.ListedAt.IsZero() {
		row.result = b
	}
	b.applyTo(in, all, places)
	return nil
}

// itemsToShow returns the items that no stage left out, by part, with their indices in the lists of s. It returns at
// most MaxTools tools, a limit in the server's configuration. The part partServer contains the server's info,
// capabilities and instructions.
func itemsToShow(s *Inspection) (all [partCount][]json.RawMessage, places [partCount][]int, err error) {
	names := map[string]bool{} // names of the tools, if there are more than MaxTools
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

// sanitiseItems checks the items in all. before is an earlier result; if it was made by the same rules, items that it
// contains are not checked again.
func (s *Sanitiser) sanitiseItems(ctx context.Context, in *Inspection, before *listingResult,
	all [partCount][]json.RawMessage) (*listingResult, error) {
	b := &listingResult{Rules: rulesID(in.Server), Digest: itemsDigest(all)}
	if before != nil && before.Rules != b.Rules {
		before = nil
	}
	for part, list := range all {
		for at, raw := range list {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("check %s: %w", countOf(len(list), partNouns[part]), err)
			}
			l, ok := before.find(part, at, raw)
			if !ok {
				var err error
				if l, err = s.sanitiseItem(in.Server, part, at, raw); err != nil {
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
		return nil, fmt.Errorf("encode the result of the listing: %w", err)
	}
	if !in.Listing.ListedAt.IsZero() {
		s.mu.Lock()
		s.snapshots.Add(in.Server.ConfigHash, &rowSnapshot{text, true})
		s.mu.Unlock()
	}
	return b.withItems(all), nil
}

// sanitiseItem checks one item. at is its index in the part.
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

// newItemResult converts a report of the shield to an itemResult. If the URI of a resource was changed, the result has
// a hash of the URI instead. If the URI of a template was changed, the template is hidden.
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
	case part == partTemplates: // a URI made from the changed template would be different
		return itemResult{LeftOut: "its URI is not what it looks like"}
	default:
		sum := sha256.Sum256([]byte(own))
		l.Definition = rawjson.Apply(l.Definition, rawjson.Put(rawjson.Quote("sanitized:"+hex.EncodeToString(sum[:6])),
			"uri"))
	}
	return l
}

// severities are the actions on a text, the most severe first. Other actions are not mentioned in notes.
var severities = [...]string{"blanked", "renamed", "flagged", "stripped", "cut"}

// summariseReasons returns the most severe action in the findings. why describes this finding, and contains the number
// of other findings.
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
