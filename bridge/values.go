package bridge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
)

// values gives the pairs of a row's member, env or header, with what commands print in the places of those. One whose
// command gives nothing is left out, and told in the status: the server may do without.
func (e *endpoint) values(ctx context.Context, member string, pairs []config.Pair) []config.Pair {
	if len(e.row.Commands) == 0 {
		return pairs
	}
	var found []config.Pair
	var missing []string
	for _, p := range pairs {
		name := member + " " + p.Name
		if slices.Contains(e.row.Commands, name) {
			value, err := e.pool.commands.Value(ctx, strings.TrimPrefix(p.Value, "!"), e.environ)
			if err != nil {
				e.log.Warn("a value was left out", "value", name, "error", err)
				missing = append(missing, fmt.Sprintf("%s is left out: %v", name, err))
				continue
			}
			p.Value = value
		}
		found = append(found, p)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missing = missing
	return found
}
