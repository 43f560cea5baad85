package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
)

// shortVersion is the bit of a version that tells a short list from the whole one.
const shortVersion = 1 << 63

// searchCards are the two cards of short lists: they are not on the shelf, but their names are taken.
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

// SearchView gives the cards that the caller may call, to be searched.
func (d *Deck) SearchView(caller drawbridge.Caller) *toolsearch.CardView {
	return d.searchView(d.view.Load().tools, caller)
}

func (d *Deck) searchView(s *itemIndex, caller drawbridge.Caller) *toolsearch.CardView {
	return d.searcher.View(toolsearch.ClassKey(caller, d.guards.callerClass(caller)), s.listForCaller(caller).Version,
		func() []drawbridge.Spec { return s.callableSpecs(caller) })
}

// applyListMode is the list of a shelf for a caller: the short one where the mode says so. Modes are for clients from
// outside: what they change is what is listed, and nothing else.
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

// shortListHint is what the caller is told of a short list before all else.
func (d *Deck) shortListHint(caller drawbridge.Caller) string {
	if caller.Kind == drawbridge.External && d.searcher.MayShorten() && d.SearchView(caller).IsShort() {
		return toolsearch.ShortListHint
	}
	return ""
}

// isSearchCall says whether a call is one of find_tools or call_tool. All calls pass here.
func (d *Deck) isSearchCall(call drawbridge.Call, name string) bool {
	return (name == toolsearch.FindToolsName || name == toolsearch.CallToolName) &&
		call.Method == mcp.MethodToolsCall && d.searcher.ServesCaller(call.Caller)
}

// callSearchCard carries out such a call. One of call_tool becomes the call of the card that it names, with all else
// that its params say, and goes the way of any call from its beginning.
func (d *Deck) callSearchCard(ctx context.Context, call drawbridge.Call, p callParams) (drawbridge.Result, error) {
	if p.Name == toolsearch.FindToolsName {
		return d.callFindTools(ctx, call, p)
	}
	opened, err := toolsearch.ParseCallTool(call.Params, p.Arguments)
	if err != nil {
		return toolsearch.CallToolError(err), nil
	}
	call.Params, p.Name, p.Arguments = opened.Params, opened.Name, opened.Arguments
	audit.NoteInnerCall(ctx, call, toolsearch.CallToolName)
	if p.Name == toolsearch.FindToolsName {
		return d.callFindTools(ctx, call, p)
	}
	t, err := d.findTarget(ctx, call, p)
	if err != nil {
		return drawbridge.Result{}, d.SearchView(call.Caller).SuggestNames(ctx, p.Name, err)
	}
	return d.callGuarded(ctx, call, t, p)
}

// callFindTools carries out find_tools. It is a list in the form of a card, and as such it is nothing that a rule
// could forbid: it shows what its caller may call. It waits for servers as a list does, is recorded, and counts as a
// call.
func (d *Deck) callFindTools(ctx context.Context, call drawbridge.Call, p callParams) (drawbridge.Result, error) {
	if d.beforeList != nil {
		d.beforeList(ctx)
	}
	spec := toolsearch.SearchCards()[0]
	if now, err := d.guards.countCall(ctx, Question{Caller: call.Caller, Kind: tools.word, Spec: spec,
		Method: call.Method, Params: call.Params}); err != nil {
		audit.NoteRefusal(ctx, spec, now)
		return drawbridge.Result{}, err
	}
	if err := audit.RecordIntent(ctx, call, p.Arguments, spec,
		drawbridge.Verdict{Effect: drawbridge.Allow}); err != nil {
		return drawbridge.Result{}, err
	}
	return d.SearchView(call.Caller).AnswerFindTools(ctx, p.Arguments), nil
}

// EstimateTokens is about how many tokens a model makes of a definition.
func EstimateTokens(definition []byte) int { return toolsearch.EstimateTokens(definition) }

// callableSpecs are what the caller may call, in the order they are listed.
func (s *itemIndex) callableSpecs(caller drawbridge.Caller) (out []drawbridge.Spec) {
	for _, it := range s.items {
		if s.visibleTo(caller, it) {
			out = append(out, it.spec)
		}
	}
	return out
}
