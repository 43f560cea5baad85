package deck

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// OnEvent calls f with every event of the deck until cancel is called. f must not block, and may be called
// concurrently. Even after cancel has returned, f may be called with an event that was sent before.
func (d *Deck) OnEvent(f func(Event)) (cancel func()) { return d.listeners.Add(f) }

// HandleNotification converts a notification that a server sent outside a call into events. It ignores notifications
// about changed lists, because after them the server is listed again, and [Deck.Enrol] sends the events.
func (d *Deck) HandleNotification(n drawbridge.ServerNotification) {
	v := d.view.Load()
	m := v.server(n.Server)
	if m == nil {
		return
	}
	var hidden func(drawbridge.Caller) bool
	if v.guards.hidesAnything() {
		hidden = func(caller drawbridge.Caller) bool { return !v.mayKnowServer(caller, m) }
	}
	switch n.Method {
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged:
	case mcp.NoteResourceUpdated:
		own := rawjson.GetString(n.Params, "uri")
		for _, uri := range d.publicURIsOf(n.Server, own) {
			public := n
			if uri != own {
				public.Params = rawjson.Apply(n.Params, rawjson.Put(rawjson.Quote(uri), "uri"))
			}
			e := Event{Kind: ResourceUpdated, URI: uri, Notification: public, HiddenFrom: hidden}
			if hidden != nil {
				e.HiddenFrom = func(caller drawbridge.Caller) bool {
					return v.hidesTarget(caller,
						m.unlistedResource(uri, own))
				}
			}
			d.listeners.notify(e)
		}
	case mcp.NoteTask, mcp.NoteTaskStatus:
		d.forwardTaskUpdate(m, n, hidden)
	default:
		d.listeners.notify(Event{Kind: ServerNotified, Notification: n, HiddenFrom: hidden})
	}
}

// publicURIsOf returns the public URIs of a server's resource. If callers subscribed to the resource, these are the
// URIs that they used. Otherwise it is the listed URI, or for an unlisted resource the server's own URI.
func (d *Deck) publicURIsOf(server drawbridge.ServerID, own string) []string {
	if watched := d.subscriptions.watchedURIs(server, own); len(watched) > 0 {
		return watched
	}
	if it := d.view.Load().resources.findByOwnName(server, own); it != nil {
		return []string{string(it.spec.Name)}
	}
	return []string{own}
}
