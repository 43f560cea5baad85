// Package claim reads what a client says of itself, at initialize or with each request: its name, its protocol, what it can do.
//
// All of that is its word only. It promises that no claim gives a right: what somebody calls themselves may take some of those away
// that were proved, and never adds one.
package claim

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Others is the name of a part that is for all who have no part of their own.
const Others = "*"

// Parts say what of an owner's rights their clients have. The zero value takes nothing away.
type Parts struct {
	owner string
	held  map[string][]drawbridge.Scope
}

// NewParts makes the parts of clients of an owner, by the names that they call themselves, in which case does not matter.
func NewParts(owner string, byName map[string][]drawbridge.Scope) Parts {
	p := Parts{owner: owner}
	if len(byName) > 0 {
		p.held = make(map[string][]drawbridge.Scope, len(byName))
	}
	for name, scopes := range byName {
		p.held[fold(name)] = scopes
	}
	return p
}

// Of is the caller with the part of the rights that the client has. Who is not the owner proved a part of their own, and keeps it.
func (p Parts) Of(c drawbridge.Caller) drawbridge.Caller {
	if p.held == nil || c.Principal != p.owner {
		return c
	}
	part, ok := p.held[fold(wire.GetText(c.Client, "name"))]
	if !ok {
		part, ok = p.held[Others]
	}
	if !ok {
		return c
	}
	all := c
	c.Scopes = []drawbridge.Scope{}
	for _, scope := range part {
		if all.Holds([]drawbridge.Scope{scope}) {
			c.Scopes = append(c.Scopes, scope)
		}
	}
	return c
}

func fold(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// Session is the caller as the params of initialize have it. The newest revision is spoken with who names none that there is.
func (p Parts) Session(c drawbridge.Caller, params json.RawMessage) drawbridge.Caller {
	c.Era = drawbridge.Legacy
	c.Protocol = wire.GetText(params, "protocolVersion")
	if !slices.Contains(wire.LegacyVersions(), c.Protocol) {
		c.Protocol = wire.LegacyVersions()[0]
	}
	c.Client = bytes.Clone(wire.Get(params, "clientInfo"))
	c.Capabilities = bytes.Clone(wire.Get(params, "capabilities"))
	return p.Of(c)
}

// Request is the caller as the _meta of a stateless request has it. It points into meta.
func (p Parts) Request(c drawbridge.Caller, meta json.RawMessage) drawbridge.Caller {
	c.Era = drawbridge.Modern
	c.Protocol = wire.GetText(meta, wire.MetaProtocolVersion)
	c.Capabilities = wire.Get(meta, wire.MetaClientCapabilities)
	if info := wire.Get(meta, wire.MetaClientInfo); len(info) > 0 && info[0] == '{' {
		c.Client = info
	}
	return p.Of(c)
}
