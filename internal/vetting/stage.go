package vetting

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

// A Stage is one look at a listing.
type Stage interface {
	// Apply changes what s says is shown. An error keeps the whole listing from the deck. It is called for several
	// servers at once, and for one server in the order of its listings.
	Apply(ctx context.Context, s *Inspection) error
}

// A Inspection is a listing, and what is shown of it so far. To the first stage nothing is.
type Inspection struct {
	Server deck.Server
	// Listing is what came. A Listing whose At is zero is what the ledger remembers of the tools.
	Listing drawbridge.Listing
	// Vetted is what is shown. A stage changes its objects where they stand, and may add some and take some away.
	deck.VettedListing
}

// addNote adds a note.
func (s *Inspection) addNote(kind, name, did, why string) {
	s.Notes = append(s.Notes, deck.VettingNote{Kind: kind, Name: name, Action: did, Why: why})
}

// A Chain is stages in their order.
type Chain []Stage

// Vet applies the stages to a listing: each sees the result of those before it. Without stages nothing is shown.
func (c Chain) Vet(ctx context.Context, server deck.Server, l drawbridge.Listing) (deck.VettedListing, error) {
	s := &Inspection{Server: server, Listing: l, VettedListing: deck.VettedListing{
		Tools: unshownItems(l.Tools), Prompts: unshownItems(l.Prompts), Resources: unshownItems(l.Resources),
		Templates: unshownItems(l.Templates),
	}}
	for _, stage := range c {
		if err := stage.Apply(ctx, s); err != nil {
			return deck.VettedListing{}, err
		}
	}
	return s.VettedListing, nil
}

// unshownItems has the objects of a list, none of them shown.
func unshownItems(list []json.RawMessage) []deck.VettedItem {
	out := make([]deck.VettedItem, len(list))
	for i, raw := range list {
		out[i].Original = raw
	}
	return out
}

func countOf(n int, thing string) string {
	if n == 1 {
		return "one " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
