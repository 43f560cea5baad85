package vetting

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// CodeRejected is the code of what a person wants nothing of as it changed.
const CodeRejected = "rejected"

// A PinStage has a listing settled, part by part, before anything of it is changed. It is one deck's.
type PinStage struct {
	checker *PinChecker

	mu sync.Mutex
	// lastChecks has what came of the last look at each server.
	lastChecks map[drawbridge.ServerID]pinCheck
}

// A pinCheck is what a later look could come out otherwise by: that something of the server is held, and the lockfile,
// where that speaks of it.
type pinCheck struct {
	held, locked bool
	lockHash     []byte
}

var _ Stage = (*PinStage)(nil)

// NewPinStage makes a stage.
func NewPinStage(k *PinChecker) *PinStage {
	return &PinStage{checker: k, lastChecks: map[drawbridge.ServerID]pinCheck{}}
}

// Apply implements [Stage]. What waits is shown as it is pinned, and a tool or a prompt is held; the server's list is
// what counts for it, not what an earlier stage keeps of it.
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
			return fmt.Errorf("hold its %ss against what is pinned: %w", strings.TrimSuffix(partNoun(part), "s"), err)
		}
		seen.held = seen.held || len(out.Held)+len(out.LeftOut) > 0
		applySettlement(s, part, out)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.lastChecks[s.Server.ID] = seen
	return nil
}

// reconcilePart is what becomes of a part of the listing.
func (st *PinStage) reconcilePart(ctx context.Context, lock lockfilePins, subject PinSubject,
	s *Inspection) (shield.PinOutcome, error) {
	switch remembered := s.Listing.ListedAt.IsZero(); {
	case remembered && subject.Part == "":
		return st.reconcileRemembered(ctx, subject, s)
	case remembered: // by the ledger, which has tools only
		return shield.PinOutcome{}, nil
	case subject.Part == "":
		return st.checker.reconcileWithLock(ctx, lock, subject, candidateTools(s))
	}
	return st.checker.reconcileWithLock(ctx, lock, subject, PinnableItems(s.Listing, subject.Part))
}

// candidateTools are the tools that the server lists and no earlier stage left out: of two of one name the first, and
// no more of them than there is room for.
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

// reconcileRemembered is the settlement of a list that the ledger remembers: what waits goes on waiting.
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
			out.LeftOut[p.Tool] = "a person rejected what its server says of it now"
		default:
			out.Held = append(out.Held, p.Tool)
		}
	}
	return out, nil
}

// applySettlement shows the objects of a part as they were settled.
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
		if part != shield.PartTemplate { // what is read by its URI says what it is
			list[i].HeldReason = "its definition changed, and it waits for a person"
			list[i].NextStep = AcceptCommand(s.Server.ID, shield.PinLabel(part, name))
		}
		s.Notes = append(s.Notes, deck.VettingNote{
			Kind: partNoun(part), Name: name, Action: "held", Why: "its definition changed: drawbridge shield held " +
				string(s.Server.ID),
		})
	}
}

// applyInstructions shows the instructions that are pinned in the place of those that changed.
func applyInstructions(s *Inspection, out shield.PinOutcome) {
	s.Listing.Instructions = rawjson.GetString(out.Pinned[shield.PartInstructions], "instructions")
	note := deck.VettingNote{Kind: "server", Name: shield.PartInstructions, Action: "held",
		Why: "they changed: drawbridge shield held " + string(s.Server.ID)}
	if len(out.Held) == 0 {
		note.Action, note.Why = "kept", "a person rejected those that the server gives now"
	}
	s.Notes = append(s.Notes, note)
}

// ServersToRecheck gives the servers at which another look may come to something else: those with something that was
// held, about which a person may have decided since, and those that were held against another lockfile.
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

// shellSafeName is a name that a shell takes for one word, and a command for no flag.
var shellSafeName = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.:-]*$`)

// AcceptCommand is what a person types to accept what has that label. A name that a shell would read otherwise is left
// out: servers choose them.
func AcceptCommand(id drawbridge.ServerID, label string) string {
	command := "drawbridge shield accept " + string(id)
	if shellSafeName.MatchString(label) {
		command += " " + label
	}
	return command
}
