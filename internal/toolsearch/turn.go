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

// A Turn is a request to a model of our own.
type Turn struct {
	// Query is the request, or the last message.
	Query string
	// Recent are the names of recently called tools, which stay.
	Recent []string
	// Provider runs the model, such as "anthropic" or "openai"; empty if unknown. It does not change the shown tools.
	Provider string
}

// Definitions are the tools that a model is shown in a turn. Neither the slice nor the bytes may be changed.
type Definitions struct {
	// Cards are in listed order. If some are left out, find_tools is the last, so that the model can find them during
	// the turn.
	Cards []drawbridge.Spec
	// Raw has their definitions as a JSON array: the same bytes for the same tools.
	Raw json.RawMessage
	// LeftOut is the number of tools that are not shown.
	LeftOut int
}

// maxTurns bounds the cached turns of a view.
const maxTurns = 64

// A turnCache caches the definitions for the turns of a view. A view is immutable, so its entries never expire.
type turnCache struct {
	asked map[string]Definitions // by all that a turn says
	shown map[string]Definitions // by which cards are shown
}

// DefinitionsFor returns the tools for a model: pinned ones, recently called ones, and those that match the query. It
// returns all tools if their number is within the limit, or if search is disabled. Equal turns, or equal choices of
// tools, return equal bytes.
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
		return d // it may be less than it would be
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.turnCache.asked) >= maxTurns || v.turnCache.asked == nil {
		v.turnCache.asked = map[string]Definitions{}
	}
	v.turnCache.asked[key] = d
	return d
}

// chooseCards decides which tools are shown in a turn.
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

// buildDefinitions encodes the definitions of the chosen tools, once for each choice.
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
		own := SearchCards()[0]
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

// schemaAwareProviders are the providers whose models make something of an output schema in a description.
var schemaAwareProviders = [...]string{"anthropic", "claude", "openai"}

// maxWarned bounds the providers that a warning is logged for.
const maxWarned = 16

// warnUnusedSchemas warns, once for each provider, that its models ignore output schemas in descriptions.
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

// withSchemaHint returns a definition with its output schema in the description, as far as the options allow. Models
// are shown no output schemas otherwise.
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
