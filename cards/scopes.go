package cards

import (
	"context"
	_ "embed" // the description
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

//go:embed scopes.md
var scopesText string

// scopesCard says who its caller is and what they hold. What is said of the client is the client's own claim.
func scopesCard() shippedCard {
	return newControlCard(cardDescription{
		name: "drawbridge_scopes", title: "Show my scopes", text: scopesText,
		input: `{"type":"object","properties":{},"additionalProperties":false,"examples":[{}]}`,
		output: `{"type":"object","properties":{"kind":{"type":"string"},"name":{"type":"string"},` +
			`"client":{"type":"string"},"scopes":{"type":"array","items":{"type":"string"}}},` +
			`"required":["kind","name","client","scopes"]}`,
	}, func(_ context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		c := call.Caller
		value := struct {
			Kind   string             `json:"kind"`
			Name   string             `json:"name"`
			Client string             `json:"client"`
			Scopes []drawbridge.Scope `json:"scopes"`
		}{c.Kind.String(), c.Principal, rawjson.GetString(c.Client, "name"), append([]drawbridge.Scope{}, c.Scopes...)}
		held := make([]string, 0, len(c.Scopes))
		for _, s := range c.Scopes {
			held = append(held, string(s))
		}
		text := fmt.Sprintf("You are %q (%s). Scopes: %s.", value.Name, value.Kind, strings.Join(held, ", "))
		if len(held) == 0 {
			text = fmt.Sprintf("You are %q (%s) and hold no scopes.", value.Name, value.Kind)
		}
		return newResult(text, value)
	})
}
