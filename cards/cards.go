// Package cards has the cards that Drawbridge ships: each is one Go file with what it does and one text with how it is
// described, and all of them stand in one list, the catalogue.
//
// It promises that every card says its name, title, summary, schemas, annotations and scopes, that its results are text
// for people and structured content for programs, and that arguments it cannot use are answered by a tool error that says
// which and why. A card reads and prepares; nothing it holds can write to the
// workspace.
package cards

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Deck is what the control cards need to know of the deck they lie on.
type Deck interface {
	// Cards gives the cards that the caller may call, in the order they are listed; none for a caller who may call none.
	Cards(caller drawbridge.Caller) []drawbridge.Spec
}

// Catalogue is every card that Drawbridge ships, in the order they are listed. Whatever else is said about shipped cards
// is derived from it.
func Catalogue(d Deck, doors Doors) []drawbridge.Card {
	return []drawbridge.Card{toolsCard(d), scopesCard(), workspaceCard(), signInCard(doors)}
}

// card is a shipped card: what it is, and what it does.
type card struct {
	spec drawbridge.Spec
	run  func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
}

var _ drawbridge.Card = card{}

func (c card) Spec() drawbridge.Spec { return c.spec }

func (c card) Run(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	return c.run(ctx, call)
}

// face is what a card shows. Text is its description; the first line of it is the summary. The schemas are JSON.
type face struct {
	name, title, text string
	input, output     string
	// hints are its annotations; empty means those of a card that only reads.
	hints string
}

// control makes a control card. But for what its face says it changes nothing, looks nowhere but at the deck, and every caller
// may call it.
func control(f face, run func(context.Context, drawbridge.Call) (drawbridge.Result, error)) card {
	text := strings.TrimSpace(f.text)
	summary, _, _ := strings.Cut(text, "\n")
	hints := cmp.Or(f.hints, `{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`)
	definition := wire.Apply(nil,
		wire.Put(wire.Quote(f.name), "name"),
		wire.Put(wire.Quote(f.title), "title"),
		wire.Put(wire.Quote(text), "description"),
		wire.Put(json.RawMessage(f.input), "inputSchema"),
		wire.Put(json.RawMessage(f.output), "outputSchema"),
		wire.Put(json.RawMessage(hints), "annotations"),
	)
	return card{run: run, spec: drawbridge.Spec{
		Name: drawbridge.CardName(f.name), Tool: f.name, Definition: definition,
		Title: f.title, Summary: summary, Sandbox: true,
	}}
}

// answer makes a result of a text for people and a value for programs.
func answer(text string, value any) (drawbridge.Result, error) {
	structured, err := json.Marshal(value)
	if err != nil {
		return drawbridge.Result{}, err
	}
	return drawbridge.Result{Raw: wire.Apply(content(text), wire.Put(structured, "structuredContent"))}, nil
}

// refuse makes the result of a call whose arguments are of no use: an error that the model can read and mend.
func refuse(why string) (drawbridge.Result, error) {
	return drawbridge.Result{Raw: wire.Apply(content(why), wire.Put(json.RawMessage("true"), "isError"))}, nil
}

func content(text string) json.RawMessage {
	block := wire.Apply(nil, wire.Put(wire.Quote("text"), "type"), wire.Put(wire.Quote(text), "text"))
	return wire.Apply(nil, wire.Put(json.RawMessage("["+string(block)+"]"), "content"))
}
