package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// resume reads the history and settles the calls that have no result.
func (s *Session) resume(ctx context.Context) error {
	r, err := s.readHistory(ctx)
	if err != nil {
		return err
	}
	if len(r.entries) == 0 {
		return nil
	}
	path, err := r.path(r.last[""])
	if err != nil {
		return err
	}
	s.root.head, s.root.known, s.root.children = r.last[""], r.known, r.children
	for _, e := range path {
		s.root.follow(e)
		if e.Kind == PromptEntry && e.Message != nil {
			s.earlier = append(s.earlier, e.Message.Parts...)
		}
	}
	s.used, s.cost, s.label = r.used, r.cost, r.label
	for _, change := range r.settings {
		s.follow(change)
	}
	if s.settings.Mode == Bypass {
		s.settings.Mode = AskFirst
	}
	if s.beforePlan == Bypass {
		s.beforePlan = AskFirst
	}
	s.budget.Add(r.amount())
	if err := s.settleSubAgents(ctx, r); err != nil {
		return err
	}
	return s.root.settle(ctx)
}

// A replay collects what a history says about a session.
type replay struct {
	entries map[string]Entry
	// order are the IDs of the entries in the order in which they were appended.
	order []string
	// last is the last entry of each agent, and open the calls of each that have no result, by their IDs.
	last         map[string]string
	open         map[string]map[string]Entry
	known        []drawbridge.CardName
	children     int
	settings     []Settings // the changes, in order
	used         drawbridge.ModelUsage
	cost         float64
	label        *RunLabel
	turns, calls int64
}

func newReplay() replay {
	return replay{entries: map[string]Entry{}, open: map[string]map[string]Entry{}, last: map[string]string{}}
}

func (r *replay) add(e Entry) {
	r.entries[e.ID] = e
	r.order = append(r.order, e.ID)
	r.last[e.Agent] = e.ID
	if e.Usage != nil {
		r.used, r.turns = r.used.Add(*e.Usage), r.turns+1
	}
	r.cost += e.Cost
	switch {
	case e.Kind == ToolsEntry && e.Agent == "":
		r.known = append(r.known, e.Names...)
	case e.Kind == AgentEntry && depthOf(e.Agent) == 1:
		r.children++
	case e.Kind == SettingsEntry && e.Settings != nil:
		r.settings = append(r.settings, *e.Settings)
	case e.Kind == CallEntry && e.Call != nil:
		r.calls++
		if r.open[e.Agent] == nil {
			r.open[e.Agent] = map[string]Entry{}
		}
		r.open[e.Agent][e.Call.ID] = e
	case e.Kind == ScriptCallEntry:
		r.calls++
	case e.Kind == ResultEntry && e.Result != nil:
		if e.Details != nil {
			r.calls += e.Details.ScriptCalls
			r.label = joinLabel(r.label, e.Details.Label)
		}
		delete(r.open[e.Agent], e.Result.CallID)
	}
}

// amount returns what the session has used.
func (r *replay) amount() Amount {
	return Amount{Tokens: r.used.Input + r.used.Output, Dollars: r.cost, Turns: r.turns, Calls: r.calls}
}

// path returns the entries from the beginning of a conversation to one of its entries.
func (r *replay) path(id string) (path []Entry, err error) {
	for id != "" {
		e, ok := r.entries[id]
		if !ok || len(path) > len(r.entries) {
			return nil, fmt.Errorf("the entry %s is missing, or follows itself", id)
		}
		path, id = append(path, e), e.Parent
	}
	slices.Reverse(path)
	return path, nil
}

// settleSubAgents records that the outcomes of the open calls of sub-agents are unknown. Sub-agents are not resumed.
func (s *Session) settleSubAgents(ctx context.Context, r replay) error {
	for agent, calls := range r.open {
		if agent == "" {
			continue
		}
		c := &conversation{s: s, path: agent, head: r.last[agent]}
		for _, e := range calls {
			if err := c.refuse(ctx, *e.Call, interruptedText, CallDetails{Unknown: true}); err != nil {
				return err
			}
		}
	}
	return nil
}
