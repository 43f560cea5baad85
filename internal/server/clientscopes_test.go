package server

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

func TestAClaimGivesNothing(t *testing.T) {
	type scopes = []drawbridge.Scope
	parts := map[string]scopes{"Cursor": {"mcp:github", "mcp:docs"}, "idle": {}}
	rest := map[string]scopes{"cursor": {"mcp:github"}, otherClients: {"mcp:docs"}}
	for name, tt := range map[string]struct {
		parts           map[string]scopes
		principal, says string
		holds, want     scopes
	}{
		"no parts": {nil, "ada", `{"name":"cursor"}`, scopes{"*"}, scopes{"*"}},
		"a part": {parts, "ada", `{"name":" cursor ","version":"1"}`, scopes{"*"},
			scopes{"mcp:github", "mcp:docs"}},
		"no part of its own":     {parts, "ada", `{"name":"other"}`, scopes{"*"}, scopes{"*"}},
		"the part of the others": {rest, "ada", `{"name":"other"}`, scopes{"*"}, scopes{"mcp:docs"}},
		"no name":                {rest, "ada", ``, scopes{"*"}, scopes{"mcp:docs"}},
		"a name that is none":    {rest, "ada", `{"name":7}`, scopes{"*"}, scopes{"mcp:docs"}},
		"a part that is nothing": {parts, "ada", `{"name":"idle"}`, scopes{"*"}, scopes{}},
		"not more than is held":  {parts, "ada", `{"name":"cursor"}`, scopes{"mcp:github"}, scopes{"mcp:github"}},
		"somebody else":          {parts, "client:ci", `{"name":"cursor"}`, scopes{"mcp:ci"}, scopes{"mcp:ci"}},
	} {
		p := newClientScopes("ada", tt.parts)
		c := drawbridge.Caller{Kind: drawbridge.External, Principal: tt.principal, Scopes: tt.holds}
		session, request := json.RawMessage(`{}`), json.RawMessage(`{}`)
		if tt.says != "" {
			session = rawjson.Apply(session, rawjson.Put(json.RawMessage(tt.says), "clientInfo"))
			request = rawjson.Apply(request, rawjson.Put(json.RawMessage(tt.says), "_meta", mcp.MetaClientInfo))
		}
		if diff := cmp.Diff(tt.want, p.sessionCaller(c, session).Scopes); diff != "" {
			t.Errorf("%s, a session (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tt.want, p.requestCaller(c, mcp.ReadRequestMeta(request)).Scopes); diff != "" {
			t.Errorf("%s, a request (-want +got):\n%s", name, diff)
		}
	}
}
