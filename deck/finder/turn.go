package finder

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Turn is what a model of our own is about to be asked.
type Turn struct {
	// Query is what it is asked, or the last that was said.
	Query string
	// Recent are the names of cards that were called lately: these stay.
	Recent []string
	// Provider says who runs the model, such as "anthropic" or "openai"; empty is not said. It changes nothing of what is shown.
	Provider string
}

// Definitions are what a model is shown in a turn. Neither the slice nor the bytes may be changed.
type Definitions struct {
	// Cards are in the order they are listed. Where some are left out find_tools is the last, with which the model finds them in the
	// midst of the turn.
	Cards []drawbridge.Spec
	// Raw is their definitions as a JSON array: the same bytes as long as the cards are the same.
	Raw json.RawMessage
	// LeftOut is how many cards are not there.
	LeftOut int
}

// maxTurns is how many turns of a view are remembered.
const maxTurns = 64

// turns remembers what was made of the turns of a view. A view has the same cards for ever, so nothing of it grows old: what
// changes makes another view.
type turns struct {
	asked map[string]Definitions // by all that a turn says
	shown map[string]Definitions // by which cards are shown
}

// Turn gives what a model is shown: the cards that are pinned, those that were called lately, and those that answer the query; all of
// them where they are no more than that, or where nothing is to be found. The same turn has the same bytes, and so has another
// one in which the same cards are shown.
func (v *View) Turn(ctx context.Context, t Turn) Definitions {
	v.f.warn(t.Provider)
	key := t.Query + "\x00" + strings.Join(t.Recent, "\x00")
	v.mu.Lock()
	d, ok := v.turns.asked[key]
	v.mu.Unlock()
	if ok {
		return d
	}
	d = v.define(v.choose(ctx, t))
	if ctx.Err() != nil {
		return d // it may be less than it would be
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.turns.asked) >= maxTurns || v.turns.asked == nil {
		v.turns.asked = map[string]Definitions{}
	}
	v.turns.asked[key] = d
	return d
}

// choose says which cards are shown in a turn.
func (v *View) choose(ctx context.Context, t Turn) []bool {
	chosen := make([]bool, len(v.specs))
	all := 0
	for i, s := range v.specs {
		if shown(s) {
			all++
		}
		chosen[i] = shown(s) && (v.f.pinned(s) || slices.Contains(t.Recent, string(s.Name)))
	}
	if most := v.f.o.TopK; v.f.o.Off || most < 0 || all <= most {
		for i, s := range v.specs {
			chosen[i] = shown(s)
		}
		return chosen
	}
	hits := v.stock.find(ctx, v, index.Search{Text: t.Query, Most: v.f.o.TopK, Relative: max(v.f.o.Relative, 0)})
	for _, h := range hits {
		chosen[v.places[string(h.Spec.Name)]] = true
	}
	for i, left := 0, v.f.o.TopK; len(hits) == 0 && i < len(chosen) && left > 0; i++ {
		if !chosen[i] && shown(v.specs[i]) {
			chosen[i] = true
			left--
		}
	}
	return chosen
}

// define writes the definitions of cards, once for each choice of them.
func (v *View) define(chosen []bool) Definitions {
	which := make([]byte, len(chosen))
	for i, yes := range chosen {
		if yes {
			which[i] = 1
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if d, ok := v.turns.shown[string(which)]; ok {
		return d
	}
	var d Definitions
	for i, s := range v.specs {
		switch {
		case chosen[i]:
			s.Definition = v.f.told(s.Definition)
			d.Cards = append(d.Cards, s)
		case shown(s):
			d.LeftOut++
		}
	}
	if d.LeftOut > 0 {
		own := Own()[0]
		own.Definition = v.findCard()
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
	if len(v.turns.shown) >= maxTurns || v.turns.shown == nil {
		v.turns.shown = map[string]Definitions{}
	}
	v.turns.shown[string(which)] = d
	return d
}

// heeding are the providers whose models make something of an output schema in a description.
var heeding = [...]string{"anthropic", "claude", "openai"}

// maxWarned is how many providers are warned of.
const maxWarned = 16

// warn says, once for each provider, that output schemas are told to a model which makes nothing of them.
func (f *Finder) warn(provider string) {
	if !f.o.TellSchemas || provider == "" || slices.Contains(heeding[:], provider) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.warned[provider] || len(f.warned) >= maxWarned {
		return
	}
	f.warned[provider] = true
	f.o.Logger.Warn("output schemas are told to a model that makes nothing of them: forward_output_schema costs tokens", "provider", provider)
}

// told is a definition with what the card answers said in its description, as far as the options want that: a model that is shown
// no output schemas knows then what to expect.
func (f *Finder) told(definition json.RawMessage) json.RawMessage {
	schema := wire.Get(definition, "outputSchema")
	var b bytes.Buffer
	if !f.o.TellSchemas || schema == nil || json.Compact(&b, schema) != nil {
		return definition
	}
	text := strings.TrimSpace(wire.GetText(definition, "description")) + "\n\nExpected output schema: " + safetext.Truncate(b.String(), f.o.SchemaHint, safetext.Bytes, "")
	return wire.Apply(definition, wire.Put(wire.Quote(strings.TrimSpace(text)), "description"))
}
