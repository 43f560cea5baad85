package upstream

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// newListener returns the changeListener for a watcher of a stateless server.
func (w *watcher) newListener() *changeListener {
	s, e := w.session, w.server
	o := listenerOptions{
		Listen: s.sendListen, Handler: s,
		TellsListChanges: slices.ContainsFunc([]string{"tools", "prompts", "resources"}, func(kind string) bool {
			return mcp.DeclaresAny(rawjson.Get(s.capabilities, kind), "listChanged")
		}),
		Wanted: e.watch.current, OnApplied: w.markApplied,
		OnMissed: func() { wakeOne(e.signals.relist) },
		IsOver:   s.isOver, Logger: e.log,
	}
	if e.config.URL == "" {
		o.AwaitProcessed = s.awaitProcessed
	}
	return newChangeListener(w.ctx, o)
}

// sendListen sends a listening request for the watch set and returns when the request ends.
func (s *session) sendListen(ctx context.Context, w drawbridge.WatchSet, in transport.Handler) error {
	_, err := transport.ResultOrError(s.conn.Call(ctx, mcp.MethodListen, s.listenParams(w), in))
	return err
}

// awaitProcessed waits until the server has processed all earlier messages. It sends server/discover and waits for the
// response.
func (s *session) awaitProcessed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstAckTimeout)
	defer cancel()
	if _, err := s.sendRequest(ctx, mcp.MethodDiscover, s.ownRequestParams(nil)); err != nil {
		s.server.log.Debug("a server did not answer after a listening request", "error", err)
	}
}

// listenParams returns the params of a listening request: all lists and the watch set.
func (s *session) listenParams(wanted drawbridge.WatchSet) json.RawMessage {
	out := []byte(`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true`)
	if len(wanted.URIs) > 0 {
		out = rawjson.AppendStrings(append(out, `,"resourceSubscriptions":`...), wanted.URIs...)
	}
	h := s.server.ownRequestMeta(s.version)
	if len(wanted.Tasks) > 0 {
		out = rawjson.AppendStrings(append(out, `,"taskIds":`...), wanted.Tasks...)
		h.Capabilities = rawjson.Apply(h.Capabilities, rawjson.Put(json.RawMessage("{}"), "extensions",
			mcp.ExtensionTasks))
	}
	return interop.ToModernParams(rawjson.Apply(nil, rawjson.Put(append(out, '}'), "notifications")), h)
}
