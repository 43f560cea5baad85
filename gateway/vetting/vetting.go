// Package vetting looks at what servers list on its way to the deck: stage after stage, each of which may change what is
// shown, hold it, or leave it out.
//
// It promises that nothing is shown which no stage let through; that what nobody changed is shown to the byte; that
// everything done is in the notes, for people; and that an honest listing which was looked at once costs next to nothing
// when it comes again, in this process or the next.
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
	// Look changes what s says is shown. An error keeps the whole listing from the deck. It is called for several servers at
	// once, and for one server in the order of its listings.
	Look(ctx context.Context, s *Sight) error
}

// A Sight is a listing, and what is shown of it so far. To the first stage nothing is.
type Sight struct {
	Server deck.Member
	// Listing is what came. A Listing whose At is zero is what the ledger remembers of the tools.
	Listing drawbridge.Listing
	// Vetted is what is shown. A stage changes its objects where they stand, and may add some and take some away.
	deck.Vetted
}

// Left says whether an object was left out by an earlier stage, or has not been shown by any.
func Left(s deck.Shown) bool { return s.Definition == nil }

// note adds a note.
func (s *Sight) note(kind, name, did, why string) {
	s.Notes = append(s.Notes, deck.Note{Kind: kind, Name: name, Did: did, Why: why})
}

// A Chain is stages in their order, as the deck wants them.
type Chain []Stage

var _ deck.Vetter = Chain(nil)

// Vet implements [deck.Vetter]: each stage looks at what the ones before it left.
func (c Chain) Vet(ctx context.Context, server deck.Member, l drawbridge.Listing) (deck.Vetted, error) {
	s := &Sight{Server: server, Listing: l, Vetted: deck.Vetted{
		Tools: hidden(l.Tools), Prompts: hidden(l.Prompts), Resources: hidden(l.Resources), Templates: hidden(l.Templates),
	}}
	for _, stage := range c {
		if err := stage.Look(ctx, s); err != nil {
			return deck.Vetted{}, err
		}
	}
	return s.Vetted, nil
}

// hidden has the objects of a list, none of them shown.
func hidden(list []json.RawMessage) []deck.Shown {
	out := make([]deck.Shown, len(list))
	for i, raw := range list {
		out[i].Own = raw
	}
	return out
}

func several(n int, thing string) string {
	if n == 1 {
		return "one " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
