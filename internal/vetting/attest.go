package vetting

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// Codes of the tools that AttestStage hides.
const (
	// CodeUnexpected marks a tool that expected_tools in the server's configuration does not name.
	CodeUnexpected = "unexpected"
	// CodeLocked marks a tool that is not in the server's first list, if lock_tool_list is set in the server's
	// configuration.
	CodeLocked = "locked"
)

// A FirstToolStore stores, for each configuration of a server, the first list of tools that the server sent.
type FirstToolStore interface {
	// FirstTools returns the tools that are stored for row, the hash of the server's configuration. If no tools are
	// stored yet, it stores and returns tools.
	FirstTools(ctx context.Context, row string, server drawbridge.ServerID, tools []json.RawMessage) (
		[]json.RawMessage, error)
}

// AttestStage allows only the tools that the server's configuration permits. If expected_tools is set, these are the
// tools that it names. If lock_tool_list is set, these are the tools of the server's first list, with the definitions
// of that list.
type AttestStage struct {
	Store FirstToolStore
	Log   *slog.Logger
}

var _ Stage = AttestStage{}

// Apply implements [Stage].
func (a AttestStage) Apply(ctx context.Context, s *Inspection) error {
	if s.Server.LockTools && !s.Listing.ListedAt.IsZero() {
		if err := a.applyLockedTools(ctx, s); err != nil {
			return err
		}
	}
	if s.Server.ExpectedTools == nil {
		return nil
	}
	for i, tool := range s.Tools {
		if tool.OmitReason == "" && !slices.Contains(*s.Server.ExpectedTools,
			rawjson.GetString(tool.Original, "name")) {
			s.Tools[i].OmitReason, s.Tools[i].Code = `"expected_tools" of its row does not name it`, CodeUnexpected
		}
	}
	return nil
}

// applyLockedTools replaces the list of tools by the first list. Tools that are not in the first list are hidden.
func (a AttestStage) applyLockedTools(ctx context.Context, s *Inspection) error {
	first, err := a.Store.FirstTools(ctx, s.Server.ConfigHash, s.Server.ID, s.Listing.Tools)
	if err != nil {
		return fmt.Errorf("compare with the first list of tools: %w", err)
	}
	if slices.EqualFunc(first, s.Listing.Tools, sameBytes) {
		return nil
	}
	now := make(map[string]json.RawMessage, len(s.Tools))
	for _, tool := range s.Tools {
		now[rawjson.GetString(tool.Original, "name")] = tool.Original
	}
	shown, refused := make([]deck.VettedItem, 0, len(first)), 0
	for _, raw := range first {
		name := rawjson.GetString(raw, "name")
		switch is, ok := now[name]; {
		case !ok:
			refused++
			s.addNote("tool", name, "kept", "the server does not list it any more, and the list is locked")
		case !sameBytes(rawjson.Canonical(is), rawjson.Canonical(raw)):
			refused++
			s.addNote("tool", name, "kept", "the server changed it, and the list is locked: the first definition stays")
		}
		delete(now, name)
		shown = append(shown, deck.VettedItem{Original: raw})
	}
	for _, tool := range s.Tools {
		if _, fresh := now[rawjson.GetString(tool.Original, "name")]; fresh {
			refused++
			shown = append(shown, deck.VettedItem{Original: tool.Original,
				OmitReason: fmt.Sprintf(
					"it came after the first list, which is locked (drawbridge shield unlock %s takes it)",
					s.Server.ID), Code: CodeLocked})
		}
	}
	s.Tools = shown
	if refused > 0 {
		a.Log.Warn(fmt.Sprintf("tool list refresh rejected for '%s': list is locked after initial connect",
			s.Server.ID), "differences", refused)
	}
	return nil
}

func sameBytes(a, b json.RawMessage) bool { return string(a) == string(b) }
