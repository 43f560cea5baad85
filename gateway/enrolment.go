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

// An enroller vets listings with a vetting.Pipeline and then adds their items to the deck with deck.Enrol. This
// includes the stored listing at the start, and each listing after a reconnect, a list_changed notification or a
// reload.
type enroller struct {
	deck     *deck.Deck
	pipeline *vetting.Pipeline
	// locks ensure that the listings of one server are vetted one after another. Listings of different servers are
	// vetted in parallel.
	locks serverLocks
}

// enrol vets a listing and enrols it. It returns the error of the pipeline or of deck.Enrol; then the deck is
// unchanged.
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

// reenrol vets and enrols the last listing of each server again. It is called when vetting may have another result than
// before, for example after a decision of a person. It returns the joined errors of all servers.
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

// configure sets the servers of the deck. For each server that is not on the deck yet, it vets the last listing and
// passes it to the deck. That listing is the one in mounts, whose keys are configuration hashes, or otherwise a listing
// from the ledger.
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
