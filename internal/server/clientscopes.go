package server

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// otherClients is the name of the entry in the configuration that applies to all clients without an entry of their own.
const otherClients = "*"

// A clientScopes restricts the scopes of the owner's clients by the names that they declare. The zero value restricts
// nothing.
type clientScopes struct {
	owner  string
	byName map[string][]drawbridge.Scope
}

// newClientScopes returns the scopes of the owner's clients. byName maps the names that clients declare to scopes; case
// is ignored.
func newClientScopes(owner string, byName map[string][]drawbridge.Scope) clientScopes {
	p := clientScopes{owner: owner}
	if len(byName) > 0 {
		p.byName = make(map[string][]drawbridge.Scope, len(byName))
	}
	for name, scopes := range byName {
		p.byName[foldClientName(name)] = scopes
	}
	return p
}

// restrict returns the caller with restricted scopes: those scopes in the entry for the caller's client that the caller
// holds. Without an entry, the scopes are unchanged. A caller other than the owner is returned unchanged, because its
// token determines its scopes.
func (p clientScopes) restrict(c drawbridge.Caller) drawbridge.Caller {
	if p.byName == nil || c.Principal != p.owner {
		return c
	}
	part, ok := p.byName[foldClientName(rawjson.GetString(c.Client, "name"))]
	if !ok {
		part, ok = p.byName[otherClients]
	}
	if !ok {
		return c
	}
	all := c
	c.Scopes = []drawbridge.Scope{}
	for _, scope := range part {
		if all.HasScopes([]drawbridge.Scope{scope}) {
			c.Scopes = append(c.Scopes, scope)
		}
	}
	return c
}

func foldClientName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// sessionCaller returns the caller with the protocol version, client and capabilities in the params of initialize, and
// with the restricted scopes. If the protocol version is unknown, the newest stateful version is used.
func (p clientScopes) sessionCaller(c drawbridge.Caller, params json.RawMessage) drawbridge.Caller {
	c.Era = drawbridge.Legacy
	c.Protocol = rawjson.GetString(params, "protocolVersion")
	if !slices.Contains(mcp.LegacyVersions(), c.Protocol) {
		c.Protocol = mcp.LegacyVersions()[0]
	}
	c.Client = bytes.Clone(rawjson.Get(params, "clientInfo"))
	c.Capabilities = bytes.Clone(rawjson.Get(params, "capabilities"))
	return p.restrict(c)
}

// requestCaller returns the caller with the protocol version, client and capabilities in the _meta of a stateless
// request, and with the restricted scopes. The result refers to the bytes of meta.
func (p clientScopes) requestCaller(c drawbridge.Caller, meta mcp.RequestMeta) drawbridge.Caller {
	c.Era, c.Protocol, c.Capabilities = drawbridge.Modern, meta.Version, meta.Capabilities
	if info := meta.ClientInfo; len(info) > 0 && info[0] == '{' {
		c.Client = info
	}
	return p.restrict(c)
}
