package drawbridge

import (
	"path"
	"slices"
	"strings"
)

// A PermissionMode is what a session of an agent may do without asking its person. The user's own rules hold in every
// mode: a mode never allows what a rule denies.
type PermissionMode string

// The permission modes.
const (
	// AskFirst asks before each call that may change something, unless a rule or an earlier answer allows it.
	AskFirst PermissionMode = "default"
	// AcceptEdits does not ask before edits of files in the working directory.
	AcceptEdits PermissionMode = "acceptEdits"
	// PlanOnly refuses each call that may change something.
	PlanOnly PermissionMode = "plan"
	// Bypass asks only where a rule says that a person must be asked.
	Bypass PermissionMode = "bypass"
)

// PermissionModes returns the permission modes.
func PermissionModes() []PermissionMode {
	return []PermissionMode{AskFirst, AcceptEdits, PlanOnly, Bypass}
}

// AgentRights is what a session permits to one of its agents, or to a script that the agent started. It only narrows
// the rights of the caller.
type AgentRights struct {
	Mode PermissionMode
	// Tools has one element for each agent from the session's own agent down to this one, and one for a script. An
	// element has the patterns of the tools that its holder may call, such as "github__*". A tool must match a pattern of
	// every element; an element without patterns permits nothing.
	Tools [][]string
	// OwnTools are the names of Drawbridge's own tools that may be called, in any case and without regard to "_" and "-";
	// nil permits all.
	OwnTools []string
}

// Permits reports whether the rights permit a tool. A pattern that is not valid permits nothing.
func (r *AgentRights) Permits(tool Spec) bool {
	for _, patterns := range r.Tools {
		if !matchesAny(patterns, string(tool.Name)) {
			return false
		}
	}
	if tool.Server != "" || r.OwnTools == nil {
		return true
	}
	wanted := plainName(tool.Tool)
	return slices.ContainsFunc(r.OwnTools, func(name string) bool { return plainName(name) == wanted })
}

// plainName returns a name in lower case without "_" and "-".
func plainName(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(name, "_", ""), "-", ""))
}

func matchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return false
}
