package vetting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
)

// A TrustGate stores evidence about servers and reports which servers are quarantined.
type TrustGate interface {
	AddEvents(id drawbridge.ServerID, events ...trust.Event)
	Quarantined(id drawbridge.ServerID) bool
}

// A Pipeline vets listings and skills. For a listing, it runs the stages, updates Blocked, and checks the server's
// trust.
type Pipeline struct {
	Stages  Chain
	Blocked *BlockedCalls
	Trust   TrustGate
	Log     *slog.Logger
}

// Run returns the part of a listing that may be shown. For one server it must be called in the order of the server's
// listings; different servers may be vetted at once. A panic in a stage is returned as an error. If Run returns an
// error, no part of the listing may be shown.
func (p *Pipeline) Run(ctx context.Context, server deck.Server, l drawbridge.Listing) (deck.VettedListing, error) {
	v, err := p.runStages(ctx, server, l)
	p.Blocked.Update(server.ID, v, err)
	if err != nil {
		return deck.VettedListing{}, fmt.Errorf("vet the listing of %s: %w", server.ID, err)
	}
	p.Trust.AddEvents(server.ID, TrustEvidence(l, v)...) // Quarantined below takes these events into account
	if p.Trust.Quarantined(server.ID) {
		return deck.VettedListing{Notes: v.Notes}, nil
	}
	return v, nil
}

func (p *Pipeline) runStages(ctx context.Context, server deck.Server, l drawbridge.Listing) (
	v deck.VettedListing, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			// Only the type is logged, because the value may contain a text of the server.
			p.Log.Error("a vetting stage panicked, the listing is not shown", "server", server.ID, "panic",
				fmt.Sprintf("%T", cause))
			v, err = deck.VettedListing{}, errors.New("panic")
		}
	}()
	return p.Stages.Vet(ctx, server, l)
}

// FilterSkill returns a skill in the form that may be shown, or nil to hide the skill. It hides all skills of a server
// in quarantine. It is a callback in [deck.Options].
func (p *Pipeline) FilterSkill(ctx context.Context, server deck.Server, skill json.RawMessage) (
	json.RawMessage, error) {
	if p.Trust.Quarantined(server.ID) {
		return nil, nil
	}
	return p.Stages.VetSkill(ctx, server, skill)
}
