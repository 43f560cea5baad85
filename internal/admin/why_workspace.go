package admin

import (
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// WorkspaceWhy returns who wrote a page, a block or an item of memory, and from what it was made. name is an ID, the slug
// of a page, or a page and one of its blocks, as in plan#b2. The person may read the memory of all places.
func (r *Service) WorkspaceWhy(ctx context.Context, name string, o workspace.WhyOptions) (*workspace.Why, error) {
	w, err := gateway.OpenWorkspace(ctx, r.o.Gateway)
	if err != nil {
		return nil, err
	}
	why, err := w.Why(ctx, name, o)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	addPrompts(why, r.newRunFinder())
	return why, nil
}

// addPrompts sets the prompts of a tree. Those of a statement stay empty: nothing proves its runs.
func addPrompts(node *workspace.Why, runs *runFinder) {
	if node.Kind == workspace.Statement {
		return
	}
	if node.Written != nil {
		node.Written.Prompt = runs.find(node.Written.Thread, node.Written.Run).Prompt
	}
	for _, source := range node.Sources {
		addPrompts(source, runs)
	}
}

// A runFinder finds runs of the agent in its history, each once.
type runFinder struct {
	root  string
	found map[[2]string]agent.RunInfo
}

func (r *Service) newRunFinder() *runFinder {
	root, _ := gateway.SessionsRoot(r.o.ConfigOptions.LookupEnv)
	return &runFinder{root, map[[2]string]agent.RunInfo{}}
}

// find returns a run of a thread. It is zero if the history does not have the run.
func (f *runFinder) find(thread, run string) agent.RunInfo {
	if f.root == "" || thread == "" || run == "" {
		return agent.RunInfo{}
	}
	key := [2]string{thread, run}
	info, ok := f.found[key]
	if !ok {
		info = agent.FindRun(f.root, thread, run)
		f.found[key] = info
	}
	return info
}
