package upstream

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// resourceSubscriptions are the resources that a stateful server was asked to tell of. Their methods are for one
// goroutine.
type resourceSubscriptions struct {
	// SendRequest sends a request and gives its result; an error object of the server is a *transport.ResponseError.
	SendRequest func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Supported says that the server declares that its resources can be watched; else nothing is asked of it.
	Supported bool
	// Logger is told of what nobody else hears of.
	Logger *slog.Logger

	active map[string]bool
}

var errNoSubscriptions = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: "the server does not let its resources be watched",
}

// update has the server tell of these resources and no others, by what is different from the last time. It gives what
// the server refused.
func (s *resourceSubscriptions) update(ctx context.Context, uris []string) (refused watchRefusals) {
	if !s.Supported {
		if len(uris) > 0 {
			refused = watchRefusals{newWatchRefusal(drawbridge.WatchSet{URIs: uris}, errNoSubscriptions)}
		}
		return refused
	}
	wanted := make(map[string]bool, len(uris)) // there may be a thousand of each of many callers
	for _, uri := range uris {
		wanted[uri] = true
	}
	for uri := range s.active {
		if wanted[uri] {
			continue
		}
		if err := s.sendSubscription(ctx, mcp.MethodUnsubscribe, uri); err != nil {
			s.Logger.Info("a server did not take back a subscription", "error", err)
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
