package deck

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// OnEvent registers f for every event until cancel is called. f must not block and may be called concurrently. f may
// still be called after cancel with an event that was sent before.
func (d *Deck) OnEvent(f func(Event)) (cancel func()) { return d.listeners.Add(f) }

// HandleNotification converts a server's notification outside any call into an event. It ignores notifications of
// changed lists: the following [Deck.Enrol] detects the changes.
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

// publicURIsOf returns the public URIs of a server's resource. These are the watched URIs, or the listed URI if none is
// watched, or otherwise the server's own URI.
func (d *Deck) publicURIsOf(server drawbridge.ServerID, own string) []string {
	if watched := d.subscriptions.watchedURIs(server, own); len(watched) > 0 {
		return watched
	}
	if it := d.view.Load().resources.findByOwnName(server, own); it != nil {
		return []string{string(it.spec.Name)}
	}
	return []string{own}
}
