package agent

import (
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// MaxDepth is the number of sub-agents that may stand above each other.
const MaxDepth = 3

// MayCall reports whether the patterns in who.Tools allow a tool: it must match a pattern of every element. In a
// pattern, "*" matches any characters. An element without patterns allows no tool.
func (who Identity) MayCall(tool drawbridge.CardName) bool {
	for _, patterns := range who.Tools {
		if !slices.ContainsFunc(patterns, func(p string) bool { return matches(p, string(tool)) }) {
			return false
		}
	}
	return true
}

// narrowed returns the tool patterns of a sub-agent: those of its parent, and its own as one more element.
func narrowed(parent [][]string, own []string) [][]string {
	all := slices.Clone(parent)
	if own == nil {
		return all
	}
	return append(all, slices.Clone(own))
}

// matches reports whether a name matches a pattern, in which "*" matches any characters.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
