package bridge

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/ear"
	"github.com/drawbridge-mcp/drawbridge/bridge/hop"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// newEar makes what listens to a modern server for the watcher.
func (w *watcher) newEar() *ear.Ear {
	s, e := w.s, w.e
	o := ear.Options{
		Listen: s.listen, Handler: s,
		Lists: slices.ContainsFunc([]string{"tools", "prompts", "resources"}, func(kind string) bool {
			return wire.Declares(wire.Get(s.capabilities, kind), "listChanged")
		}),
		Wanted: w.wanted, Applied: w.applied,
		Missed: func() { signal(e.changed) },
		Over:   s.over, Logger: e.log,
	}
	if e.row.URL == "" {
		o.Settle = s.settle
	}
	return ear.New(w.ctx, o)
}

// listen sends a listening request, and waits for its end.
func (s *session) listen(ctx context.Context, w drawbridge.Watched, in link.Handler) error {
	_, err := link.Result(s.conn.Do(ctx, wire.MethodListen, s.listenParams(w), in))
	return err
}

// settle waits until the server has seen to what came before: when it answers.
func (s *session) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, listenFirst)
	defer cancel()
	if _, err := s.request(ctx, wire.MethodDiscover, s.ours(nil)); err != nil {
		s.e.log.Debug("a server did not say that it is there", "error", err)
	}
}

// listenParams asks for the changes of all lists, and for what is watched.
func (s *session) listenParams(wanted drawbridge.Watched) json.RawMessage {
	out := []byte(`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true`)
	if len(wanted.URIs) > 0 {
		out = wire.AppendTexts(append(out, `,"resourceSubscriptions":`...), wanted.URIs...)
	}
	h := s.e.hop(s.version)
	if len(wanted.Tasks) > 0 {
		out = wire.AppendTexts(append(out, `,"taskIds":`...), wanted.Tasks...)
		h.Capabilities = wire.Apply(h.Capabilities, wire.Put(json.RawMessage("{}"), "extensions", wire.ExtensionTasks))
	}
	return hop.ToModern(wire.Apply(nil, wire.Put(append(out, '}'), "notifications")), h)
}
