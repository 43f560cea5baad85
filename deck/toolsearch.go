package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
)

// shortVersion is the bit that distinguishes the version of a short list from that of the full list.
const shortVersion = 1 << 63

// searchCards returns the two search tools of short lists. They are not listed in the index, but their names are taken.
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

// SearchView returns a searchable view of the tools that the caller may call.
func (d *Deck) SearchView(caller drawbridge.Caller) *toolsearch.CardView {
	return d.searchView(d.view.Load().tools, caller)
}

func (d *Deck) searchView(s *itemIndex, caller drawbridge.Caller) *toolsearch.CardView {
	return d.searcher.View(toolsearch.ClassKey(caller, d.guards.callerClass(caller)), s.listForCaller(caller).Version,
		func() []drawbridge.Spec { return s.searchableSpecs(caller) })
}

// applyListMode returns the list of an index for a caller: the short one if the mode asks for it. Modes apply to
// external clients, and change only the list.
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

// shortListHint returns the text about a short list that precedes the instructions; empty for a full list.
func (d *Deck) shortListHint(caller drawbridge.Caller) string {
	if caller.Kind == drawbridge.External && d.searcher.MayShorten() && d.SearchView(caller).IsShort() {
		return toolsearch.ShortListHint
	}
	return ""
}

// isSearchCall reports whether a call is one of find_tools or call_tool.
func (d *Deck) isSearchCall(call drawbridge.Call, name string) bool {
	return (name == toolsearch.FindToolsName || name == toolsearch.CallToolName) &&
		call.Method == mcp.MethodToolsCall && d.searcher.ServesCaller(call.Caller)
}

// resolveSearchCall resolves a call of find_tools or call_tool. A call_tool becomes the call of the tool that it names,
// with the rest of its params, and takes the same stages as any call.
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
	// find_tools is a list in the form of a tool: like a list, it waits for servers, and no rule can forbid it
	if d.beforeList != nil {
		d.beforeList(ctx)
	}
	s.target = callTarget{spec: toolsearch.SearchCards()[0], kind: tools.word, findTools: true}
	return nil
}

// EstimateTokens estimates the tokens of a definition in a model's prompt.
func EstimateTokens(definition []byte) int { return toolsearch.EstimateTokens(definition) }

// searchableSpecs returns the specs that a search of the caller is about. A person at the command line searches what
// clients can find.
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
