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

// discover sends server/discover and returns the protocol eras that both server and Drawbridge support. If the server
// supports the stateless era, discover stores the server's data in the session. If the server refuses the protocol
// version but lists it as supported, discover sends the request once more.
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

// fullCapabilities are all client capabilities that Drawbridge knows: server requests, apps and skills. The primary
// session declares them, since some servers list a tool only for clients that declare the capability that the tool
// needs.
const fullCapabilities = `{"roots":{},"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}},` +
	`"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]},"io.modelcontextprotocol/skills":{}}}`

// initialize sends the request initialize to a stateful server and stores the result in the session. opener is the call
// for which an extra session is opened. The session then declares the capabilities and the protocol version of that
// call's caller. Drawbridge's roots are added if the caller declares none.
//
// If opener is nil, callers with different capabilities share the session, and the session declares fullCapabilities.
// Some servers list tools that send requests only for clients that accept such requests. A caller that accepts requests
// calls those tools on an extra session. On the shared session, all server requests except roots/list are refused.
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
		return fmt.Errorf("initialize: the server chose protocol version %.40q, which is not supported",
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

// saveServerInfo stores the members that are in the results of both server/discover and initialize.
func (s *session) saveServerInfo(result json.RawMessage) {
	s.capabilities = rawjson.Get(result, "capabilities")
	s.instructions = rawjson.GetString(result, "instructions")
}

// sendRequest sends a request that Drawbridge itself makes, and returns its result.
func (s *session) sendRequest(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return transport.ResultOrError(s.conn.Call(ctx, method, params, nil))
}

// ownRequestParams returns the params of a request that Drawbridge itself makes, in the form of the session's protocol
// era.
func (s *session) ownRequestParams(params json.RawMessage) json.RawMessage {
	if s.era == drawbridge.Modern {
		return interop.ToModernParams(params, s.server.ownRequestMeta(s.version))
	}
	return params
}

// ownRequestMeta returns the metadata of requests that Drawbridge itself makes.
func (e *managedServer) ownRequestMeta(version string) interop.RequestMeta {
	return interop.RequestMeta{Version: version, ClientInfo: interop.ClientInfo(e.pool.o.Version),
		Capabilities: json.RawMessage(fullCapabilities)}
}
