package admin

import (
	"context"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// WorkspaceWhy returns who wrote a page, a block or an item of memory, and from what it was made. name is an ID, the
// slug of a page, or a page and one of its blocks, as in plan#b2. The person may read the memory of all places.
func (r *Service) WorkspaceWhy(ctx context.Context, name string, o workspace.WhyOptions) (*workspace.Why, error) {
	w, err := gateway.OpenWorkspace(ctx, r.o.Gateway)
	if err != nil {
		return nil, err
	}
	why, err := w.Why(ctx, name, o)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	addPrompts(why, r.newPromptFinder())
	return why, nil
}

// addPrompts sets the prompts of a tree. Those of a statement stay empty: nothing proves its runs.
func addPrompts(node *workspace.Why, prompts *promptFinder) {
	if node.Kind == workspace.Statement {
		return
	}
	if node.Written != nil {
		node.Written.Prompt = prompts.find(node.Written.Thread, node.Written.At).Line
	}
	for _, source := range node.Sources {
		addPrompts(source, prompts)
	}
}

// A promptFinder finds prompts in the history of the agent. It reads each session once.
type promptFinder struct {
	root     string
	sessions map[string][]agent.PromptInfo
}

func (r *Service) newPromptFinder() *promptFinder {
	root, _ := gateway.SessionsRoot(r.o.ConfigOptions.LookupEnv)
	return &promptFinder{root, map[string][]agent.PromptInfo{}}
}

// find returns the last prompt of a thread before a time. It is zero if the history does not have it.
func (f *promptFinder) find(thread string, at time.Time) (found agent.PromptInfo) {
	if f.root == "" || thread == "" {
		return found
	}
	all, ok := f.sessions[thread]
	if !ok {
		all = agent.ListPrompts(f.root, thread)
		f.sessions[thread] = all
	}
	for _, p := range all {
		if !p.At.After(at) {
			found = p
		}
	}
	return found
}
