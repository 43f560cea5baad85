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

// Fingerprint names a definition by what it means: "sha256:" and the 64 hexadecimal digits of the hash of its canonical form,
// in which members are sorted and nothing stands between tokens. Every member counts, also one that nobody knows. What two
// readers could read in two ways (a repeated member, bytes that are no UTF-8, nesting beyond any use) is named by its bytes.
func Fingerprint(definition json.RawMessage) string {
	text, _ := canonical(definition)
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonical gives the canonical form of a definition. Where it has none, it says false and gives the definition itself.
func canonical(raw json.RawMessage) (text []byte, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := plainValue(dec, 0)
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

// deepestPin is how deep a definition may be nested to have a canonical form.
const deepestPin = 500

var errNotPlain = errors.New("it can be read in two ways")

// plainValue reads a value, which has no repeated member and is not too deep.
func plainValue(dec *json.Decoder, depth int) (any, error) {
	t, err := dec.Token()
	d, ok := t.(json.Delim)
	if err != nil || !ok {
		return t, err
	}
	if depth > deepestPin {
		return nil, errNotPlain
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
				return nil, errNotPlain
			}
		}
		v, err := plainValue(dec, depth+1)
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
	// PinnedFirst is at first sight, PinnedCosmetic by a change that nobody would act on, PinnedAccepted by a person,
	// PinnedLocked by the lockfile.
	PinnedFirst    = "first seen"
	PinnedCosmetic = "cosmetic change"
	PinnedAccepted = "accepted"
	PinnedLocked   = "lockfile"
)

// A Pin is the definition of a tool that counts, whatever its server says of the tool later.
type Pin struct {
	// Tool is the server's own name of it.
	Tool string
	// Definition is as the server sent it, Hash its Fingerprint.
	Definition json.RawMessage
	Hash       string
	// How is one of PinnedFirst and its like, At when it was pinned.
	How string
	At  time.Time
	// Offer is what the server says in its place now; nil where it says nothing else that a person has to see.
	Offer *Offer
}

// An Offer is a changed definition that does not count.
type Offer struct {
	Definition json.RawMessage
	Hash       string
	At         time.Time
	// Rejected says that a person wants nothing of it; else it waits for one.
	Rejected bool
}

// equal says whether two pins say the same, whenever they were made.
func (p Pin) equal(q Pin) bool {
	return p.Hash == q.Hash && (p.Offer == nil) == (q.Offer == nil) &&
		(p.Offer == nil || p.Offer.Hash == q.Offer.Hash && p.Offer.Rejected == q.Offer.Rejected)
}

// Accept puts an offer in the place of what is pinned. The error says that the tool offers something else than the hash.
func (p Pin) Accept(hash string, at time.Time) (Pin, error) {
	if p.Offer == nil || p.Offer.Hash != hash {
		return p, errOther
	}
	return Pin{Tool: p.Tool, Definition: p.Offer.Definition, Hash: hash, How: PinnedAccepted, At: at}, nil
}

// Reject keeps an offer from being asked about again, for as long as the server makes it. The error is as for Accept.
func (p Pin) Reject(hash string) (Pin, error) {
	if p.Offer == nil || p.Offer.Hash != hash {
		return p, errOther
	}
	offer := *p.Offer
	offer.Rejected = true
	p.Offer = &offer
	return p, nil
}

var errOther = errors.New("the server says something else by now")

// A Listed is a tool as its server lists it, by the name that it goes by everywhere; no name where it has none.
type Listed struct {
	Tool       string
	Definition json.RawMessage
}

// MostPins is how many tools of a server are remembered, also those that it lists no more. What comes beyond is not shown.
const MostPins = 10_000

// A Settlement is what becomes of a list of tools.
type Settlement struct {
	// Shown are the definitions that count, in the order of the list.
	Shown []json.RawMessage
	// Held are the tools that are shown as they are Pinned and may not be called: a person has to see what they say now. Pinned
	// has those too that are left out because a person rejected what they say.
	Held   []string
	Pinned map[string]json.RawMessage
	// LeftOut says why tools of the list are not shown.
	LeftOut map[string]string
	// Crowded says that some are not shown because their server has named too many.
	Crowded bool
	// Changed are the pins that are new, or not what they were: to be kept.
	Changed []Pin
}

// Settle holds a server's list of tools against what is pinned of it, by the tools' own names: what is new is pinned as it is,
// what means the same passes, so does what is cosmetic, and any other change waits, while the pinned definition stays. A tool
// whose new definition was rejected is left out. What the lockfile says counts more than what was pinned here; locked may be nil.
// Cosmetic says whether nobody needs to see a change, see Shield.Cosmetic.
func Settle(pins, locked map[string]Pin, list []Listed, cosmetic func(before, after json.RawMessage) bool, now time.Time) Settlement {
	out := Settlement{Shown: make([]json.RawMessage, 0, len(list)), Pinned: map[string]json.RawMessage{}, LeftOut: map[string]string{}}
	known, seen := len(pins), make(map[string]bool, len(list))
	for _, l := range list {
		if l.Tool == "" || seen[l.Tool] { // nothing that can be called
			out.Shown = append(out.Shown, l.Definition)
			continue
		}
		seen[l.Tool] = true
		was, ok := pins[l.Tool]
		if !ok {
			if known++; known > MostPins {
				out.LeftOut[l.Tool] = fmt.Sprintf("its server has named more than %d tools", MostPins)
				out.Crowded = true
				continue
			}
		}
		hash := Fingerprint(l.Definition)
		is := settled(was, locked[l.Tool], l, hash, cosmetic, now)
		if !ok || !is.equal(was) {
			out.Changed = append(out.Changed, is)
		}
		switch {
		case is.Offer == nil || is.Offer.Hash != hash:
			out.Shown = append(out.Shown, l.Definition)
		case is.Offer.Rejected:
			out.Pinned[l.Tool] = is.Definition
			out.LeftOut[l.Tool] = "a person rejected what its server says of it now"
		default:
			out.Held = append(out.Held, l.Tool)
			out.Pinned[l.Tool] = is.Definition
			out.Shown = append(out.Shown, is.Definition)
		}
	}
	out.Changed = append(out.Changed, gone(pins, seen)...)
	return out
}

// gone gives the pins of tools that are not listed any more and made an offer: there is nothing to decide. The pin stays, so
// that a tool does not come back as another one.
func gone(pins map[string]Pin, seen map[string]bool) (changed []Pin) {
	for _, p := range pins {
		if !seen[p.Tool] && p.Offer != nil {
			p.Offer = nil
			changed = append(changed, p)
		}
	}
	slices.SortFunc(changed, func(a, b Pin) int { return bytes.Compare([]byte(a.Tool), []byte(b.Tool)) })
	return changed
}

// settled is the pin of a tool once its server has listed it. A zero pin or lock is one that there is not.
func settled(pin, lock Pin, l Listed, hash string, cosmetic func(before, after json.RawMessage) bool, now time.Time) Pin {
	if lock.Hash != "" && lock.Hash != pin.Hash {
		pin.Tool, pin.Definition, pin.Hash, pin.How, pin.At = l.Tool, lock.Definition, lock.Hash, PinnedLocked, now
	}
	switch {
	case pin.Hash == "":
		return Pin{Tool: l.Tool, Definition: l.Definition, Hash: hash, How: PinnedFirst, At: now}
	case pin.Hash == hash:
		pin.Offer = nil
		return pin
	case pin.Offer != nil && pin.Offer.Hash == hash:
		return pin
	}
	if cosmetic(pin.Definition, l.Definition) {
		return Pin{Tool: l.Tool, Definition: l.Definition, Hash: hash, How: PinnedCosmetic, At: now}
	}
	pin.Offer = &Offer{Definition: l.Definition, Hash: hash, At: now}
	return pin
}

// Cosmetic says whether a change needs nobody to look at it. One to what can be read in two ways does: it may say what it said
// before to the one reader only.
func (s *Shield) Cosmetic(before, after json.RawMessage) bool {
	if _, ok := canonical(after); !ok {
		return false
	}
	c, err := s.Compare(before, after)
	return err == nil && !c.Ask
}
