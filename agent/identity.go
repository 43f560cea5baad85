package agent

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// MaxDepth is the number of sub-agents that may stand above each other.
const MaxDepth = 3

// MayCall reports whether the patterns in who.Tools allow a tool: it must match a pattern of every element, as
// path.Match matches. An element without patterns allows no tool.
func (who Identity) MayCall(tool drawbridge.CardName) bool {
	rights := drawbridge.AgentRights{Tools: who.Tools}
	return rights.Permits(drawbridge.Spec{Name: tool})
}

// narrowed returns the tool patterns of a sub-agent: those of its parent, and its own as one more element.
func narrowed(parent [][]string, own []string) [][]string {
	all := slices.Clone(parent)
	if own == nil {
		return all
	}
	return append(all, slices.Clone(own))
}
