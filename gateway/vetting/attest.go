package vetting

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Codes of what Attest leaves out.
const (
	// Unexpected is a tool that the row's expected_tools does not name.
	Unexpected = "unexpected"
	// Locked is a tool that came after the first list, to a row with lock_tool_list.
	Locked = "locked"
)

// A Firsts remembers the tools that rows were first seen with.
type Firsts interface {
	// FirstTools gives the tools that are kept of a row; where none are it keeps those given.
	FirstTools(ctx context.Context, row string, server drawbridge.ServerID, tools []json.RawMessage) ([]json.RawMessage, error)
}

// Attest holds a server to what its row says of its tools: to those it names, and to the first list. A server with a locked
// list shows the tools of the first one as they were, whatever it lists later.
type Attest struct {
	Firsts Firsts
	Log    *slog.Logger
}

var _ Stage = Attest{}

// Look implements [Stage].
func (a Attest) Look(ctx context.Context, s *Sight) error {
	if s.Server.Locked && !s.Listing.At.IsZero() {
		if err := a.lock(ctx, s); err != nil {
			return err
		}
	}
	if s.Server.Expected == nil {
		return nil
	}
	for i, tool := range s.Tools {
		if tool.Why == "" && !slices.Contains(*s.Server.Expected, wire.GetText(tool.Own, "name")) {
			s.Tools[i].Why, s.Tools[i].Code = `"expected_tools" of its row does not name it`, Unexpected
		}
	}
	return nil
}

// lock puts the first list of tools in the place of this one.
func (a Attest) lock(ctx context.Context, s *Sight) error {
	first, err := a.Firsts.FirstTools(ctx, s.Server.Row, s.Server.ID, s.Listing.Tools)
	if err != nil {
		return fmt.Errorf("compare with the first list of tools: %w", err)
	}
	if slices.EqualFunc(first, s.Listing.Tools, sameBytes) {
		return nil
	}
	now := make(map[string]json.RawMessage, len(s.Tools))
	for _, tool := range s.Tools {
		now[wire.GetText(tool.Own, "name")] = tool.Own
	}
	shown, refused := make([]deck.Shown, 0, len(first)), 0
	for _, raw := range first {
		name := wire.GetText(raw, "name")
		switch is, ok := now[name]; {
		case !ok:
			refused++
			s.note("tool", name, "kept", "the server does not list it any more, and the list is locked")
		case !sameBytes(wire.Canonical(is), wire.Canonical(raw)):
			refused++
			s.note("tool", name, "kept", "the server changed it, and the list is locked: the first definition stays")
		}
		delete(now, name)
		shown = append(shown, deck.Shown{Own: raw})
	}
	for _, tool := range s.Tools {
		if _, fresh := now[wire.GetText(tool.Own, "name")]; fresh {
			refused++
			shown = append(shown, deck.Shown{Own: tool.Own, Why: "it came after the first list, which is locked", Code: Locked})
		}
	}
	s.Tools = shown
	if refused > 0 {
		a.Log.Warn(fmt.Sprintf("tool list refresh rejected for '%s': list is locked after initial connect", s.Server.ID), "differences", refused)
	}
	return nil
}

func sameBytes(a, b json.RawMessage) bool { return string(a) == string(b) }
