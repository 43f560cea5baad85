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

// scopesInput is empty: the card has no arguments.
type scopesInput struct{}

// scopesOutput describes the caller. Client is the name that the client gave itself; it is not verified.
type scopesOutput struct {
	Kind   string             `json:"kind"`
	Name   string             `json:"name"`
	Client string             `json:"client"`
	Scopes []drawbridge.Scope `json:"scopes"`
}

// newScopesCard returns the card that shows the identity and the scopes of its caller.
func newScopesCard() drawbridge.Card {
	return newShipped(Description[scopesInput]{
		Name: "drawbridge_scopes", Title: "Show my scopes", Text: scopesText,
		Examples: []scopesInput{{}},
	}, func(_ context.Context, call drawbridge.Call, _ scopesInput) (Answer[scopesOutput], error) {
		c := call.Caller
		out := scopesOutput{c.Kind.String(), c.Principal, rawjson.GetString(c.Client, "name"),
			append([]drawbridge.Scope{}, c.Scopes...)}
		held := make([]string, 0, len(c.Scopes))
		for _, s := range c.Scopes {
			held = append(held, string(s))
		}
		text := fmt.Sprintf("You are %q (%s). Scopes: %s.", out.Name, out.Kind, strings.Join(held, ", "))
		if len(held) == 0 {
			text = fmt.Sprintf("You are %q (%s) and hold no scopes.", out.Name, out.Kind)
		}
		return Answer[scopesOutput]{Text: text, Value: out}, nil
	})
}
