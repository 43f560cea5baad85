package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/finder"
	"github.com/drawbridge-mcp/drawbridge/deck/offer"
	"github.com/drawbridge-mcp/drawbridge/deck/params"
	"github.com/drawbridge-mcp/drawbridge/deck/trail"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// shortVersion is the bit of a version that tells a short list from the whole one.
const shortVersion = 1 << 63

// ownFinders are the two cards of short lists: they are not on the shelf, but their names are taken.
func (d *Deck) ownFinders() (own []*item) {
	if !d.finder.Shortens() {
		return nil
	}
	for _, spec := range finder.Own() {
		own = append(own, &item{
			kind: tools.word, spec: spec, offer: offer.Offer{Name: string(spec.Name), Raw: spec.Definition}, names: []drawbridge.CardName{spec.Name},
		})
	}
	return own
}

// Finding gives the cards that the caller may call, to be searched.
func (d *Deck) Finding(caller drawbridge.Caller) *finder.View {
	return d.finding(d.view.Load().tools, caller)
}

func (d *Deck) finding(s *shelf, caller drawbridge.Caller) *finder.View {
	return d.finder.View(finder.Class(caller, d.gate.Class(caller)), s.listFor(caller).Version, func() []drawbridge.Spec { return s.cards(caller) })
}

// shortened is the list of a shelf for a caller: the short one where the mode says so. Modes are for clients from outside: what
// they change is what is listed, and nothing else.
func (d *Deck) shortened(s *shelf, caller drawbridge.Caller, method string) List {
	list := s.listFor(caller)
	if method != tools.list || caller.Kind != drawbridge.External || !d.finder.Shortens() {
		return list
	}
	if v := d.finding(s, caller); v.Short() {
		list.Items, list.Version = v.List(), list.Version|shortVersion
	}
	return list
}

// findHint is what the caller is told of a short list before all else.
func (d *Deck) findHint(caller drawbridge.Caller) string {
	if caller.Kind == drawbridge.External && d.finder.Shortens() && d.Finding(caller).Short() {
		return finder.Hint
	}
	return ""
}

// finds says whether a call is one of find_tools or call_tool. All calls pass here.
func (d *Deck) finds(call drawbridge.Call, name string) bool {
	return (name == finder.FindName || name == finder.CallName) && call.Method == wire.MethodToolsCall && d.finder.Serves(call.Caller)
}

// byFinder carries out such a call. One of call_tool becomes the call of the card that it names, with all else that its params
// say, and goes the way of any call from its beginning.
func (d *Deck) byFinder(ctx context.Context, call drawbridge.Call, p params.Params) (drawbridge.Result, error) {
	if p.Name == finder.FindName {
		return d.answer(ctx, call, p)
	}
	opened, err := finder.Open(call.Params, p.Arguments)
	if err != nil {
		return finder.Refusal(err), nil
	}
	call.Params, p.Name, p.Arguments = opened.Params, opened.Name, opened.Arguments
	trail.Through(ctx, call, finder.CallName)
	if p.Name == finder.FindName {
		return d.answer(ctx, call, p)
	}
	t, err := d.find(ctx, call, p)
	if err != nil {
		return drawbridge.Result{}, d.Finding(call.Caller).Unknown(ctx, p.Name, err)
	}
	return d.carry(ctx, call, t, p)
}

// answer carries out find_tools. It is a list in the form of a card, and as such it is nothing that a rule could forbid: it shows
// what its caller may call. It waits for servers as a list does, is recorded, and counts as a call.
func (d *Deck) answer(ctx context.Context, call drawbridge.Call, p params.Params) (drawbridge.Result, error) {
	if d.beforeList != nil {
		d.beforeList(ctx)
	}
	spec := finder.Own()[0]
	if now, err := d.gate.Count(ctx, Question{Caller: call.Caller, Kind: tools.word, Spec: spec, Method: call.Method, Params: call.Params}); err != nil {
		trail.Bar(ctx, spec, now)
		return drawbridge.Result{}, err
	}
	if err := trail.Pass(ctx, call, p.Arguments, spec, drawbridge.Verdict{Effect: drawbridge.Allow}); err != nil {
		return drawbridge.Result{}, err
	}
	return d.Finding(call.Caller).Answer(ctx, p.Arguments), nil
}

// Tokens is about how many tokens a model makes of a definition.
func Tokens(definition []byte) int { return finder.Tokens(definition) }

// cards are what the caller may call, in the order they are listed.
func (s *shelf) cards(caller drawbridge.Caller) (out []drawbridge.Spec) {
	for _, it := range s.items {
		if s.shows(caller, it) {
			out = append(out, it.spec)
		}
	}
	return out
}
