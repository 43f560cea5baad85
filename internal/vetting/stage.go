package vetting

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

// A Stage checks a listing and decides which part of the listing is shown.
type Stage interface {
	// Apply changes the vetted listing in s. If Apply returns an error, no part of the listing is shown. Apply may be
	// called for several servers at once. For one server it is called in the order in which the server sent its
	// listings.
	Apply(ctx context.Context, s *Inspection) error
}

// An Inspection is a listing with the result of the stages so far. Before the first stage no item is shown.
type Inspection struct {
	Server deck.Server
	// Listing is the listing that the server sent. If its ListedAt is zero, the server has not sent a listing yet, and
	// Listing contains the stored tools of an earlier run.
	Listing drawbridge.Listing
	// VettedListing is the part that is shown. A stage changes the items in place, and may add or remove items.
	deck.VettedListing
}

// addNote adds a note to the vetted listing.
func (s *Inspection) addNote(kind, name, did, why string) {
	s.Notes = append(s.Notes, deck.VettingNote{Kind: kind, Name: name, Action: did, Why: why})
}

// A Chain is a sequence of stages.
type Chain []Stage

// Vet applies the stages to a listing in order. Each stage gets the result of the stages before it. Without stages no
// item is shown.
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

// unshownItems returns an item for each definition in a list, with only Original set. Such an item is not shown.
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
