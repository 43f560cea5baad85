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

// Fingerprint returns an identifier of a definition's meaning. It is "sha256:" and the 64 hexadecimal digits of the
// hash of the canonical form. The canonical form has sorted members and no white space between tokens. Every member
// counts, including unknown members. Some definitions have no canonical form, because parsers may read them differently
// (a repeated member, invalid UTF-8, extreme nesting). They are hashed as they are.
func Fingerprint(definition json.RawMessage) string {
	text, _ := canonicalDefinition(definition)
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// canonicalDefinition returns the canonical form of a definition. If there is no canonical form, it returns the
// definition and false.
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

// maxPinDepth is the maximum nesting depth of a definition with a canonical form.
const maxPinDepth = 500

var errAmbiguous = errors.New("parsers may read it differently")

// readUnambiguous reads a JSON value. It refuses repeated members and extreme nesting.
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
			name, _ = t.(string) // the decoder allows only strings as names
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

// The origins of a pin.
const (
	// PinnedFirstSeen is the origin of a definition that was pinned when it was first listed. PinnedCosmetic is that of
	// a harmless change, PinnedAccepted of a change that a person accepted, and PinnedLocked of a definition in the
	// lockfile.
	PinnedFirstSeen = "first seen"
	PinnedCosmetic  = "cosmetic change"
	PinnedAccepted  = "accepted"
	PinnedLocked    = "lockfile"
)

// A Pin is the approved definition of a tool, or of an item of another part. Only a cosmetic change, a change that a
// person accepts, or another definition in the lockfile replaces it.
type Pin struct {
	// Tool is the name that the server uses for the tool.
	Tool string
	// Definition is the definition as the server sent it. Hash is its Fingerprint.
	Definition json.RawMessage
	Hash       string
	// Origin is PinnedFirstSeen, PinnedCosmetic, PinnedAccepted or PinnedLocked. At is the time of pinning.
	Origin string
	At     time.Time
	// Pending is a changed definition that the server lists and that is not approved; nil if there is none.
	Pending *PendingChange
}

// A PendingChange is a changed definition that the server lists and that is not approved.
type PendingChange struct {
	Definition json.RawMessage
	Hash       string
	At         time.Time
	// Rejected reports whether a person rejected the change; otherwise the change waits for a decision.
	Rejected bool
}

// sameAs reports whether two pins are equal except for their times and origins.
func (p Pin) sameAs(q Pin) bool {
	return p.Hash == q.Hash && (p.Pending == nil) == (q.Pending == nil) &&
		(p.Pending == nil || p.Pending.Hash == q.Pending.Hash && p.Pending.Rejected == q.Pending.Rejected)
}

// Accept returns a pin with the pending definition as its definition. It returns an error if hash is not the hash of
// the pending definition, or if no definition is pending.
func (p Pin) Accept(hash string, at time.Time) (Pin, error) {
	if p.Pending == nil || p.Pending.Hash != hash {
		return p, errOtherChange
	}
	return Pin{Tool: p.Tool, Definition: p.Pending.Definition, Hash: hash, Origin: PinnedAccepted, At: at}, nil
}

// Reject returns the pin with the pending definition marked as rejected. The mark is removed when the server lists
// another definition. The error is that of Accept.
func (p Pin) Reject(hash string) (Pin, error) {
	if p.Pending == nil || p.Pending.Hash != hash {
		return p, errOtherChange
	}
	offer := *p.Pending
	offer.Rejected = true
	p.Pending = &offer
	return p, nil
}

var errOtherChange = errors.New("the server's definition has changed since")

// A ListedTool is the definition of a tool, or of an item of another part, that a server lists. Tool is the server's
// name for it; empty if it has no name.
type ListedTool struct {
	Tool       string
	Definition json.RawMessage
}

// MaxPins is the maximum number of pinned tools of one server, including tools that the server no longer lists. After
// that, new tools of the server are not shown.
const MaxPins = 10_000

// A PinOutcome is the result of comparing a list of tools with pins.
type PinOutcome struct {
	// Shown are the definitions to show: one for each listed tool that is not in LeftOut, in the order of the list.
	Shown []json.RawMessage
	// Held are the tools that are shown with their pinned definition because their definition changed. They must not be
	// called until a person decides about the change. Pinned maps held and rejected tools to their pinned definitions.
	Held   []string
	Pinned map[string]json.RawMessage
	// LeftOut maps each tool that is not shown to the reason.
	LeftOut map[string]string
	// TooMany reports whether some tools are not shown because their server has listed more than MaxPins names.
	TooMany bool
	// Changed are the pins to store: new pins and changed pins.
	Changed []Pin
}

// ApplyPins compares a server's list of tools with their pins. A new tool is pinned. An equal definition or a cosmetic
// change is shown. Any other change is held: the pinned definition is shown instead. A tool whose change was rejected
// is left out. locked are the definitions in the lockfile, which take precedence over the pins; it may be nil. cosmetic
// reports whether a change needs no approval, see [Shield.IsCosmetic].
func ApplyPins(pins, locked map[string]Pin, list []ListedTool, cosmetic func(before, after json.RawMessage) bool,
	now time.Time) PinOutcome {
	out := PinOutcome{Shown: make([]json.RawMessage, 0, len(list)), Pinned: map[string]json.RawMessage{},
		LeftOut: map[string]string{}}
	known, seen := len(pins), make(map[string]bool, len(list))
	for _, l := range list {
		if l.Tool == "" || seen[l.Tool] { // a tool with no name or a repeated name cannot be called
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

// withdrawnChanges returns the pins of tools that are no longer listed and had a pending change. The pending change is
// removed from the returned pins. The pinned definition remains, so that a tool that is listed again later is compared
// with it.
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

// pinAfterListing returns the new pin of a tool after its server listed it. A zero pin means that the tool was not
// pinned yet. A zero lock means that the lockfile does not contain the tool.
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

// IsCosmetic reports whether a change needs no approval. A new definition that parsers may read differently always
// needs approval, because some parsers may see another meaning.
func (s *Shield) IsCosmetic(before, after json.RawMessage) bool {
	if _, ok := canonicalDefinition(after); !ok {
		return false
	}
	c, err := s.CompareDefinitions(before, after)
	return err == nil && !c.NeedsApproval
}
