package pins

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
	"github.com/drawbridge-mcp/drawbridge/gateway/vetting"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Rejected is the code of what a person wants nothing of as it changed.
const Rejected = "rejected"

// A Stage has a listing settled, part by part, before anything of it is changed. It is one deck's.
type Stage struct {
	keeper *Keeper

	mu sync.Mutex
	// seen has what came of the last look at each server.
	seen map[drawbridge.ServerID]glance
}

// A glance is what a later look could come out otherwise by: that something of the server is held, and the lockfile, where that
// speaks of it.
type glance struct {
	held, locked bool
	lock         []byte
}

var _ vetting.Stage = (*Stage)(nil)

// NewStage makes a stage.
func NewStage(k *Keeper) *Stage { return &Stage{keeper: k, seen: map[drawbridge.ServerID]glance{}} }

// Look implements [vetting.Stage]. What waits is shown as it is pinned, and a tool or a prompt is held; the server's list is what
// counts for it, not what an earlier stage keeps of it.
func (st *Stage) Look(ctx context.Context, s *vetting.Sight) error {
	subject := Subject{store.PinPlace{Origin: s.Server.Origin, Server: s.Server.ID}, !s.Server.Foreign}
	lock, err := st.keeper.locks(subject)
	if err != nil {
		return err
	}
	seen := glance{locked: subject.Locked, lock: lock.sum}
	for _, part := range shield.Parts() {
		subject.Part = part
		out, err := st.settled(ctx, lock, subject, s)
		if err != nil {
			return fmt.Errorf("hold its %ss against what is pinned: %w", strings.TrimSuffix(wordOf(part), "s"), err)
		}
		seen.held = seen.held || len(out.Held)+len(out.LeftOut) > 0
		apply(s, part, out)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.seen[s.Server.ID] = seen
	return nil
}

// settled is what becomes of a part of the listing.
func (st *Stage) settled(ctx context.Context, lock locks, subject Subject, s *vetting.Sight) (shield.Settlement, error) {
	switch remembered := s.Listing.At.IsZero(); {
	case remembered && subject.Part == "":
		return st.recalled(ctx, subject, s)
	case remembered: // by the ledger, which has tools only
		return shield.Settlement{}, nil
	case subject.Part == "":
		return st.keeper.settleBy(ctx, lock, subject, listed(s))
	}
	return st.keeper.settleBy(ctx, lock, subject, Of(s.Listing, subject.Part))
}

// listed are the tools that the server lists and no earlier stage left out: of two of one name the first, and no more of them
// than there is room for.
func listed(s *vetting.Sight) (list []shield.Listed) {
	wanted := make(map[string]bool, len(s.Tools))
	for _, t := range s.Tools {
		if name := wire.GetText(t.Own, "name"); t.Why == "" && name != "" && (s.Server.MaxTools == 0 || len(wanted) < s.Server.MaxTools) {
			wanted[name] = true
		}
	}
	for _, raw := range s.Listing.Tools {
		if name := wire.GetText(raw, "name"); wanted[name] {
			list = append(list, shield.Listed{Tool: name, Definition: raw})
			delete(wanted, name)
		}
	}
	return list
}

// recalled is the settlement of a list that the ledger remembers: what waits goes on waiting.
func (st *Stage) recalled(ctx context.Context, subject Subject, s *vetting.Sight) (shield.Settlement, error) {
	out := shield.Settlement{LeftOut: map[string]string{}, Pinned: map[string]json.RawMessage{}}
	pins, err := st.keeper.Offered(ctx, subject.PinPlace)
	if err != nil {
		return out, err
	}
	for _, t := range s.Tools {
		switch p := pins[wire.GetText(t.Own, "name")]; {
		case p.Offer == nil:
		case p.Offer.Rejected:
			out.LeftOut[p.Tool] = "a person rejected what its server says of it now"
		default:
			out.Held = append(out.Held, p.Tool)
		}
	}
	return out, nil
}

// apply shows the objects of a part as they were settled.
func apply(s *vetting.Sight, part string, out shield.Settlement) {
	if len(out.Held)+len(out.LeftOut) == 0 {
		return
	}
	if part == shield.PartInstructions {
		instruct(s, out)
		return
	}
	list, member := parted(s, part), memberOf(part)
	held := make(map[string]bool, len(out.Held))
	for _, name := range out.Held {
		held[name] = true
	}
	for i, object := range list {
		name := wire.GetText(object.Own, member)
		if why, ok := out.LeftOut[name]; ok && object.Why == "" {
			list[i].Why, list[i].Code = why, Rejected
			continue
		}
		if object.Why != "" || !held[name] {
			continue
		}
		if pinned := out.Pinned[name]; pinned != nil {
			list[i].Own = pinned
		}
		if part != shield.PartTemplate { // what is read by its URI says what it is
			list[i].Held = "its definition changed, and it waits for a person"
			list[i].Next = AcceptCommand(s.Server.ID, shield.PartLabel(part, name))
		}
		s.Notes = append(s.Notes, deck.Note{
			Kind: wordOf(part), Name: name, Did: "held", Why: "its definition changed: drawbridge shield held " + string(s.Server.ID),
		})
	}
}

// instruct shows the instructions that are pinned in the place of those that changed.
func instruct(s *vetting.Sight, out shield.Settlement) {
	s.Listing.Instructions = wire.GetText(out.Pinned[shield.PartInstructions], "instructions")
	note := deck.Note{Kind: "server", Name: shield.PartInstructions, Did: "held", Why: "they changed: drawbridge shield held " + string(s.Server.ID)}
	if len(out.Held) == 0 {
		note.Did, note.Why = "kept", "a person rejected those that the server gives now"
	}
	s.Notes = append(s.Notes, note)
}

// Again gives the servers at which another look may come to something else: those with something that was held, about which a
// person may have decided since, and those that were held against another lockfile.
func (st *Stage) Again() (all []drawbridge.ServerID) {
	now, err := st.keeper.lock.read()
	st.mu.Lock()
	defer st.mu.Unlock()
	for id, g := range st.seen {
		if g.held || g.locked && (err != nil || !bytes.Equal(g.lock, now.sum)) {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

// plainName is a name that a shell takes for one word, and a command for no flag.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.:-]*$`)

// AcceptCommand is what a person types to accept what has that label. A name that a shell would read otherwise is left out: servers
// choose them.
func AcceptCommand(id drawbridge.ServerID, label string) string {
	command := "drawbridge shield accept " + string(id)
	if plainName.MatchString(label) {
		command += " " + label
	}
	return command
}
