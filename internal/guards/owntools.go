package guards

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ownToolsRule is the name of the guard in records and messages.
const ownToolsRule = "own-tools"

// explicitScopes must be held by name: a client that holds "*" does not write files or execute commands.
var explicitScopes = []drawbridge.Scope{"fs:write", "exec"}

// pathArguments are the arguments of Drawbridge's own tools that name a file or a directory.
var pathArguments = []string{"path", "cwd"}

// An OwnToolGuard decides which clients may call Drawbridge's own tools. Without a profile no client may. A tool that
// writes or executes needs its scope by name, and a path outside the roots of the client needs a person's approval. The
// person at the command line may call all of them. The zero value hides all from clients.
type OwnToolGuard struct {
	// Catalogue lists the tools; nil for none.
	Catalogue *deck.Catalogue
	// Profile is for all clients. Clients are the profiles of single clients: by the name that a client on standard input
	// declares, in any case, or by that of the token of a client over HTTP.
	Profile deck.Profile
	Clients map[string]deck.Profile
	// Context has the directory in which relative paths of clients without one of their own start.
	Context deck.Context
	// Roots are directories that every client may use. Home is no root if a client was started in it; nor is "/".
	Roots []string
	Home  string
}

var _ deck.ExplainingGuard = (*OwnToolGuard)(nil)

// ShowsOwnTools reports whether a client has a profile.
func (g *OwnToolGuard) ShowsOwnTools(caller drawbridge.Caller) bool {
	return g.ProfileOf(caller) != deck.NoProfile
}

// ProfileOf returns the profile of a client, and NoProfile for the person at the command line and the agent.
func (g *OwnToolGuard) ProfileOf(caller drawbridge.Caller) deck.Profile {
	if caller.Kind != drawbridge.External {
		return deck.NoProfile
	}
	return g.profileOf(caller)
}

// profileOf returns the profile of a client. A declared name counts only on standard input, where the person has started
// the client.
func (g *OwnToolGuard) profileOf(caller drawbridge.Caller) deck.Profile {
	name, isToken := strings.CutPrefix(caller.Principal, "client:")
	if !isToken && caller.Transport == drawbridge.StdioTransport {
		name = strings.ToLower(strings.TrimSpace(rawjson.GetString(caller.Client, "name")))
		isToken = name != ""
	}
	if p, ok := g.Clients[name]; ok && isToken {
		return p
	}
	return g.Profile
}

// isOwnTool reports whether an item is one of the tools of the catalogue.
func (g *OwnToolGuard) isOwnTool(kind string, spec *drawbridge.Spec) bool {
	return kind == "tool" && spec.Server == "" && g.Catalogue != nil && g.Catalogue.Has(drawbridge.CardName(spec.Tool))
}

// Hides reports whether an item is a tool that the client may not call.
func (g *OwnToolGuard) Hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) bool {
	return g.HideReason(caller, kind, spec).Effect == drawbridge.Deny
}

// HideReason returns why an item is hidden.
func (g *OwnToolGuard) HideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) drawbridge.Verdict {
	allow := drawbridge.Verdict{Effect: drawbridge.Allow}
	if !g.isOwnTool(kind, &spec) {
		return allow
	}
	refused := drawbridge.Verdict{Effect: drawbridge.Deny, Rule: ownToolsRule, Hide: true}
	switch caller.Kind {
	case drawbridge.Author, drawbridge.Agent:
		return allow
	case drawbridge.External:
	default:
		refused.Reason = "Drawbridge's own tools are for clients and agents"
		return refused
	}
	if !g.profileOf(caller).Selects(g.Catalogue.ProfilesOf(drawbridge.CardName(spec.Tool))) {
		refused.Reason = "the client's profile in [deck] does not have the tool"
		return refused
	}
	for _, scope := range spec.Scopes {
		if slices.Contains(explicitScopes, scope) && !holdsByName(caller, scope) {
			refused.Reason = fmt.Sprintf("the client does not hold the scope %s by name", scope)
			return refused
		}
	}
	return allow
}

// holdsByName reports whether the caller holds a scope other than "*" that covers a scope.
func holdsByName(caller drawbridge.Caller, scope drawbridge.Scope) bool {
	return slices.ContainsFunc(caller.Scopes, func(s drawbridge.Scope) bool { return s != "*" && s.Covers(scope) })
}

// CallerClass returns a key: callers with one key see the same tools.
func (g *OwnToolGuard) CallerClass(caller drawbridge.Caller) string {
	if !g.HidesAnything() {
		return ""
	}
	class := caller.Kind.String() + " " + string(g.profileOf(caller))
	for _, scope := range explicitScopes {
		if holdsByName(caller, scope) {
			class += " " + string(scope)
		}
	}
	return class
}

// HidesAnything reports whether any client has a profile. Otherwise the deck lists own tools to no client anyway.
func (g *OwnToolGuard) HidesAnything() bool { return g.Profile != deck.NoProfile || len(g.Clients) > 0 }

// Decide refuses hidden tools, and wants approval for paths outside the roots.
func (g *OwnToolGuard) Decide(_ context.Context, q deck.Question) drawbridge.Verdict {
	if verdict := g.HideReason(q.Caller, q.Kind, q.Spec); verdict.Effect != drawbridge.Allow {
		return verdict
	}
	if q.Caller.Kind == drawbridge.Author || !g.isOwnTool(q.Kind, &q.Spec) {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	for name, m := range ownToolArguments(q.Params) {
		if path, ok := rawjson.DecodeString(m.Value); ok && slices.Contains(pathArguments, name) {
			if verdict := g.judgePath(q.Caller, path); verdict.Effect != drawbridge.Allow {
				return verdict
			}
		}
	}
	return drawbridge.Verdict{Effect: drawbridge.Allow}
}

// judgePath wants approval for a path that leads out of the roots, after all links.
func (g *OwnToolGuard) judgePath(caller drawbridge.Caller, path string) drawbridge.Verdict {
	if strings.HasPrefix(path, "mcp://") { // a resource of a server: the call that reads it has its own verdict
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	real, err := g.Context.ResolvePath(caller, path)
	if err == nil {
		real, err = resolveLinks(real)
	}
	if err != nil {
		return drawbridge.Verdict{Effect: drawbridge.Deny, Rule: ownToolsRule, Reason: "resolve the path: " + err.Error()}
	}
	for _, root := range g.rootsOf(caller) {
		if isBelow(root, real) {
			return drawbridge.Verdict{Effect: drawbridge.Allow}
		}
	}
	return drawbridge.Verdict{Effect: drawbridge.Ask, Rule: ownToolsRule,
		Reason: "the path " + real + " is outside the directories that the client may use",
		Next:   "a person can add its directory to roots in [deck]"}
}

// rootsOf returns the directories that a caller may use: its own, and those of the settings.
func (g *OwnToolGuard) rootsOf(caller drawbridge.Caller) (roots []string) {
	if dir, err := g.Context.WorkingDir(caller); err == nil && dir != g.Home && filepath.Dir(dir) != dir {
		roots = append(roots, dir)
	}
	roots = append(roots, g.Roots...)
	for i, root := range roots {
		if real, err := resolveLinks(root); err == nil {
			roots[i] = real
		}
	}
	return roots
}

// isBelow reports whether a path is a directory or below it.
func isBelow(dir, path string) bool {
	rest, ok := strings.CutPrefix(foldCase(path), strings.TrimSuffix(foldCase(dir), string(filepath.Separator)))
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
}

// ownToolArguments returns the members of a call of one of Drawbridge's own tools, with their names in lower case.
func ownToolArguments(params json.RawMessage) iter.Seq2[string, rawjson.Member] {
	return func(yield func(string, rawjson.Member) bool) {
		for m := range rawjson.Members(deck.ArgumentsInText(rawjson.Get(params, "arguments"))) {
			if name, _ := rawjson.DecodeString(m.Name); !yield(strings.ToLower(name), m) {
				return
			}
		}
	}
}
