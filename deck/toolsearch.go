package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
)

// shortVersion is a bit that is set in the version of a short list of tools. So the version differs from that of the
// full list, which the index assigns.
const shortVersion = 1 << 63

// searchCards returns items for find_tools and call_tool, or nil if callers never get short lists. The items reserve
// the names of these two tools, so that no server's tool gets them. They are not listed from the index; short lists add
// them.
func (d *Deck) searchCards() (own []*item) {
	if !d.searcher.MayShorten() {
		return nil
	}
	for _, spec := range d.searcher.SearchCards() {
		own = append(own, &item{
			kind: tools.word, spec: spec, offer: offeredItem{Name: string(spec.Name), Raw: spec.Definition},
			names: []drawbridge.CardName{spec.Name},
		})
	}
	return own
}

// SearchView returns the view in which the caller can search for tools. searchableSpecs selects its tools.
func (d *Deck) SearchView(caller drawbridge.Caller) *toolsearch.CardView {
	return d.searchView(d.view.Load().tools, caller)
}

func (d *Deck) searchView(s *itemIndex, caller drawbridge.Caller) *toolsearch.CardView {
	return d.searcher.View(toolsearch.ClassKey(caller, d.guards.callerClass(caller)), s.listForCaller(caller).Version,
		func() []drawbridge.Spec { return s.searchableSpecs(caller) })
}

// applyListMode returns the list of an index for a caller. For tools/list of an external client it returns the short
// list, if the list mode requires that. The client can still call tools that are not in the short list.
func (d *Deck) applyListMode(s *itemIndex, caller drawbridge.Caller, method string) List {
	list := s.listForCaller(caller)
	if method != tools.list || !d.searcher.MayShorten() {
		return list
	}
	list.CacheHint.Public = list.CacheHint.Public && !d.searcher.DependsOnClient()
	if !d.searcher.MayShortenFor(caller) {
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
	if d.searcher.MayShortenFor(caller) && d.SearchView(caller).IsShort() {
		return d.searcher.ShortListHint()
	}
	return ""
}

// isSearchCall reports whether a call is a call of a search tool that the caller has.
func (d *Deck) isSearchCall(call drawbridge.Call, name string) bool {
	switch name {
	case toolsearch.FindToolsName, toolsearch.CallToolName, toolsearch.SearchToolsName, toolsearch.DescribeToolsName:
	default:
		return false
	}
	return (name == toolsearch.CallToolName || d.searcher.AnswersSearch(name)) &&
		call.Method == mcp.MethodToolsCall && d.searcher.ServesCaller(call.Caller)
}

// resolveSearchCall sets s.target for a call of find_tools or call_tool. A call of call_tool is replaced with the inner
// call, which is the call of the tool that its arguments name. The later stages, such as the guards, handle the inner
// call like a direct call of that tool.
func (d *Deck) resolveSearchCall(ctx context.Context, s *callState) error {
	if s.params.Name == toolsearch.CallToolName {
		inner, err := toolsearch.ParseCallTool(s.call.Params, s.params.Arguments)
		if err != nil {
			s.result, s.answered = toolsearch.CallToolError(err), true
			return nil
		}
		s.call.Params, s.params.Name, s.params.Arguments = inner.Params, inner.Name, inner.Arguments
		s.log.NoteInnerCall(s.call, toolsearch.CallToolName)
		if !d.searcher.AnswersSearch(inner.Name) {
			if s.target, err = d.findTarget(ctx, s); err != nil {
				return d.SearchView(s.call.Caller).SuggestNames(ctx, inner.Name, err)
			}
			return nil
		}
	}
	// The result of find_tools is a list of tools. So the call waits for servers as tools/list does, and no rule can
	// forbid it.
	if d.beforeList != nil {
		d.beforeList(ctx)
	}
	for _, spec := range d.searcher.SearchCards() {
		if string(spec.Name) == s.params.Name {
			s.target = callTarget{spec: spec, kind: tools.word, searches: true}
		}
	}
	return nil
}

// EstimateTokens estimates how many tokens a tool definition takes in the prompt of a model.
func EstimateTokens(definition []byte) int { return toolsearch.EstimateTokens(definition) }

// searchableSpecs returns the specs of the visible tools in which the caller can search. For the person at the command
// line it omits Drawbridge's own tools, because the person wants to know what clients find.
func (s *itemIndex) searchableSpecs(caller drawbridge.Caller) (out []drawbridge.Spec) {
	for _, it := range s.items {
		if s.visibleTo(caller, it) && !(it.inside && caller.Kind == drawbridge.Author) {
			out = append(out, it.spec)
		}
	}
	return out
}

// callableSpecs returns the specs of the items that are visible to the caller, in listed order.
func (s *itemIndex) callableSpecs(caller drawbridge.Caller) (out []drawbridge.Spec) {
	for _, it := range s.items {
		if s.visibleTo(caller, it) {
			out = append(out, it.spec)
		}
	}
	return out
}
