package ear

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Subscriptions are the resources that a stateful server was asked to tell of. Their methods are for one goroutine.
type Subscriptions struct {
	// Ask sends a request and gives its result; an error object of the server is a *link.ReplyError.
	Ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// Able says that the server declares that its resources can be watched; else nothing is asked of it.
	Able bool
	// Logger is told of what nobody else hears of.
	Logger *slog.Logger

	taken map[string]bool
}

var errNoSubscriptions = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: "the server does not let its resources be watched",
}

// Turn has the server tell of these resources and no others, by what is different from the last time. It gives what the
// server refused.
func (s *Subscriptions) Turn(ctx context.Context, uris []string) (refused Refusals) {
	if !s.Able {
		if len(uris) > 0 {
			refused = Refusals{refusal(drawbridge.Watched{URIs: uris}, errNoSubscriptions)}
		}
		return refused
	}
	wanted := make(map[string]bool, len(uris)) // there may be a thousand of each of many callers
	for _, uri := range uris {
		wanted[uri] = true
	}
	for uri := range s.taken {
		if wanted[uri] {
			continue
		}
		if err := s.tell(ctx, wire.MethodUnsubscribe, uri); err != nil {
			s.Logger.Info("a server did not take back a subscription", "error", err)
		}
		delete(s.taken, uri)
	}
	if s.taken == nil {
		s.taken = map[string]bool{}
	}
	for _, uri := range uris {
		if s.taken[uri] {
			continue
		}
		if err := s.tell(ctx, wire.MethodSubscribe, uri); err != nil {
			refused = append(refused, refusal(drawbridge.Watched{URIs: []string{uri}}, err))
			continue
		}
		s.taken[uri] = true
	}
	return refused
}

func (s *Subscriptions) tell(ctx context.Context, method, uri string) error {
	_, err := s.Ask(ctx, method, wire.Apply(nil, wire.Put(wire.Quote(uri), "uri")))
	return err
}
