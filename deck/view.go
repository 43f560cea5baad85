package deck

import (
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/gate"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/deck/offer"
	"github.com/drawbridge-mcp/drawbridge/deck/skill"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

var (
	tools     = kind{"tool", wire.MethodToolsList, "name"}
	prompts   = kind{"prompt", wire.MethodPromptsList, "name"}
	resources = kind{"resource", wire.MethodResourcesList, "uri"}
	templates = kind{"template", wire.MethodTemplatesList, "uriTemplate"}
)

// A view is the deck at one moment. It is a value: readers take it and need no lock, a change makes a new one.
type view struct {
	gate                                 *gate.Gate
	known                                gate.Known
	members                              []*member
	byID                                 map[drawbridge.ServerID]*member
	tools, prompts, resources, templates *shelf
	// ground says whose resources lie where, renamed which are called by another URI than their own. They are made when they
	// are first needed.
	ground  *skill.Ground
	renamed func() map[drawbridge.ServerID]map[string]string
}

// A member is a configured server with what it offers, vetted and named. It is a value too.
type member struct {
	Member
	scopes []drawbridge.Scope
	// listing is nil before the first one; of what it says of the server itself it has what may be shown. said is the listing
	// as it came.
	listing, said                        *drawbridge.Listing
	tools, prompts, resources, templates []*item
	// pages are resources that the tools name as their pages and that the server does not list.
	pages   []*item
	leftOut []LeftOut
	notes   []Note
	// skills and directories say that the server answers the methods for skills, and the one for directories.
	skills, directories bool
}

func (v *view) member(id drawbridge.ServerID) *member { return v.byID[id] }

// newView puts what the shipped cards and the members offer on shelves, in configuration order.
func newView(g *gate.Gate, shipped []*item, members []*member, old *view, next func() uint64) *view {
	v := &view{gate: g, members: members, byID: make(map[drawbridge.ServerID]*member, len(members))}
	for _, m := range members {
		v.byID[m.ID] = m
	}
	var own []stack
	for _, it := range shipped {
		if it.card == nil {
			own = append(own, stack{claims: []*item{it}})
			continue
		}
		own = append(own, stack{scopes: it.spec.Scopes, items: []*item{it}})
	}
	v.resources = newShelf(g, resources, stacks(members, resources, func(m *member) []*item { return m.resources }), old.shelf(resources), next)
	v.ground, v.renamed = v.groundOf(), sync.OnceValue(v.renames)
	// The tools come after the resources: which URI a tool's page has depends on who has it already.
	v.tools = newShelf(g, tools, append(own, stacks(members, tools, v.dressed)...), old.shelf(tools), next)
	v.prompts = newShelf(g, prompts, stacks(members, prompts, func(m *member) []*item { return m.prompts }), old.shelf(prompts), next)
	v.templates = newShelf(g, templates, stacks(members, templates, func(m *member) []*item { return m.templates }), old.shelf(templates), next)
	return v
}

// knows says whether the caller may know of the member: they hold its scopes, and not all that it offers is hidden from them.
func (v *view) knows(caller drawbridge.Caller, m *member) bool {
	if !caller.Holds(m.scopes) || !v.gate.Screens() {
		return caller.Holds(m.scopes)
	}
	return v.known.Says(v.gate.Class(caller), m.ID, func() bool {
		if v.gate.Hides(caller, "", drawbridge.Spec{Server: m.ID, Scopes: m.scopes}) {
			return false
		}
		offers := slices.Concat(m.tools, m.prompts, m.resources, m.templates)
		return len(offers) == 0 || m.hasResources() || slices.ContainsFunc(offers, func(it *item) bool {
			return !v.gate.Hides(caller, it.kind, it.spec)
		})
	})
}

// shelf gives the shelf of a kind; nil of a nil view.
func (v *view) shelf(k kind) *shelf {
	if v == nil {
		return nil
	}
	return v.byMethod(k.list)
}

// byMethod gives the shelf that a list method lists, or nil.
func (v *view) byMethod(method string) *shelf {
	switch method {
	case tools.list:
		return v.tools
	case prompts.list:
		return v.prompts
	case resources.list:
		return v.resources
	case templates.list:
		return v.templates
	}
	return nil
}

func (v *view) shelves() []*shelf { return []*shelf{v.tools, v.prompts, v.resources, v.templates} }

// clashesOf gives the clashes of a server, in a slice of the caller's own.
func (v *view) clashesOf(id drawbridge.ServerID) (out []Clash) {
	for _, s := range v.shelves() {
		out = append(out, s.clashes[id]...)
	}
	return out
}

// stacks gives what each member puts on the shelf of a kind, with the hint that its listing gave for it. A member that
// was never listed may put something there at any moment, so a list without it is stale at once.
func stacks(members []*member, k kind, pick func(*member) []*item) []stack {
	out := make([]stack, 0, len(members))
	for _, m := range members {
		st := stack{scopes: m.scopes, items: pick(m)}
		if k == resources {
			st.claims = m.pages
		}
		if m.listing == nil {
			st.hint = &drawbridge.Hint{}
		} else if hint, ok := m.listing.Hints[k.list]; ok || len(st.items) > 0 {
			st.hint = &hint // an empty list may fill as soon as any other
		}
		out = append(out, st)
	}
	return out
}

// maker makes items of offers.
type maker struct {
	up     Upstream
	naming Naming
}

// items makes the items of a server's offers. Those of before are kept where nothing about them changed.
func (mk maker) items(k kind, server drawbridge.ServerID, offers []offer.Offer, before []*item) []*item {
	old := make(map[string]*item, len(before))
	for _, it := range before {
		old[it.spec.Tool] = it
	}
	out := make([]*item, 0, len(offers))
	for _, o := range offers {
		it := old[o.Own]
		if it == nil || !it.offer.Same(o) {
			it = mk.item(k, server, o)
		}
		out = append(out, it)
	}
	return out
}

func (mk maker) item(k kind, server drawbridge.ServerID, o offer.Offer) *item {
	it := &item{kind: k.word, offer: o}
	switch k {
	case tools:
		it.names = label.Names(mk.naming, server, o.Name)
		card := offer.Bridge(mk.up, server, it.names[0], o.Raw)
		card.Is.Tool = o.Own
		it.card, it.spec = card, card.Is
		it.pages = offer.Pages(o.Raw)
		return it
	case prompts:
		it.names = label.Names(mk.naming, server, o.Name)
	default:
		it.names = label.URIs(mk.naming, server, o.Name)
	}
	if k == templates {
		it.template, _ = label.ParseTemplate(o.Own) // what is no template is listed and matches nothing
	}
	it.spec = drawbridge.Spec{
		Name: it.names[0], Server: server, Tool: o.Own,
		Definition: offer.Called(o.Raw, k.member, o.Name, string(it.names[0])),
		Title:      offer.OneLine(wire.Get(o.Raw, "title")), Summary: offer.OneLine(wire.Get(o.Raw, "description")),
		Scopes: []drawbridge.Scope{drawbridge.ServerScope(server)},
	}
	return it
}
