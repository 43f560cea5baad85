package agentrpc

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge/agent"
)

// currentPath returns the entries of the session's own conversation, from its beginning to its head.
func currentPath(ctx context.Context, h agent.History) ([]agent.Entry, error) {
	entries := map[string]agent.Entry{}
	head := ""
	for e, err := range h.Entries(ctx) {
		if err != nil {
			return nil, err
		}
		if e.Agent == "" {
			entries[e.ID], head = e, e.ID
		}
	}
	var path []agent.Entry
	for head != "" {
		e, ok := entries[head]
		if !ok {
			break
		}
		delete(entries, head) // an entry that follows itself ends the path
		path, head = append(path, e), e.Parent
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path, nil
}
