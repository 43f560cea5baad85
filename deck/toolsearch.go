package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
)

// shortVersion is a bit that is set in the version of a short list, so that it differs from the version of the full
// list.
const shortVersion = 1 << 63

// searchCards returns the two search tools of short lists. They are not in the index as listed items, but reserve their
// names.
func (d *Deck) searchCards() (own []*item) {
	if !d.searcher.MayShorten() {
		return nil
	}
	for _, spec := range toolsearch.SearchCards() {
		own = append(own, &item{
			kind: tools.word, spec: spec, offer: offeredItem{Name: string(spec.Name), Raw: spec.Definition},
			names: []drawbridge.CardName{spec.Name},
		})
	}
	return own
}

// SearchView returns a view for searching in the tools that the caller may call.
func (d *Deck) SearchView(caller drawbridge.Caller) *toolsearch.CardView {
	return d.searchView(d.view.Load().tools, caller)
}

func (d *Deck) searchView(s *itemIndex, caller drawbridge.Caller) *toolsearch.CardView {
	return d.searcher.View(toolsearch.ClassKey(caller, d.guards.callerClass(caller)), s.listForCaller(caller).Version,
		func() []drawbridge.Spec { return s.searchableSpecs(caller) })
}

// applyListMode returns the list of an index for a caller. It is the short list of tools if the mode requires it. Modes
// apply only to external clients, and affect only the list.
func (d *Deck) applyListMode(s *itemIndex, caller drawbridge.Caller, method string) List {
	list := s.listForCaller(caller)
	if method != tools.list || caller.Kind != drawbridge.External || !d.searcher.MayShorten() {
		return list
	}
	if v := d.searchView(s, caller); v.IsShort() {
		list.Items, list.Version = v.ShortList(), list.Version|shortVersion
	}
	return list
}

// shortListHint returns the text about short lists that is put before the instructions. It is empty if the caller sees
// the full list.
func (d *Deck) shortListHint(caller drawbridge.Caller) string {
	if caller.Kind == drawbridge.External && d.searcher.MayShorten() && d.SearchView(caller).IsShort() {
		return toolsearch.ShortListHint
	}
	return ""
}

// isSearchCall reports whether a call is a call of find_tools or call_tool.
func (d *Deck) isSearchCall(call drawbridge.Call, name string) bool {
	return (name == toolsearch.FindToolsName || name == toolsearch.CallToolName) &&
		call.Method == mcp.MethodToolsCall && d.searcher.ServesCaller(call.Caller)
}

// resolveSearchCall finds the target of a call of find_tools or call_tool. A call of call_tool is replaced with the
// call of the named tool, which goes through all stages.
func (d *Deck) resolveSearchCall(ctx context.Context, s *callState) error {
	if s.params.Name == toolsearch.CallToolName {
		inner, err := toolsearch.ParseCallTool(s.call.Params, s.params.Arguments)
		if err != nil {
			s.result, s.answered = toolsearch.CallToolError(err), true
			return nil
		}
		s.call.Params, s.params.Name, s.params.Arguments = inner.Params, inner.Name, inner.Arguments
		s.log.NoteInnerCall(s.call, toolsearch.CallToolName)
		if inner.Name != toolsearch.FindToolsName {
			if s.target, err = d.findTarget(ctx, s); err != nil {
				return d.SearchView(s.call.Caller).SuggestNames(ctx, inner.Name, err)
			}
			return nil
		}
	}
	// find_tools returns a list. So it waits for servers as a list method does, and no rule can forbid it.
	if d.beforeList != nil {
		d.beforeList(ctx)
	}
	s.target = callTarget{spec: toolsearch.SearchCards()[0], kind: tools.word, findTools: true}
	return nil
}

// EstimateTokens estimates the tokens of a definition in a model's prompt.
func EstimateTokens(definition []byte) int { return toolsearch.EstimateTokens(definition) }

// searchableSpecs returns the specs of the tools in which the caller can search. For the person at the command line
// these are the tools that clients can find.
func (s *itemIndex) searchableSpecs(caller drawbridge.Caller) (out []drawbridge.Spec) {
	for _, it := range s.items {
		if s.visibleTo(caller, it) && !(it.inside && caller.Kind == drawbridge.Author) {
			out = append(out, it.spec)
		}
	}
	return out
}

// callableSpecs returns the specs that the caller may call, in listed order.
func (s *itemIndex) callableSpecs(caller drawbridge.Caller) (out []drawbridge.Spec) {
	for _, it := range s.items {
		if s.visibleTo(caller, it) {
			out = append(out, it.spec)
		}
	}
	return out
}
