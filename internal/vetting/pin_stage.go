package vetting

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// CodeRejected marks an item whose definition changed, if a person rejected the change.
const CodeRejected = "rejected"

// A PinStage compares each part of a listing with its pins. A pin is the stored definition of an item as it was first
// listed or last accepted by a person. The stage must run before stages that change definitions. It belongs to one
// deck.
type PinStage struct {
	checker *PinChecker

	mu sync.Mutex
	// lastChecks contains the result of the last check of each server.
	lastChecks map[drawbridge.ServerID]pinCheck
}

// A pinCheck is the result of checking a server's listing, as far as ServersToRecheck needs it. held reports whether an
// item is held or left out. locked reports whether the lockfile covers the server. lockHash is the hash of the lockfile
// at that time.
type pinCheck struct {
	held, locked bool
	lockHash     []byte
}

var _ Stage = (*PinStage)(nil)

// NewPinStage returns a stage that compares listings with the pins of the checker k.
func NewPinStage(k *PinChecker) *PinStage {
	return &PinStage{checker: k, lastChecks: map[drawbridge.ServerID]pinCheck{}}
}

// Apply implements [Stage]. For an item whose definition changed, the pinned definition is shown. A changed tool or
// prompt cannot be called until a person accepts the change. Apply compares the definitions that the server sent, not
// the definitions with which an earlier stage replaced them.
func (st *PinStage) Apply(ctx context.Context, s *Inspection) error {
	subject := PinSubject{store.PinKey{Origin: s.Server.Origin, Server: s.Server.ID}, !s.Server.FromProject}
	lock, err := st.checker.lockedPins(subject)
	if err != nil {
		return err
	}
	seen := pinCheck{locked: subject.InLockfile, lockHash: lock.hash}
	for _, part := range shield.PinnedParts() {
		subject.Part = part
		out, err := st.reconcilePart(ctx, lock, subject, s)
		if err != nil {
			return fmt.Errorf("compare its %ss with the pins: %w", strings.TrimSuffix(partNoun(part), "s"), err)
		}
		seen.held = seen.held || len(out.Held)+len(out.LeftOut) > 0
		applySettlement(s, part, out)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.lastChecks[s.Server.ID] = seen
	return nil
}

// reconcilePart compares one part of the listing with its pins, and stores the pins that changed.
func (st *PinStage) reconcilePart(ctx context.Context, lock lockfilePins, subject PinSubject,
	s *Inspection) (shield.PinOutcome, error) {
	switch remembered := s.Listing.ListedAt.IsZero(); {
	case remembered && subject.Part == "":
		return st.reconcileRemembered(ctx, subject, s)
	case remembered: // stored listings contain tools only
		return shield.PinOutcome{}, nil
	case subject.Part == "":
		return st.checker.reconcileWithLock(ctx, lock, subject, candidateTools(s))
	}
	return st.checker.reconcileWithLock(ctx, lock, subject, PinnableItems(s.Listing, subject.Part))
}

// candidateTools returns the tools that the server lists and no earlier stage left out. If two tools have the same
// name, only the first is returned. It returns at most MaxTools tools, a limit in the server's configuration.
func candidateTools(s *Inspection) (list []shield.ListedTool) {
	wanted := make(map[string]bool, len(s.Tools))
	for _, t := range s.Tools {
		if name := rawjson.GetString(t.Original, "name"); t.OmitReason == "" && name != "" && (s.Server.MaxTools == 0 ||
			len(wanted) < s.Server.MaxTools) {
			wanted[name] = true
		}
	}
	for _, raw := range s.Listing.Tools {
		if name := rawjson.GetString(raw, "name"); wanted[name] {
			list = append(list, shield.ListedTool{Tool: name, Definition: raw})
			delete(wanted, name)
		}
	}
	return list
}

// reconcileRemembered compares the pins with the stored tools of an earlier run. Tools with a changed definition that
// no person has accepted yet remain held.
func (st *PinStage) reconcileRemembered(ctx context.Context, subject PinSubject,
	s *Inspection) (shield.PinOutcome, error) {
	out := shield.PinOutcome{LeftOut: map[string]string{}, Pinned: map[string]json.RawMessage{}}
	pins, err := st.checker.PinsWithOffers(ctx, subject.PinKey)
	if err != nil {
		return out, err
	}
	for _, t := range s.Tools {
		switch p := pins[rawjson.GetString(t.Original, "name")]; {
		case p.Pending == nil:
		case p.Pending.Rejected:
			out.LeftOut[p.Tool] = "a person rejected its present definition"
		default:
			out.Held = append(out.Held, p.Tool)
		}
	}
	return out, nil
}

// applySettlement applies the outcome of comparing a part with its pins to the items of that part.
func applySettlement(s *Inspection, part string, out shield.PinOutcome) {
	if len(out.Held)+len(out.LeftOut) == 0 {
		return
	}
	if part == shield.PartInstructions {
		applyInstructions(s, out)
		return
	}
	list, member := partItems(s, part), nameMember(part)
	held := make(map[string]bool, len(out.Held))
	for _, name := range out.Held {
		held[name] = true
	}
	for i, object := range list {
		name := rawjson.GetString(object.Original, member)
		if why, ok := out.LeftOut[name]; ok && object.OmitReason == "" {
			list[i].OmitReason, list[i].Code = why, CodeRejected
			continue
		}
		if object.OmitReason != "" || !held[name] {
			continue
		}
		if pinned := out.Pinned[name]; pinned != nil {
			list[i].Original = pinned
		}
		if part != shield.PartTemplate { // a template is used by its URI, which is unchanged
			list[i].HeldReason = "its definition changed, and it waits for a person"
			list[i].NextStep = AcceptCommand(s.Server.ID, shield.PinLabel(part, name))
		}
		s.Notes = append(s.Notes, deck.VettingNote{
			Kind: partNoun(part), Name: name, Action: "held", Why: "its definition changed: drawbridge shield held " +
				string(s.Server.ID),
		})
	}
}

// applyInstructions replaces changed instructions by the pinned instructions.
func applyInstructions(s *Inspection, out shield.PinOutcome) {
	s.Listing.Instructions = rawjson.GetString(out.Pinned[shield.PartInstructions], "instructions")
	note := deck.VettingNote{Kind: "server", Name: shield.PartInstructions, Action: "held",
		Why: "they changed: drawbridge shield held " + string(s.Server.ID)}
	if len(out.Held) == 0 {
		note.Action, note.Why = "kept", "a person rejected the server's present instructions"
	}
	s.Notes = append(s.Notes, note)
}

// ServersToRecheck returns the servers whose next check may have a different result. For such a server, an item was
// held and a person may have decided since, or the lockfile has changed.
func (st *PinStage) ServersToRecheck() (all []drawbridge.ServerID) {
	now, err := st.checker.lockfile.read()
	st.mu.Lock()
	defer st.mu.Unlock()
	for id, g := range st.lastChecks {
		if g.held || g.locked && (err != nil || !bytes.Equal(g.lockHash, now.hash)) {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

// shellSafeName matches names that a shell reads as one word and that a command cannot mistake for a flag.
var shellSafeName = lazyregexp.New(`^[A-Za-z0-9_.][A-Za-z0-9_.:-]*$`)

// AcceptCommand returns the command line with which a person accepts the changed item that has the label. Labels
// contain names that servers choose. A label with characters that are special to a shell is omitted; the command then
// accepts all items of the server.
func AcceptCommand(id drawbridge.ServerID, label string) string {
	command := "drawbridge shield accept " + string(id)
	if shellSafeName().MatchString(label) {
		command += " " + label
	}
	return command
}
