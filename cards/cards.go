// Package cards has the cards that Drawbridge ships: each is one Go file with what it does and one text with how it is
// described, and all of them stand in one list, the catalogue.
//
// It promises that every card says its name, title, summary, schemas, annotations and scopes, that its results are text
// for people and structured content for programs, and that arguments it cannot use are answered by a tool error that
// says which and why. A card reads and prepares; nothing it holds can write to the
// workspace.
package cards

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A CardLister is what the control cards need to know of the deck they lie on.
type CardLister interface {
	// Cards gives the cards that the caller may call, in the order they are listed; none for a caller who may call
	// none.
	Cards(caller drawbridge.Caller) []drawbridge.Spec
}

// Catalogue is every card that Drawbridge ships, in the order they are listed. Whatever else is said about shipped
// cards is derived from it.
func Catalogue(d CardLister, doors SignInServers) []drawbridge.Card {
	return []drawbridge.Card{toolsCard(d), scopesCard(), workspaceCard(), signInCard(doors)}
}

// shippedCard is a shipped card: what it is, and what it does.
type shippedCard struct {
	spec drawbridge.Spec
	run  func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
}

var _ drawbridge.Card = shippedCard{}

func (c shippedCard) Spec() drawbridge.Spec { return c.spec }

func (c shippedCard) Run(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	return c.run(ctx, call)
}

// cardDescription is what a card shows. Text is its description; the first line of it is the summary. The schemas are
// JSON.
type cardDescription struct {
	name, title, text string
	input, output     string
	// hints are its annotations; empty means those of a card that only reads.
	hints string
}

// newControlCard makes a control card. But for what its face says it changes nothing, looks nowhere but at the deck,
// and every caller may call it.
func newControlCard(f cardDescription, run func(context.Context, drawbridge.Call) (drawbridge.Result,
	error)) shippedCard {
	text := strings.TrimSpace(f.text)
	summary, _, _ := strings.Cut(text, "\n")
	hints := cmp.Or(f.hints, `{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`)
	definition := rawjson.Apply(nil,
		rawjson.Put(rawjson.Quote(f.name), "name"),
		rawjson.Put(rawjson.Quote(f.title), "title"),
		rawjson.Put(rawjson.Quote(text), "description"),
		rawjson.Put(json.RawMessage(f.input), "inputSchema"),
		rawjson.Put(json.RawMessage(f.output), "outputSchema"),
		rawjson.Put(json.RawMessage(hints), "annotations"),
	)
	return shippedCard{run: run, spec: drawbridge.Spec{
		Name: drawbridge.CardName(f.name), Tool: f.name, Definition: definition,
		Title: f.title, Summary: summary, Sandbox: true,
	}}
}

// newResult makes a result of a text for people and a value for programs.
func newResult(text string, value any) (drawbridge.Result, error) {
	structured, err := json.Marshal(value)
	if err != nil {
		return drawbridge.Result{}, err
	}
	return drawbridge.Result{Raw: rawjson.Apply(textContent(text), rawjson.Put(structured, "structuredContent"))}, nil
}

// newToolError makes the result of a call whose arguments are of no use: an error that the model can read and mend.
func newToolError(why string) (drawbridge.Result, error) {
	return drawbridge.Result{Raw: rawjson.Apply(textContent(why), rawjson.Put(json.RawMessage("true"), "isError"))}, nil
}

func textContent(text string) json.RawMessage {
	block := rawjson.Apply(nil, rawjson.Put(rawjson.Quote("text"), "type"), rawjson.Put(rawjson.Quote(text), "text"))
	return rawjson.Apply(nil, rawjson.Put(json.RawMessage("["+string(block)+"]"), "content"))
}
