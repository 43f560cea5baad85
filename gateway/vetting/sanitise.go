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
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Unreadable is the code of what cannot be shown in any words: what is no JSON, and a template whose URI would be another.
const Unreadable = "unreadable"

// A Sanitiser is the stage that shows what package shield leaves of each object. It looks at nothing twice that it knows,
// from this process or from records of an earlier one. It is safe for concurrent use, and several chains may share one.
type Sanitiser struct {
	// short cuts long texts, long leaves them; made when they are first needed, since their lists take time to read.
	short, long func() (*shield.Shield, error)

	mu      sync.Mutex
	books   map[string]*shelf
	records map[string]*record
	// skills are what is shown of entries, by a hash of the rules and the entry; nil is not shown. weight counts their bytes.
	skills map[[sha256.Size]byte]json.RawMessage
	weight int
}

// mostRows bounds of how many rows something is known: a process may see any number, one after the other. What is forgotten is looked
// at again.
const mostRows = 1024

// A record is a row's last book as text. One that came from elsewhere is opened once.
type record struct {
	text   []byte
	opened bool
}

var _ Stage = (*Sanitiser)(nil)

// A shelf has the book of one row. Who looks at a listing of the row holds it.
type shelf struct {
	mu   sync.Mutex
	book *book
}

// NewSanitiser makes a Sanitiser that knows nothing.
func NewSanitiser() *Sanitiser {
	made := func(o shield.Options) func() (*shield.Shield, error) {
		return sync.OnceValues(func() (*shield.Shield, error) { return shield.New(o) })
	}
	return &Sanitiser{
		short: made(shield.Options{}), long: made(shield.Options{Uncapped: true}),
		books: map[string]*shelf{}, records: map[string]*record{}, skills: map[[sha256.Size]byte]json.RawMessage{},
	}
}

// Remember takes the record of a row, by which the row's next listing is shown if it is the one that the record is about,
// also where the rules have changed since: see Stale.
func (s *Sanitiser) Remember(row string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) > 0 && s.records[row] == nil {
		s.keep(row, &record{text: text})
	}
}

// keep keeps the record of a row. The lock is held.
func (s *Sanitiser) keep(row string, r *record) {
	if len(s.records) >= mostRows && s.records[row] == nil {
		clear(s.records)
	}
	s.records[row] = r
}

// Record gives what is to be remembered of a row; nil where nothing of it was looked at.
func (s *Sanitiser) Record(row string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[row]; r != nil {
		return r.text
	}
	return nil
}

// Stale says whether what is shown of a row's listing was made by other rules than today's. To look at the listing again
// is to look by today's.
func (s *Sanitiser) Stale(m deck.Member) bool {
	b := s.shelf(m).current()
	return b != nil && b.Rules != rules(m)
}

// rules names all that decides what becomes of a member's listing.
func rules(m deck.Member) string { return fmt.Sprintf("%s foreign %t", shield.Rules(), m.Foreign) }

func (s *Sanitiser) shelf(m deck.Member) *shelf {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%s\x00%s\x00%t", m.ID, m.Row, m.Foreign)
	if s.books[key] == nil {
		if len(s.books) >= mostRows {
			clear(s.books)
		}
		s.books[key] = &shelf{}
	}
	return s.books[key]
}

func (f *shelf) current() *book {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.book
}

// remembered gives the record of a row that came from elsewhere, once.
func (s *Sanitiser) remembered(row string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[row]
	if r == nil || r.opened {
		return nil
	}
	r.opened = true
	return r.text
}

// Look implements [Stage].
func (s *Sanitiser) Look(ctx context.Context, sight *Sight) error {
	all, places, err := candidates(sight)
	if err != nil {
		return err
	}
	shelf := s.shelf(sight.Server)
	shelf.mu.Lock()
	defer shelf.mu.Unlock()
	b := shelf.book
	if b == nil || b.Rules != rules(sight.Server) {
		b = opened(s.remembered(sight.Server.Row), all)
	}
	if b == nil || !b.covers(all) {
		if b, err = s.read(ctx, sight, b, all); err != nil {
			return err
		}
	}
	if !sight.Listing.At.IsZero() {
		shelf.book = b
	}
	b.show(sight, all, places)
	return nil
}

// candidates are the objects that may be shown, by part, with their places: those that nobody left out, and of the tools no
// more than there is room for. What a server says of itself is its info, its capabilities and its instructions.
func candidates(s *Sight) (all [parts][]json.RawMessage, places [parts][]int, err error) {
	names := map[string]bool{} // of the tools, where there are more than there is room for
	bounded := s.Server.MaxTools > 0 && len(s.Tools) > s.Server.MaxTools
	for part, list := range [...][]deck.Shown{s.Tools, s.Prompts, s.Resources, s.Templates} {
		all[part], places[part] = make([]json.RawMessage, 0, len(list)), make([]int, 0, len(list))
		for i, object := range list {
			if object.Why != "" || part == tools && bounded && len(names) >= s.Server.MaxTools {
				continue
			}
			if part == tools && bounded {
				names[wire.GetText(object.Own, "name")] = true
			}
			all[part], places[part] = append(all[part], object.Own), append(places[part], i)
		}
	}
	text, err := json.Marshal(s.Listing.Instructions)
	if err != nil {
		return all, places, fmt.Errorf("read the instructions: %w", err)
	}
	all[self] = []json.RawMessage{s.Listing.Info, s.Listing.Capabilities, text}
	return all, places, nil
}

// read looks at all objects that an earlier book of the same rules does not have.
func (s *Sanitiser) read(ctx context.Context, sight *Sight, before *book, all [parts][]json.RawMessage) (*book, error) {
	b := &book{Rules: rules(sight.Server), Digest: digest(all)}
	if before != nil && before.Rules != b.Rules {
		before = nil
	}
	for part, list := range all {
		for at, raw := range list {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("look at %s: %w", several(len(list), words[part]), err)
			}
			l, ok := before.find(part, at, raw)
			if !ok {
				var err error
				if l, err = s.look(sight.Server, part, at, raw); err != nil {
					return nil, err
				}
			}
			if l.Did != "" || l.Out != "" || len(l.Definition) > 0 {
				l.Part, l.At = part, at
				b.Looks = append(b.Looks, l)
			}
		}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("keep what was made of the listing: %w", err)
	}
	if !sight.Listing.At.IsZero() {
		s.mu.Lock()
		s.keep(sight.Server.Row, &record{text, true})
		s.mu.Unlock()
	}
	return b.about(all), nil
}

// look looks at one object.
func (s *Sanitiser) look(m deck.Member, part, at int, raw json.RawMessage) (look, error) {
	if len(raw) == 0 {
		return look{}, nil
	}
	of := s.long
	if m.Foreign {
		of = s.short
	}
	sh, err := of()
	if err != nil {
		return look{}, err
	}
	var report shield.Report
	if part == self && at == instructions {
		text, _ := wire.Text(raw)
		out, verdict, reasons := sh.Text(text)
		report = shield.Report{Verdict: verdict, Reasons: reasons, Canonical: raw}
		if out != text {
			report.Canonical = wire.Quote(out)
		}
	} else if report, err = sh.Definition(raw); err != nil {
		return look{Out: "it is " + err.Error()}, nil
	}
	return judged(part, raw, report), nil
}

// judged is what is kept of a report.
func judged(part int, raw json.RawMessage, report shield.Report) (l look) {
	l.Names = report.Renamed
	if !sameBytes(report.Canonical, raw) {
		l.Definition = report.Canonical
	}
	l.Did, l.Why = noted(report.Reasons)
	l.Slight = l.Did == "flagged" && !slices.ContainsFunc(report.Reasons, func(r shield.Reason) bool { return r.Did == l.Did && r.Rule != shield.Weighed })
	if part != resources && part != templates || len(l.Definition) == 0 {
		return l
	}
	own := wire.GetText(raw, members[part])
	switch {
	case wire.GetText(l.Definition, members[part]) == own:
	case part == templates: // no URI could be made of it
		return look{Out: "its URI is not what it looks like"}
	default:
		sum := sha256.Sum256([]byte(own))
		l.Definition = wire.Apply(l.Definition, wire.Put(wire.Quote("sanitized:"+hex.EncodeToString(sum[:6])), "uri"))
	}
	return l
}

// grave orders what is done to a text, the gravest first; what is not in it is not noted.
var grave = [...]string{"blanked", "renamed", "flagged", "stripped", "cut"}

// noted says what was done, the gravest of it in full.
func noted(reasons []shield.Reason) (did, why string) {
	rank := func(r shield.Reason) int { return slices.Index(grave[:], r.Did) }
	reasons = slices.DeleteFunc(slices.Clone(reasons), func(r shield.Reason) bool { return rank(r) < 0 })
	if len(reasons) == 0 {
		return "", ""
	}
	worst := slices.MinFunc(reasons, func(a, b shield.Reason) int { return cmp.Compare(rank(a), rank(b)) })
	place := "it"
	if worst.Path != "" {
		place = safetext.Line(safetext.Truncate(worst.Path, 80, safetext.Runes, "…"))
	}
	why = fmt.Sprintf("%s %s (%s)", place, worst.Why, worst.Rule)
	if more := len(reasons) - 1; more > 0 {
		why += fmt.Sprintf(", and %d more", more)
	}
	return worst.Did, why
}
