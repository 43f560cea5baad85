package deck

import (
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A CallerFilter selects callers by their transport and name: those whose results are marked as foreign text, and those
// that are listed all tools. The zero value selects no caller.
type CallerFilter struct {
	// HTTP selects every caller of the HTTP endpoint.
	HTTP bool
	// Clients selects external clients by the name that a client declares, in any letter case, or by the name of its
	// token.
	Clients []string
}

// Selects reports whether the filter selects the caller.
func (f CallerFilter) Selects(c drawbridge.Caller) bool {
	if f.HTTP && c.Transport == drawbridge.HTTPTransport {
		return true
	}
	return len(f.Clients) > 0 && c.Kind == drawbridge.External && slices.ContainsFunc(f.Clients,
		func(name string) bool {
			return strings.EqualFold(name, strings.TrimSpace(rawjson.GetString(c.Client, "name"))) ||
				c.Principal == "client:"+name
		})
}
