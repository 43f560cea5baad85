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

// otherClients is the name of a part that is for all who have no part of their own.
const otherClients = "*"

// clientScopes restrict the owner's rights by the client's name. The zero value restricts nothing.
type clientScopes struct {
	owner  string
	byName map[string][]drawbridge.Scope
}

// newClientScopes makes the parts of clients of an owner, by the names that they call themselves, in which case does
// not matter.
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

// restrict is the caller with the part of the rights that the client has. Who is not the owner proved a part of their
// own, and keeps it.
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

// sessionCaller is the caller as the params of initialize have it. The newest revision is spoken with who names none
// that there is.
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

// requestCaller is the caller as the _meta of a stateless request has it. It points into meta.
func (p clientScopes) requestCaller(c drawbridge.Caller, meta json.RawMessage) drawbridge.Caller {
	c.Era = drawbridge.Modern
	c.Protocol = rawjson.GetString(meta, mcp.MetaProtocolVersion)
	c.Capabilities = rawjson.Get(meta, mcp.MetaClientCapabilities)
	if info := rawjson.Get(meta, mcp.MetaClientInfo); len(info) > 0 && info[0] == '{' {
		c.Client = info
	}
	return p.restrict(c)
}
