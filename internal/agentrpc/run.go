package agentrpc

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

// runPrompt runs a prompt. It returns after the last event was passed to on.
func runPrompt(ctx context.Context, s *agent.Session, parts []drawbridge.MessagePart, on func(agent.Event)) (
	agent.RunResult, error) {
	last := make(chan struct{})
	result, err := s.Run(ctx, parts, func(e agent.Event) {
		on(e)
		if e.Kind == agent.RunFinished && e.Agent == "" {
			close(last)
		}
	})
	if result.Run != "" { // another goroutine may still pass on events
		<-last
	}
	return result, err
}

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
