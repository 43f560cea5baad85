package drawbridge

import (
	"context"
	"encoding/json"
)

// A Card is one callable capability. Run is called only by the deck, which has checked the caller before.
type Card interface {
	Spec() Spec

	// Run carries out the call and returns the result object as MCP has it for tools/call. An error is a *Fault
	// where the card knows what went wrong; any other error shows outside as "internal error".
	Run(ctx context.Context, call Call) (Result, error)
}

// A Spec is what is known of a card without calling it.
type Spec struct {
	// Name is the name the card is listed and called by.
	Name CardName
	// Server owns the card; empty for a card that Drawbridge ships.
	Server ServerID
	// Tool is the card's name on its server; equal to Name for a shipped card.
	Tool string
	// Definition is the MCP tool object, as the server sent it but for its name, which is Name.
	Definition json.RawMessage
	// Title and Summary are for people and for help: at most one line each.
	Title, Summary string
	// Scopes must all be held by a caller; none means that every caller may call it.
	Scopes []Scope
	// Crossing is set for a card that writes to the workspace.
	Crossing *Crossing
	// Sandbox says that code in the sandbox may call the card.
	Sandbox bool
	// AppOnly says that the card is for the pages of its server (MCP Apps, a visibility of ["app"]): clients see and
	// may call it, a model is not to be shown it.
	AppOnly bool
}

// A Crossing says how a call that writes to the workspace becomes a write: the registration metadata of a writing card.
type Crossing struct {
	// Content names the argument that carries what is written.
	Content string
	// Sources names the argument with the ids of the entities the content derives from; empty where there is none.
	Sources string
	// ReadTrail says that what the run has read counts as a source too.
	ReadTrail bool
	// Write is the kind of thing written: page, block, property, tag, attachment, permission.
	Write string
}
