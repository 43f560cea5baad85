package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/hop"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/bridge/survey"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// discover asks what a server of the modern generation is, and notes the answer. It gives what the server speaks of what
// we do.
func (s *session) discover(ctx context.Context) (era drawbridge.Era, err error) {
	params := hop.ToModern(nil, s.e.hop(wire.Version20260728))
	result, err := s.request(ctx, wire.MethodDiscover, params)
	if survey.OffersModern(err) {
		result, err = s.request(ctx, wire.MethodDiscover, params)
	}
	if err != nil {
		return 0, err
	}
	if era = survey.ErasOf(result); era.Has(drawbridge.Modern) {
		s.era, s.version = drawbridge.Modern, wire.Version20260728
		s.info = wire.Get(result, "_meta", wire.MetaServerInfo)
		s.note(result)
		hint := survey.HintOf(result)
		s.hint = &hint
	}
	return era, nil
}

// everything is what a client can declare: that a server may ask it something, and that it shows apps and reads
// skills. A server that is
// listed hears that, since some list a tool only for clients that can do what it takes.
const everything = `{"roots":{},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},` +
	`"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]},"io.modelcontextprotocol/skills":{}}}`

// initialize greets a server of the legacy generation, and notes the answer. For a session of the caller's own the server
// hears what the caller can do and speaks, and of roots that we have for who has none; for a shared one, that we can do everything: some servers list the tools that
// ask only for clients that can be asked, and a caller who can calls them on a session of its own. Here questions are
// refused, but for the one for roots.
func (s *session) initialize(ctx context.Context, opener *drawbridge.Call) error {
	s.opener = opener
	version, capabilities := wire.Version20251125, json.RawMessage(everything)
	if opener != nil {
		capabilities = hop.Rooted(opener.Caller.Capabilities, s.e.pool.o.Roots)
		if v := opener.Caller.Protocol; wire.EraOf(v) == drawbridge.Legacy {
			version = v
		}
	}
	params := wire.Apply(nil,
		wire.Put(wire.Quote(version), "protocolVersion"),
		wire.Put(capabilities, "capabilities"),
		wire.Put(json.RawMessage(hop.ClientInfo(s.e.pool.o.Version)), "clientInfo"))
	result, err := s.request(ctx, wire.MethodInitialize, params)
	if err != nil {
		return err
	}
	if s.version = wire.GetText(result, "protocolVersion"); !slices.Contains(wire.LegacyVersions(), s.version) {
		// "it SHOULD disconnect" (2025-11-25, Lifecycle)
		return fmt.Errorf("the server answers initialize with the protocol version %.40q, which we do not speak", s.version)
	}
	s.era = drawbridge.Legacy
	s.info = wire.Get(result, "serverInfo")
	s.note(result)
	if err := s.conn.Notify(ctx, wire.NoteInitialized, nil); err != nil {
		return err
	}
	s.setLevel(ctx, s.e.pool.callers.LevelFor(s.key.session))
	return nil
}

// note keeps what both greetings have.
func (s *session) note(result json.RawMessage) {
	s.capabilities = wire.Get(result, "capabilities")
	s.instructions = wire.GetText(result, "instructions")
}

// request sends a request of our own and gives its result.
func (s *session) request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return link.Result(s.conn.Do(ctx, method, params, nil))
}

// ours gives the params of a request of our own in the form that the session's generation has.
func (s *session) ours(params json.RawMessage) json.RawMessage {
	if s.era == drawbridge.Modern {
		return hop.ToModern(params, s.e.hop(s.version))
	}
	return params
}

// hop is how we present ourselves in requests of our own.
func (e *endpoint) hop(version string) hop.Hop {
	return hop.Hop{Version: version, Client: hop.ClientInfo(e.pool.o.Version), Capabilities: json.RawMessage(everything)}
}
