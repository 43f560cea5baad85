package shield

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// Fingerprint names a definition by what it means: "sha256:" and the 64 hexadecimal digits of the hash of its
// canonical form, in which members are sorted and nothing stands between tokens. Every member counts, also one that
// nobody knows. What two readers could read in two ways (a repeated member, bytes that are no UTF-8, nesting beyond
// any use) is named by its bytes.
func Fingerprint(definition json.RawMessage) string {
	text, _ := canonicalDefinition(definition)
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonicalDefinition returns the canonical form of a definition. Where it has none, it says false and gives the
// definition itself.
func canonicalDefinition(raw json.RawMessage) (text []byte, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := readUnambiguous(dec, 0)
	if err != nil || !utf8.Valid(raw) || len(bytes.TrimSpace(raw[dec.InputOffset():])) > 0 {
		return raw, false
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return raw, false
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), true
}

// maxPinDepth is how deep a definition may be nested to have a canonical form.
const maxPinDepth = 500

var errAmbiguous = errors.New("it can be read in two ways")

// readUnambiguous reads a value, which has no repeated member and is not too deep.
func readUnambiguous(dec *json.Decoder, depth int) (any, error) {
	t, err := dec.Token()
	d, ok := t.(json.Delim)
	if err != nil || !ok {
		return t, err
	}
	if depth > maxPinDepth {
		return nil, errAmbiguous
	}
	var list = []any{}
	object := map[string]any{}
	for dec.More() {
		name := ""
		if d == '{' {
			t, err := dec.Token()
			if err != nil {
				return nil, err
			}
			name, _ = t.(string) // the decoder takes nothing else for a name
			if _, twice := object[name]; twice {
				return nil, errAmbiguous
			}
		}
		v, err := readUnambiguous(dec, depth+1)
		if err != nil {
			return nil, err
		}
		if d == '{' {
			object[name] = v
		} else {
			list = append(list, v)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if d == '{' {
		return object, nil
	}
	return list, nil
}

// How a definition came to be pinned.
const (
	// PinnedFirstSeen is at first sight, PinnedCosmetic by a change that nobody would act on, PinnedAccepted by a
	// person, PinnedLocked by the lockfile.
	PinnedFirstSeen = "first seen"
	PinnedCosmetic  = "cosmetic change"
	PinnedAccepted  = "accepted"
	PinnedLocked    = "lockfile"
)

// A Pin is the definition of a tool that counts, whatever its server says of the tool later.
type Pin struct {
	// Tool is the server's own name of it.
	Tool string
	// Definition is as the server sent it, Hash its Fingerprint.
	Definition json.RawMessage
	Hash       string
	// Origin is one of PinnedFirstSeen and its like, At when it was pinned.
	Origin string
	At     time.Time
	// Pending is what the server says in its place now; nil where it says nothing else that a person has to see.
	Pending *PendingChange
}

// An PendingChange is a changed definition that does not count.
type PendingChange struct {
	Definition json.RawMessage
	Hash       string
	At         time.Time
	// Rejected reports that a person wants nothing of it; else it waits for one.
	Rejected bool
}

// sameAs reports whether two pins say the same, whenever they were made.
func (p Pin) sameAs(q Pin) bool {
	return p.Hash == q.Hash && (p.Pending == nil) == (q.Pending == nil) &&
		(p.Pending == nil || p.Pending.Hash == q.Pending.Hash && p.Pending.Rejected == q.Pending.Rejected)
}

// Accept puts an offer in the place of what is pinned. The error says that the tool offers something else than the
// hash.
func (p Pin) Accept(hash string, at time.Time) (Pin, error) {
	if p.Pending == nil || p.Pending.Hash != hash {
		return p, errOtherChange
	}
	return Pin{Tool: p.Tool, Definition: p.Pending.Definition, Hash: hash, Origin: PinnedAccepted, At: at}, nil
}

// Reject keeps an offer from being asked about again, for as long as the server makes it. The error is as for Accept.
func (p Pin) Reject(hash string) (Pin, error) {
	if p.Pending == nil || p.Pending.Hash != hash {
		return p, errOtherChange
	}
	offer := *p.Pending
	offer.Rejected = true
	p.Pending = &offer
	return p, nil
}

var errOtherChange = errors.New("the server says something else by now")

// A ListedTool is a tool as its server lists it, by the name that it goes by everywhere; no name where it has none.
type ListedTool struct {
	Tool       string
	Definition json.RawMessage
}

// MaxPins is how many tools of a server are remembered, also those that it lists no more. What comes beyond is not
// shown.
const MaxPins = 10_000

// A PinOutcome is what becomes of a list of tools.
type PinOutcome struct {
	// Shown are the definitions that count, in the order of the list.
	Shown []json.RawMessage
	// Held are the tools that are shown as they are Pinned and may not be called: a person has to see what they say
	// now. Pinned has those too that are left out because a person rejected what they say.
	Held   []string
	Pinned map[string]json.RawMessage
	// LeftOut says why tools of the list are not shown.
	LeftOut map[string]string
	// TooMany reports that some are not shown because their server has named too many.
	TooMany bool
	// Changed are the pins that are new, or not what they were: to be kept.
	Changed []Pin
}

// ApplyPins holds a server's list of tools against what is pinned of it, by the tools' own names: what is new is
// pinned as it is, what means the same passes, so does what is cosmetic, and any other change waits, while the pinned
// definition stays. A tool whose new definition was rejected is left out. What the lockfile says counts more than what
// was pinned here; locked may be nil. Cosmetic says whether nobody needs to see a change, see Shield.IsCosmetic.
func ApplyPins(pins, locked map[string]Pin, list []ListedTool, cosmetic func(before, after json.RawMessage) bool,
	now time.Time) PinOutcome {
	out := PinOutcome{Shown: make([]json.RawMessage, 0, len(list)), Pinned: map[string]json.RawMessage{},
		LeftOut: map[string]string{}}
	known, seen := len(pins), make(map[string]bool, len(list))
	for _, l := range list {
		if l.Tool == "" || seen[l.Tool] { // nothing that can be called
			out.Shown = append(out.Shown, l.Definition)
			continue
		}
		seen[l.Tool] = true
		was, ok := pins[l.Tool]
		if !ok {
			if known++; known > MaxPins {
				out.LeftOut[l.Tool] = fmt.Sprintf("its server has named more than %d tools", MaxPins)
				out.TooMany = true
				continue
			}
		}
		hash := Fingerprint(l.Definition)
		is := pinAfterListing(was, locked[l.Tool], l, hash, cosmetic, now)
		if !ok || !is.sameAs(was) {
			out.Changed = append(out.Changed, is)
		}
		switch {
		case is.Pending == nil || is.Pending.Hash != hash:
			out.Shown = append(out.Shown, l.Definition)
		case is.Pending.Rejected:
			out.Pinned[l.Tool] = is.Definition
			out.LeftOut[l.Tool] = "a person rejected its present definition"
		default:
			out.Held = append(out.Held, l.Tool)
			out.Pinned[l.Tool] = is.Definition
			out.Shown = append(out.Shown, is.Definition)
		}
	}
	out.Changed = append(out.Changed, withdrawnChanges(pins, seen)...)
	return out
}

// withdrawnChanges returns the pins of tools that are not listed any more and made an offer: there is nothing to
// decide. The pin stays, so that a tool does not come back as another one.
func withdrawnChanges(pins map[string]Pin, seen map[string]bool) (changed []Pin) {
	for _, p := range pins {
		if !seen[p.Tool] && p.Pending != nil {
			p.Pending = nil
			changed = append(changed, p)
		}
	}
	slices.SortFunc(changed, func(a, b Pin) int { return bytes.Compare([]byte(a.Tool), []byte(b.Tool)) })
	return changed
}

// pinAfterListing is the pin of a tool once its server has listed it. A zero pin or lock is one that there is not.
func pinAfterListing(pin, lock Pin, l ListedTool, hash string, cosmetic func(before, after json.RawMessage) bool,
	now time.Time) Pin {
	if lock.Hash != "" && lock.Hash != pin.Hash {
		pin.Tool, pin.Definition, pin.Hash, pin.Origin, pin.At = l.Tool, lock.Definition, lock.Hash, PinnedLocked, now
	}
	switch {
	case pin.Hash == "":
		return Pin{Tool: l.Tool, Definition: l.Definition, Hash: hash, Origin: PinnedFirstSeen, At: now}
	case pin.Hash == hash:
		pin.Pending = nil
		return pin
	case pin.Pending != nil && pin.Pending.Hash == hash:
		return pin
	}
	if cosmetic(pin.Definition, l.Definition) {
		return Pin{Tool: l.Tool, Definition: l.Definition, Hash: hash, Origin: PinnedCosmetic, At: now}
	}
	pin.Pending = &PendingChange{Definition: l.Definition, Hash: hash, At: now}
	return pin
}

// IsCosmetic reports whether a change needs nobody to look at it. One to what can be read in two ways does: it may say
// what it said before to the one reader only.
func (s *Shield) IsCosmetic(before, after json.RawMessage) bool {
	if _, ok := canonicalDefinition(after); !ok {
		return false
	}
	c, err := s.CompareDefinitions(before, after)
	return err == nil && !c.NeedsApproval
}
