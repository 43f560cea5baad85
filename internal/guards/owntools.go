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
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ownToolsRule is the name of the guard in audit records and messages.
const ownToolsRule = "own-tools"

// explicitScopes are scopes that the wildcard scope "*" does not include. A client that has only "*" may not write
// files, execute commands, or act as a person of the workspace.
var explicitScopes = []drawbridge.Scope{"fs:write", "exec", "workspace:author", "workspace:import", "workspace:manage", "workspace:scrub"}

// pathArguments are the names of the arguments of Drawbridge's own tools that contain a path.
var pathArguments = []string{"path", "cwd"}

// An OwnToolGuard decides which clients may call Drawbridge's own tools. A client without a profile may call none. A
// tool that writes or executes requires that the client holds its scope by name. A path outside the roots of the client
// requires a person's approval. The person at the command line may call all tools. The zero value has no Catalogue and
// allows every call.
type OwnToolGuard struct {
	// Catalogue lists Drawbridge's own tools; nil means that there are none.
	Catalogue *deck.Catalogue
	// Profile is for clients that are not in Clients. Clients are the profiles of single clients. The key is the name
	// that a client on standard input declares, in lower case, or the name of an HTTP client's token.
	Profile deck.Profile
	Clients map[string]deck.Profile
	// Context contains the directory to which relative paths are joined, for clients without a directory of their own.
	Context deck.Context
	// Roots are directories that every client may use. The directory of a client is a root too, unless it is Home or
	// "/".
	Roots []string
	Home  string
	// NotForClients are the names of tools outside the catalogue that no client may call.
	NotForClients []string
	// PersonTools are the names of tools outside the catalogue that only the person at the command line may call, and
	// PathTools of those whose paths are checked as those of the catalogue are.
	PersonTools, PathTools []string
	// HasPersonTools is true if the deck has the PersonTools now; nil means that it does not.
	HasPersonTools *atomic.Bool
}

var _ deck.ExplainingGuard = (*OwnToolGuard)(nil)

// ShowsOwnTools reports whether a client has a profile.
func (g *OwnToolGuard) ShowsOwnTools(caller drawbridge.Caller) bool {
	return g.ProfileOf(caller) != deck.NoProfile
}

// ProfileOf returns the profile of an external client. It returns NoProfile for any other caller.
func (g *OwnToolGuard) ProfileOf(caller drawbridge.Caller) deck.Profile {
	if caller.OriginKind() != drawbridge.External {
		return deck.NoProfile
	}
	return g.profileOf(caller)
}

// profileOf returns the profile of a client. A declared name selects a profile only on standard input, because there
// the person started the client.
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

// isOwnTool reports whether an item is a tool in the catalogue.
func (g *OwnToolGuard) isOwnTool(kind string, spec *drawbridge.Spec) bool {
	return kind == "tool" && spec.Server == "" && g.Catalogue != nil && g.Catalogue.Has(drawbridge.CardName(spec.Tool))
}

// Hides reports whether an item is one of Drawbridge's own tools that the caller may not call.
func (g *OwnToolGuard) Hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) bool {
	return g.HideReason(caller, kind, spec).Effect == drawbridge.Deny
}

// HideReason returns a verdict that denies, with the reason, if an item is hidden from the caller.
func (g *OwnToolGuard) HideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) drawbridge.Verdict {
	allow := drawbridge.Verdict{Effect: drawbridge.Allow}
	refused := drawbridge.Verdict{Effect: drawbridge.Deny, Rule: ownToolsRule, Hide: true}
	if !g.isOwnTool(kind, &spec) {
		if kind == "tool" && spec.Server == "" && slices.Contains(g.NotForClients, spec.Tool) &&
			caller.OriginKind() == drawbridge.External {
			refused.Reason = "the settings do not offer the tool to clients"
			return refused
		}
		if kind == "tool" && spec.Server == "" && caller.OriginKind() != drawbridge.Author && slices.Contains(g.PersonTools, spec.Tool) {
			refused.Reason = "only the person at the command line may call the tool"
			return refused
		}
		if g.Catalogue != nil && kind == "tool" && spec.Server == "" && caller.OriginKind() == drawbridge.External {
			return unnamedScope(caller, spec, allow)
		}
		return allow
	}
	switch caller.OriginKind() {
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
	return unnamedScope(caller, spec, allow)
}

// unnamedScope returns a verdict that hides a tool with an explicit scope that the caller does not hold by name, or else
// otherwise.
func unnamedScope(caller drawbridge.Caller, spec drawbridge.Spec, otherwise drawbridge.Verdict) drawbridge.Verdict {
	for _, scope := range spec.Scopes {
		if slices.Contains(explicitScopes, scope) && !holdsByName(caller, scope) {
			return drawbridge.Verdict{Effect: drawbridge.Deny, Rule: ownToolsRule, Hide: true,
				Reason: fmt.Sprintf("the client does not hold the scope %s by name", scope)}
		}
	}
	return otherwise
}

// holdsByName reports whether the caller has a scope other than "*" that covers the given scope.
func holdsByName(caller drawbridge.Caller, scope drawbridge.Scope) bool {
	return slices.ContainsFunc(caller.Scopes, func(s drawbridge.Scope) bool { return s != "*" && s.Covers(scope) })
}

// CallerClass returns a key for a caller. Callers with the same key see the same own tools of Drawbridge.
func (g *OwnToolGuard) CallerClass(caller drawbridge.Caller) string {
	if !g.HidesAnything() {
		return ""
	}
	class := caller.OriginKind().String() + " " + string(g.profileOf(caller))
	for _, scope := range explicitScopes {
		if holdsByName(caller, scope) {
			class += " " + string(scope)
		}
	}
	return class
}

// HidesAnything reports whether the guard may hide tools from some clients. It returns false if no client has a
// profile: the deck then lists no own tools to clients.
func (g *OwnToolGuard) HidesAnything() bool {
	return g.Profile != deck.NoProfile || len(g.Clients) > 0 || g.HasPersonTools != nil && g.HasPersonTools.Load()
}

// Decide denies calls of hidden tools. It requires a person's approval for calls with a path outside the roots.
func (g *OwnToolGuard) Decide(_ context.Context, q deck.Question) drawbridge.Verdict {
	if verdict := g.HideReason(q.Caller, q.Kind, q.Spec); verdict.Effect != drawbridge.Allow {
		return verdict
	}
	hasPath := g.isOwnTool(q.Kind, &q.Spec) || q.Kind == "tool" && q.Spec.Server == "" && slices.Contains(g.PathTools, q.Spec.Tool)
	if q.Caller.Kind == drawbridge.Author || !hasPath {
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

// judgePath returns a verdict that requires approval if a path, with all links resolved, is outside the caller's roots.
func (g *OwnToolGuard) judgePath(caller drawbridge.Caller, path string) drawbridge.Verdict {
	if strings.HasPrefix(path, "mcp://") { // a resource of a server: its read is decided separately
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

// rootsOf returns the directories that a caller may use: its working directory and Roots.
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

// isBelow reports whether a path is the directory dir or is below it.
func isBelow(dir, path string) bool {
	rest, ok := strings.CutPrefix(foldCase(path), strings.TrimSuffix(foldCase(dir), string(filepath.Separator)))
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
}

// ownToolArguments iterates over the arguments in a call of an own tool, with their names in lower case.
func ownToolArguments(params json.RawMessage) iter.Seq2[string, rawjson.Member] {
	return func(yield func(string, rawjson.Member) bool) {
		for m := range rawjson.Members(deck.ArgumentsInText(rawjson.Get(params, "arguments"))) {
			if name, _ := rawjson.DecodeString(m.Name); !yield(strings.ToLower(name), m) {
				return
			}
		}
	}
}
