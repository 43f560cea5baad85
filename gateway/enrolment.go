package gateway

import (
	"context"
	"errors"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
)

// An enroller is the path from a listing to the deck: vetting.Pipeline, then deck.Enrol. Every listing takes it: the
// remembered one at the start, and those after a reconnect, a list_changed or a reload.
type enroller struct {
	deck     *deck.Deck
	pipeline *vetting.Pipeline
	// locks make the listings of one server follow one another. Listings of different servers are vetted in parallel.
	locks serverLocks
}

// enrol vets a listing and enrols it. The error is the pipeline's, or that of deck.Enrol; then nothing has changed.
func (e *enroller) enrol(ctx context.Context, l drawbridge.Listing) error {
	defer e.locks.lock(l.Server)()
	return e.enrolLocked(ctx, l)
}

func (e *enroller) enrolLocked(ctx context.Context, l drawbridge.Listing) error {
	server, err := e.deck.ServerOf(l)
	if err != nil {
		return err
	}
	vetted, err := e.pipeline.Run(ctx, server, l)
	if err != nil {
		return err
	}
	return e.deck.Enrol(ctx, l, vetted)
}

// reenrol vets the last listing of each server again, since the vetting may decide otherwise now. The error joins those
// of enrol.
func (e *enroller) reenrol(ctx context.Context, servers ...drawbridge.ServerID) error {
	var errs []error
	for _, id := range servers {
		errs = append(errs, func() error {
			defer e.locks.lock(id)()
			if l, ok := e.deck.LastListing(id); ok {
				return e.enrolLocked(ctx, l)
			}
			return nil
		}())
	}
	return errors.Join(errs...)
}

// configure configures the deck with the servers. Those that it does not show yet come with their vetted last listing:
// from mounts, by configuration hash, or else from the ledger.
func (e *enroller) configure(ctx context.Context, servers []deck.Server, mounts map[string]store.MountRecord) error {
	servers = slices.Clone(servers)
	for i, s := range servers {
		if l, ok := e.deck.ListingToVet(s, mounts[s.ConfigHash].Listing); ok {
			vetted, err := e.pipeline.Run(ctx, s, l)
			servers[i].Remembered = &deck.RememberedListing{Listing: l, Vetted: vetted, Err: err}
		}
	}
	return e.deck.Configure(ctx, servers)
}
