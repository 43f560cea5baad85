package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// discover asks what a server of the modern generation is, and notes the answer. It gives what the server speaks of
// what we do.
func (s *session) discover(ctx context.Context) (era drawbridge.ProtocolEra, err error) {
	params := interop.ToModernParams(nil, s.server.ownRequestMeta(mcp.Version20260728))
	result, err := s.sendRequest(ctx, mcp.MethodDiscover, params)
	if offersModernVersion(err) {
		result, err = s.sendRequest(ctx, mcp.MethodDiscover, params)
	}
	if err != nil {
		return 0, err
	}
	if era = supportedEras(result); era.Has(drawbridge.Modern) {
		s.era, s.version = drawbridge.Modern, mcp.Version20260728
		s.info = rawjson.Get(result, "_meta", mcp.MetaServerInfo)
		s.saveServerInfo(result)
		hint := parseCacheHint(result)
		s.hint = &hint
	}
	return era, nil
}

// fullCapabilities is what a client can declare: that a server may ask it something, and that it shows apps and reads
// skills. A server that is
// listed hears that, since some list a tool only for clients that can do what it takes.
const fullCapabilities = `{"roots":{},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},` +
	`"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]},"io.modelcontextprotocol/skills":{}}}`

// initialize greets a server of the legacy generation, and notes the answer. For a session of the caller's own the
// server hears what the caller can do and speaks, and of roots that we have for who has none; for a shared one, that
// we can do everything: some servers list the tools that ask only for clients that can be asked, and a caller who can
// calls them on a session of its own. Here questions are refused, but for the one for roots.
func (s *session) initialize(ctx context.Context, opener *drawbridge.Call) error {
	s.openingCall = opener
	version, capabilities := mcp.Version20251125, json.RawMessage(fullCapabilities)
	if opener != nil {
		capabilities = interop.WithRoots(opener.Caller.Capabilities, s.server.pool.o.Roots)
		if v := opener.Caller.Protocol; mcp.EraOf(v) == drawbridge.Legacy {
			version = v
		}
	}
	params := rawjson.Apply(nil,
		rawjson.Put(rawjson.Quote(version), "protocolVersion"),
		rawjson.Put(capabilities, "capabilities"),
		rawjson.Put(json.RawMessage(interop.ClientInfo(s.server.pool.o.Version)), "clientInfo"))
	result, err := s.sendRequest(ctx, mcp.MethodInitialize, params)
	if err != nil {
		return err
	}
	if s.version = rawjson.GetString(result, "protocolVersion"); !slices.Contains(mcp.LegacyVersions(), s.version) {
		// "it SHOULD disconnect" (2025-11-25, Lifecycle)
		return fmt.Errorf("the server answers initialize with the protocol version %.40q, which we do not speak",
			s.version)
	}
	s.era = drawbridge.Legacy
	s.info = rawjson.Get(result, "serverInfo")
	s.saveServerInfo(result)
	if err := s.conn.Notify(ctx, mcp.NoteInitialized, nil); err != nil {
		return err
	}
	s.setLogLevel(ctx, s.server.pool.callerSessions.connectionLogLevel(s.key.session))
	return nil
}

// saveServerInfo keeps what both greetings have.
func (s *session) saveServerInfo(result json.RawMessage) {
	s.capabilities = rawjson.Get(result, "capabilities")
	s.instructions = rawjson.GetString(result, "instructions")
}

// sendRequest sends a request of our own and gives its result.
func (s *session) sendRequest(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return transport.ResultOrError(s.conn.Call(ctx, method, params, nil))
}

// ownRequestParams gives the params of a request of our own in the form that the session's generation has.
func (s *session) ownRequestParams(params json.RawMessage) json.RawMessage {
	if s.era == drawbridge.Modern {
		return interop.ToModernParams(params, s.server.ownRequestMeta(s.version))
	}
	return params
}

// ownRequestMeta is how we present ourselves in requests of our own.
func (e *managedServer) ownRequestMeta(version string) interop.RequestMeta {
	return interop.RequestMeta{Version: version, ClientInfo: interop.ClientInfo(e.pool.o.Version),
		Capabilities: json.RawMessage(fullCapabilities)}
}
