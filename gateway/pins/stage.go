package pins

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway/vetting"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Rejected is the code of a tool whose changed definition a person wants nothing of.
const Rejected = "rejected"

// A Stage has a listing's tools settled, before anything of them is changed. It is one deck's.
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

// Look implements [vetting.Stage]. A tool that waits is shown as it is pinned, and held; the server's list is what counts for
// it, not what an earlier stage keeps of it.
func (st *Stage) Look(ctx context.Context, s *vetting.Sight) error {
	subject := Subject{store.PinPlace{Origin: s.Server.Origin, Server: s.Server.ID}, !s.Server.Foreign}
	out := shield.Settlement{}
	var err error
	if s.Listing.At.IsZero() {
		out, err = st.recalled(ctx, subject, s)
	} else {
		out, err = st.keeper.Settle(ctx, subject, listed(s))
	}
	if err != nil {
		return fmt.Errorf("hold its tools against what is pinned: %w", err)
	}
	_, lock, err := st.keeper.locked(subject)
	if err != nil {
		return err
	}
	st.mu.Lock()
	st.seen[s.Server.ID] = glance{len(out.Held)+len(out.LeftOut) > 0, subject.Locked, lock}
	st.mu.Unlock()
	apply(s, out)
	return nil
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

// apply shows tools as they were settled.
func apply(s *vetting.Sight, out shield.Settlement) {
	if len(out.Held)+len(out.LeftOut) == 0 {
		return
	}
	for i, t := range s.Tools {
		name := wire.GetText(t.Own, "name")
		if why, ok := out.LeftOut[name]; ok && t.Why == "" {
			s.Tools[i].Why, s.Tools[i].Code = why, Rejected
			continue
		}
		if t.Why != "" || !slices.Contains(out.Held, name) {
			continue
		}
		if pinned := out.Pinned[name]; pinned != nil {
			s.Tools[i].Own = pinned
		}
		s.Tools[i].Held = "its definition changed, and it waits for a person"
		s.Tools[i].Next = AcceptCommand(s.Server.ID, name)
		s.Notes = append(s.Notes, deck.Note{
			Kind: "tool", Name: name, Did: "held", Why: "its definition changed: drawbridge shield held " + string(s.Server.ID),
		})
	}
}

// Again gives the servers at which another look may come to something else: those with a tool that was held, about which a
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
var plainName = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*$`)

// AcceptCommand is what a person types to accept a tool. A name that a shell would read otherwise is left out: servers choose them.
func AcceptCommand(id drawbridge.ServerID, tool string) string {
	command := "drawbridge shield accept " + string(id)
	if plainName.MatchString(tool) {
		command += " " + tool
	}
	return command
}
