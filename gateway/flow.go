package gateway

import (
	"cmp"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
)

// newFlowGuard returns the guard of information flow, configured by the settings.
func (g *Gateway) newFlowGuard(c Config) *guards.FlowGuard {
	s := g.set.Settings.Flow
	if c.Flow != nil {
		s = *c.Flow
	}
	o := guards.FlowOptions{Store: g.shared.db, Logger: g.log, Context: deck.Context{Dir: c.Dir},
		Roots: slices.Clone(g.set.Settings.Deck.Roots), Off: s.Agent == "off", Clients: cmp.Or(s.Clients, "private"),
		PrivateFiles: append(config.DefaultPrivateFiles(), s.PrivateFiles...), PrivatePages: s.PrivatePages, Endorsement: s.Endorsement,
		Tools: guards.FlowTools{Edits: cards.EditTools(), Files: cards.FileTools(), Commands: cards.CommandTools(),
			Fetches: cards.FetchTools()}}
	for _, root := range g.set.Settings.Roots {
		o.Roots = append(o.Roots, policy.PathSpellings(root.URI, "")[0])
	}
	return guards.NewFlowGuard(o, &g.rowLabels)
}
