package upstream

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// resourceSubscriptions manages the subscriptions to resources at a stateful server. Its methods must be called from
// one goroutine.
type resourceSubscriptions struct {
	// SendRequest sends a request and returns its result. An error response is a *transport.ResponseError.
	SendRequest func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Supported is set if the server declares resource subscriptions. Otherwise update sends no request and returns all
	// resources as refused.
	Supported bool
	// Logger receives errors that are reported nowhere else.
	Logger *slog.Logger

	active map[string]bool
}

var errNoSubscriptions = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: "the server does not support resource subscriptions",
}

// update subscribes to the resources uris and unsubscribes from all others. It returns the subscriptions that the
// server refused.
func (s *resourceSubscriptions) update(ctx context.Context, uris []string) (refused watchRefusals) {
	if !s.Supported {
		if len(uris) > 0 {
			refused = watchRefusals{newWatchRefusal(drawbridge.WatchSet{URIs: uris}, errNoSubscriptions)}
		}
		return refused
	}
	wanted := make(map[string]bool, len(uris)) // there may be thousands of URIs
	for _, uri := range uris {
		wanted[uri] = true
	}
	for uri := range s.active {
		if wanted[uri] {
			continue
		}
		if err := s.sendSubscription(ctx, mcp.MethodUnsubscribe, uri); err != nil {
			s.Logger.Info("a server did not end a subscription", "error", err)
		}
		delete(s.active, uri)
	}
	if s.active == nil {
		s.active = map[string]bool{}
	}
	for _, uri := range uris {
		if s.active[uri] {
			continue
		}
		if err := s.sendSubscription(ctx, mcp.MethodSubscribe, uri); err != nil {
			refused = append(refused, newWatchRefusal(drawbridge.WatchSet{URIs: []string{uri}}, err))
			continue
		}
		s.active[uri] = true
	}
	return refused
}

func (s *resourceSubscriptions) sendSubscription(ctx context.Context, method, uri string) error {
	_, err := s.SendRequest(ctx, method, rawjson.Apply(nil, rawjson.Put(rawjson.Quote(uri), "uri")))
	return err
}
