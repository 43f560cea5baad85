package toolsearch

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Turn describes one request to a model that Drawbridge runs. DefinitionsFor chooses the tools for it.
type Turn struct {
	// Query is the text of the request to the model, or the last message in it.
	Query string
	// Recent contains the names of recently called tools. These tools are always among the definitions.
	Recent []string
	// Provider is the provider of the model, such as "anthropic" or "openai"; empty if unknown. It does not affect
	// which tools are shown.
	Provider string
}

// Definitions are the tools that a model gets in a Turn. Callers must not modify them.
type Definitions struct {
	// Cards contains the tools in listed order. If some tools of the view are omitted, find_tools is the last
	// element, so that the model can find the omitted tools.
	Cards []drawbridge.Spec
	// Raw contains the definitions of Cards as a JSON array. For the same tools it is equal byte for byte.
	Raw json.RawMessage
	// LeftOut is the number of omitted tools that models may see.
	LeftOut int
}

// maxTurns is the maximum number of cached turns of a view.
const maxTurns = 64

// A turnCache caches the results of DefinitionsFor for one view. Entries do not expire, because a view is immutable.
type turnCache struct {
	asked map[string]Definitions // by the Query and Recent of a turn
	shown map[string]Definitions // by the chosen tools, with a byte 1 or 0 for each tool
}

// DefinitionsFor returns the tools for a model: pinned tools, recently called tools, and tools that match the query.
// If no tool matches, it adds the first tools of the view, at most Options.TopK. If the view has at most Options.TopK
// tools, or the search is disabled, it returns all tools. Turns for which the same tools are chosen get the same
// bytes.
func (v *CardView) DefinitionsFor(ctx context.Context, t Turn) Definitions {
	v.finder.warnUnusedSchemas(t.Provider)
	key := t.Query + "\x00" + strings.Join(t.Recent, "\x00")
	v.mu.Lock()
	d, ok := v.turnCache.asked[key]
	v.mu.Unlock()
	if ok {
		return d
	}
	d = v.buildDefinitions(v.chooseCards(ctx, t))
	if ctx.Err() != nil {
		return d // do not cache the result: the search may be incomplete
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.turnCache.asked) >= maxTurns || v.turnCache.asked == nil {
		v.turnCache.asked = map[string]Definitions{}
	}
	v.turnCache.asked[key] = d
	return d
}

// chooseCards chooses the tools for a Turn. The result contains true at the index of each chosen tool in specs.
func (v *CardView) chooseCards(ctx context.Context, t Turn) []bool {
	chosen := make([]bool, len(v.specs))
	all := 0
	for i, s := range v.specs {
		if isModelVisible(s) {
			all++
		}
		chosen[i] = isModelVisible(s) && (v.finder.isPinned(s) || slices.Contains(t.Recent, string(s.Name)))
	}
	if most := v.finder.options.TopK; v.finder.options.Disabled || most < 0 || all <= most {
		for i, s := range v.specs {
			chosen[i] = isModelVisible(s)
		}
		return chosen
	}
	hits := v.index.search(ctx, v, index.Query{Text: t.Query, Limit: v.finder.options.TopK,
		MinRelativeScore: max(v.finder.options.MinRelativeScore, 0)})
	for _, h := range hits {
		chosen[v.places[string(h.Spec.Name)]] = true
	}
	for i, left := 0, v.finder.options.TopK; len(hits) == 0 && i < len(chosen) && left > 0; i++ {
		if !chosen[i] && isModelVisible(v.specs[i]) {
			chosen[i] = true
			left--
		}
	}
	return chosen
}

// buildDefinitions returns the definitions of the chosen tools, see chooseCards. It caches the result for each set of
// chosen tools.
func (v *CardView) buildDefinitions(chosen []bool) Definitions {
	which := make([]byte, len(chosen))
	for i, yes := range chosen {
		if yes {
			which[i] = 1
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if d, ok := v.turnCache.shown[string(which)]; ok {
		return d
	}
	var d Definitions
	for i, s := range v.specs {
		switch {
		case chosen[i]:
			s.Definition = v.finder.withSchemaHint(s.Definition)
			d.Cards = append(d.Cards, s)
		case isModelVisible(s):
			d.LeftOut++
		}
	}
	if d.LeftOut > 0 {
		own := v.finder.SearchCards()[0]
		own.Definition = v.findToolsDefinition()
		d.Cards = append(d.Cards, own)
	}
	raw := []byte{'['}
	for i, s := range d.Cards {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, s.Definition...)
	}
	d.Raw = append(raw, ']')
	if len(v.turnCache.shown) >= maxTurns || v.turnCache.shown == nil {
		v.turnCache.shown = map[string]Definitions{}
	}
	v.turnCache.shown[string(which)] = d
	return d
}

// schemaAwareProviders contains the providers whose models make use of an output schema in the description of a tool.
var schemaAwareProviders = [...]string{"anthropic", "claude", "openai"}

// maxWarned is the maximum number of providers for which a warning is logged.
const maxWarned = 16

// warnUnusedSchemas logs a warning if Options.DescribeSchemas is set and the models of the provider ignore output
// schemas in descriptions. It logs one warning for each provider.
func (f *Finder) warnUnusedSchemas(provider string) {
	if !f.options.DescribeSchemas || provider == "" || slices.Contains(schemaAwareProviders[:], provider) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.warned[provider] || len(f.warned) >= maxWarned {
		return
	}
	f.warned[provider] = true
	f.options.Logger.Warn(
		"output schemas are told to a model that makes nothing of them: forward_output_schema costs tokens",
		"provider", provider)
}

// withSchemaHint returns the definition with its output schema appended to the description, because models get only
// the description. If Options.DescribeSchemas is not set, or there is no output schema, it returns the definition
// unchanged.
func (f *Finder) withSchemaHint(definition json.RawMessage) json.RawMessage {
	schema := rawjson.Get(definition, "outputSchema")
	var b bytes.Buffer
	if !f.options.DescribeSchemas || schema == nil || json.Compact(&b, schema) != nil {
		return definition
	}
	text := strings.TrimSpace(rawjson.GetString(definition, "description")) + "\n\nExpected output schema: " +
		safetext.Truncate(b.String(), f.options.MaxSchemaHint, safetext.Bytes, "")
	return rawjson.Apply(definition, rawjson.Put(rawjson.Quote(strings.TrimSpace(text)), "description"))
}
