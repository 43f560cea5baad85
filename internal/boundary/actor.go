package boundary

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A proof holds what is proven about a caller. It is made by Prove only, and is not changed afterwards.
type proof struct {
	kind                   drawbridge.CallerKind
	principal, thread, run string
	scopes                 []drawbridge.Scope
}

// Prove returns the caller with a proof that it is what it says. Only the parts of Drawbridge that authenticate a caller
// may call it: the command line for its person, and the session of an agent. A script that the caller starts has the
// proof too.
func Prove(c drawbridge.Caller) drawbridge.Caller {
	c.Proof = &proof{c.Kind, c.Principal, c.Thread, c.Run, slices.Clone(c.Scopes)}
	return c
}

// isProven reports whether the caller has a proof, and is still what was proven: it may have fewer rights.
func isProven(c drawbridge.Caller) bool {
	p, ok := c.Proof.(*proof)
	if !ok || p == nil || p.kind != c.OriginKind() || p.principal != c.Principal || p.thread != c.Thread || p.run != c.Run {
		return false
	}
	return !slices.ContainsFunc(c.Scopes, func(s drawbridge.Scope) bool {
		return !slices.ContainsFunc(p.scopes, func(held drawbridge.Scope) bool { return held.Covers(s) })
	})
}

// The principals that stand for all callers of a kind in the grants of a workspace.
const (
	allAgents  = "kind:agent"
	allClients = "kind:client"
)

// usual are the capabilities of agents and of outside clients, unless they are granted others.
var usual = []workspace.Capability{workspace.Read, workspace.Propose, workspace.Remember}

// actor returns who acts in a call, with the capabilities that its scopes and the grants of the workspace leave.
func (w *Workspace) actor(ctx context.Context, call drawbridge.Call) (workspace.Actor, error) {
	grants, err := w.store.Grants(ctx)
	if err != nil {
		return workspace.Actor{}, err
	}
	c := call.Caller
	a := workspace.Actor{Kind: actorKind(c), Script: c.Kind == drawbridge.Sandbox, Principal: c.Principal}
	if a.Thread, a.Run = c.Thread, c.Run; a.Kind != workspace.AuthorActor || a.Script {
		a.Thread, a.Run = deck.ThreadAndRun(c)
	}
	if a.Kind == workspace.ClientActor {
		if a.Declared, err = declared(call); err != nil {
			return workspace.Actor{}, asFault("read the origin of the call", err)
		}
	}
	for _, capability := range workspace.Capabilities() {
		if holds(a, c, grants, capability) {
			a.Capabilities = append(a.Capabilities, capability)
		}
	}
	return a, nil
}

// actorKind returns the kind of actor that a caller is. What is not proven is an outside client.
func actorKind(c drawbridge.Caller) workspace.ActorKind {
	kind := c.OriginKind()
	switch {
	case kind == drawbridge.Nobody:
		return workspace.UnknownActor
	case !isProven(c):
		return workspace.ClientActor
	case kind == drawbridge.Author:
		return workspace.AuthorActor
	case kind == drawbridge.Agent:
		return workspace.AgentActor
	}
	return workspace.ClientActor
}

// holds reports whether an actor holds a capability: the scopes of the caller cover it, and no grant withholds it. What
// is not usual for agents and outside clients needs more: a grant for all agents, or a scope of the client that names the
// workspace.
func holds(a workspace.Actor, c drawbridge.Caller, grants map[string][]workspace.Capability, want workspace.Capability) bool {
	if !c.HasScopes([]drawbridge.Scope{drawbridge.Scope(want)}) {
		return false
	}
	if own, ok := grants[a.Principal]; ok && !slices.Contains(own, want) {
		return false
	}
	switch a.Kind {
	case workspace.AgentActor:
		return slices.Contains(granted(grants, allAgents, usual), want)
	case workspace.ClientActor:
		named := slices.ContainsFunc(c.Scopes, func(s drawbridge.Scope) bool {
			return strings.HasPrefix(string(s), "workspace:") && s.Covers(drawbridge.Scope(want))
		})
		return (named || slices.Contains(usual, want)) && slices.Contains(granted(grants, allClients, workspace.Capabilities()), want)
	}
	return true
}

func granted(grants map[string][]workspace.Capability, principal string, otherwise []workspace.Capability) []workspace.Capability {
	if own, ok := grants[principal]; ok {
		return own
	}
	return otherwise
}

// declared returns the origin that an outside client declares: that of its registration, or the less trusted one that
// the call names.
func declared(call drawbridge.Call) (workspace.Origin, error) {
	registered := workspace.Origin(call.Caller.Origin)
	if registered == "" {
		registered = workspace.AgentProduced
	}
	value := rawjson.Get(call.Params, "_meta", deck.MetaOrigin)
	if value == nil {
		return registered, nil
	}
	named, isString := rawjson.DecodeString(value)
	if !isString {
		return "", &workspace.Error{Code: workspace.Invalid, Reason: deck.MetaOrigin + " must be a string"}
	}
	origin := workspace.Origin(named)
	if !origin.Valid() {
		return "", &workspace.Error{Code: workspace.Invalid, Reason: fmt.Sprintf("the origin %.40q does not exist", named)}
	}
	if workspace.JoinOrigins(registered, origin) != origin {
		return "", &workspace.Error{Code: workspace.Forbidden,
			Reason: fmt.Sprintf("the client is registered with the origin %s, which is less trusted than %s", registered, origin)}
	}
	return origin, nil
}
