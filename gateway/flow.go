package gateway

import (
	"cmp"
	"context"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// guardsOf returns the built-in guards.
func (g *Gateway) guardsOf(c Config) []deck.Guard {
	all := guards.All(guards.Dependencies{
		Rules: g.ruleGuard, OwnFiles: &g.fileGuard, OwnTools: &g.toolGuard, Limiter: g.shared.callLimiter,
		ServerRate: g.serverTable.Rate, Flow: g.flow,
		Agent: guards.AgentGuard{Harmless: cards.HarmlessTools(), Edits: cards.EditTools()},
	})
	if c.withoutFlow {
		all = slices.DeleteFunc(all, func(guard deck.Guard) bool { return guard == deck.Guard(g.flow) })
	}
	return all
}

// updateRows passes rows of servers to the guards that decide by them. p are the rules, which may be nil.
func (g *Gateway) updateRows(p *policy.Policy, rows []config.Server, roots []string) {
	g.ruleGuard.Update(p, rows, roots)
	g.rowLabels.Update(rows)
}

// followLabels makes the guard of information flow, configured by the settings, and the read trail that tells it what
// runs read.
func (g *Gateway) followLabels(ctx context.Context, c Config) {
	s := g.set.Settings.Flow
	if c.Flow != nil {
		s = *c.Flow
	}
	o := guards.FlowOptions{Store: g.shared.db, Context: deck.Context{Dir: c.Dir},
		Roots: slices.Clone(g.set.Settings.Deck.Roots), Off: s.Agent == "off", Clients: cmp.Or(s.Clients, "private"),
		PrivateFiles: append(config.DefaultPrivateFiles(), s.PrivateFiles...), PrivatePages: s.PrivatePages, Endorsement: s.Endorsement,
		Annotations: s.Annotations != nil && *s.Annotations,
		Tools: guards.FlowTools{Edits: cards.EditTools(), Files: cards.FileTools(), Commands: cards.CommandTools(),
			Fetches: cards.FetchTools(), Exports: cards.ExportTools()}}
	for _, root := range g.set.Settings.Roots {
		o.Roots = append(o.Roots, policy.PathSpellings(root.URI, "")[0])
	}
	o.Descriptions = listedTexts{g}
	g.flow = guards.NewFlowGuard(ctx, o, &g.rowLabels)
	g.ruleGuard.UseLabels(g.flow)
	g.trail = deck.NewReadTrail()
	if !c.withoutFlow {
		g.trail.Tracker = g.flow
	}
}

// listedTexts are the descriptions of the servers of a gateway.
type listedTexts struct{ g *Gateway }

var _ guards.Descriptions = listedTexts{}

// ListVersion implements [guards.Descriptions].
func (l listedTexts) ListVersion() uint64 { return l.g.deck.ListVersion() }

// Descriptions implements [guards.Descriptions].
func (l listedTexts) Descriptions() (all []guards.Description) {
	owner := l.g.owner
	owner.Kind = drawbridge.Author
	for _, spec := range l.g.deck.Items(owner, mcp.MethodToolsList) {
		if spec.Server != "" {
			all = append(all, guards.Description{Server: spec.Server, Tool: spec.Tool,
				Text:   rawjson.GetString(spec.Definition, "description"),
				Schema: string(rawjson.Apply(spec.Definition, rawjson.Drop("description")))})
		}
	}
	for _, row := range l.g.Config().Mountable() {
		if listing, ok := l.g.deck.LastListing(row.ID); ok && listing.Instructions != "" {
			all = append(all, guards.Description{Server: row.ID, Text: listing.Instructions})
		}
	}
	return all
}
