package deck

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// OnEvent has f called with each event until cancel is called. f must not block, and may be called from several
// goroutines at once, and once more while cancel is on its way.
func (d *Deck) OnEvent(f func(Event)) (cancel func()) { return d.listeners.Add(f) }

// Notice takes what a server said outside any call and tells it as an event. That a list changed is not taken from here
// but from the listing that follows it, see [Deck.Enrol].
func (d *Deck) Notice(n drawbridge.Notice) {
	v := d.view.Load()
	m := v.member(n.Server)
	if m == nil {
		return
	}
	var hidden func(drawbridge.Caller) bool
	if v.gate.Screens() {
		hidden = func(caller drawbridge.Caller) bool { return !v.knows(caller, m) }
	}
	switch n.Method {
	case wire.NoteToolsChanged, wire.NotePromptsChanged, wire.NoteResourcesChanged:
	case wire.NoteResourceUpdated:
		own := wire.GetText(n.Params, "uri")
		for _, uri := range d.publicURIs(n.Server, own) {
			public := n
			if uri != own {
				public.Params = wire.Apply(n.Params, wire.Put(wire.Quote(uri), "uri"))
			}
			e := Event{Kind: ResourceUpdated, URI: uri, Notice: public, HiddenFrom: hidden}
			if hidden != nil {
				e.HiddenFrom = func(caller drawbridge.Caller) bool { return v.hides(caller, m.unlisted(uri, own)) }
			}
			d.listeners.Tell(e)
		}
	case wire.NoteTask, wire.NoteTaskStatus:
		d.taskNoticed(m, n, hidden)
	default:
		d.listeners.Tell(Event{Kind: Noticed, Notice: n, HiddenFrom: hidden})
	}
}

// publicURIs gives the URIs by which callers know a server's resource: those it is watched by, else the one it is listed
// by, else its own.
func (d *Deck) publicURIs(server drawbridge.ServerID, own string) []string {
	if watched := d.watches.PublicOf(server, own); len(watched) > 0 {
		return watched
	}
	if it := d.view.Load().resources.ownedBy(server, own); it != nil {
		return []string{string(it.spec.Name)}
	}
	return []string{own}
}
