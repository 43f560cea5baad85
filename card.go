package drawbridge

import (
	"context"
	"encoding/json"
)

// A Card is one callable tool. Only package deck calls Run, after it has checked the caller's rights.
type Card interface {
	Spec() Spec

	// Run carries out the call and returns the result object that MCP defines for tools/call. An error is a *Fault if
	// the card knows the cause; clients see any other error as "internal error".
	Run(ctx context.Context, call Call) (Result, error)
}

// A Spec describes a card: everything that is known without a call.
type Spec struct {
	// Name is the name under which clients list and call the card.
	Name CardName
	// Server is the server that offers the card; empty for a card that Drawbridge ships.
	Server ServerID
	// Tool is the card's name on its server; it equals Name for a shipped card.
	Tool string
	// Definition is the MCP tool object as the server sent it, with the member "name" replaced by Name.
	Definition json.RawMessage
	// Title and Summary are short texts for people and for the help command, at most one line each.
	Title, Summary string
	// Scopes must all be held by the caller; an empty list admits every caller.
	Scopes []Scope
	// Crossing is set for a card that writes to the workspace.
	Crossing *Crossing
	// Sandbox is set if a script in the sandbox may call the card.
	Sandbox bool
	// AppOnly is set for a card that only the server's own pages use (MCP Apps, a visibility of ["app"]). Clients may
	// list and call the card, but must not show it to a model.
	AppOnly bool
	// HasPage is set for a tool that names a page, which clients show if the tool is in their list and is called by its
	// name (MCP Apps).
	HasPage bool
}

// A Crossing describes how a call of a card writes to the workspace.
type Crossing struct {
	// Content is the name of the argument with the content to write; empty if no argument has it. The audit has the
	// SHA-256 of this argument and of the argument "title" in their place.
	Content string
	// Sources is the name of the argument with the ids of the entities from which the content is derived; empty without
	// such an argument.
	Sources string
	// ReadTrail is set if everything that the agent's run has read before the call also counts as a source of the
	// content.
	ReadTrail bool
	// Write is the kind of object written: page, block, property, tag, attachment, permission, memory or review.
	Write string
	// Imports is set if the content comes from files that the caller names: its origin is imported.
	Imports bool
}
