package upstream

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A server that supports both protocol eras is used in the stateless era, for callers of both: one connection, and for
// a stdio server one process, serves all of them. This file lists the features for which a stateful caller needs a
// stateful session in addition. That session is opened when the feature is used. One pipe cannot carry both eras: the
// servers of the official SDKs keep the era of the first request on a connection.

// needsStatefulSession reports whether a call of a stateful caller must run in the stateful era at a server that
// supports both. It returns true in each of these cases:
//
//   - The row isolates callers: each gets a session of its own.
//   - The call concerns a task of 2025-11-25, or a tool that can be called only as a task.
//   - Caller and server share an extension that Drawbridge does not know. It may have notifications and requests that
//     only a session can carry.
//   - The server may send requests to the caller, and does so only in the stateful era: it did before, or it is reached
//     over HTTP, where a session is not a process.
//   - The caller already has a session of its own.
//
// sessions.mu must be held.
func (e *managedServer) needsStatefulSession(call drawbridge.Call) bool {
	c := call.Caller
	if c.Era != drawbridge.Legacy {
		return false
	}
	if e.config.Isolate == "session" || e.usesTask(call) {
		return true
	}
	if e.pool.clients.canBeAsked(c) && (e.sessions.asksClients || e.config.URL != "") {
		return true
	}
	if e.pool.clients.traits(c).declaresExtensions &&
		mcp.ShareUnknownExtension(c.Capabilities, e.listing.capabilities()) {
		return true
	}
	return c.Session != "" &&
		e.sessions.live[sessionKey{era: drawbridge.Legacy, principal: c.Principal, session: c.Session}] != nil
}

// usesTask reports whether a call concerns a task of 2025-11-25: it creates one, refers to one, or calls a tool that
// can be called only as a task.
func (e *managedServer) usesTask(call drawbridge.Call) bool {
	if call.Method != mcp.MethodToolsCall {
		return strings.HasPrefix(call.Method, "tasks/")
	}
	if only := e.listing.taskOnly(); len(only) > 0 && only[rawjson.GetString(call.Params, "name")] {
		return true
	}
	return rawjson.MayContain(call.Params, `task`) && rawjson.Get(call.Params, "task") != nil
}

// mustRepeatStatefully reports whether a call that ended with result or err must be made again in a stateful session. A
// server may be able to send requests to its client only in the stateful era. Its SDK refuses to send one during a call
// of the stateless era, and the call fails. From then on, the server's callers that accept requests use stateful
// sessions. The repetition is like a round of a stateless call that asks for input: the server starts again.
func (e *managedServer) mustRepeatStatefully(s *session, call drawbridge.Call, result json.RawMessage,
	err error) bool {
	if s.era != drawbridge.Modern || call.Caller.Era != drawbridge.Legacy ||
		!e.sessions.knownEra().Has(drawbridge.Legacy) || !e.pool.clients.canBeAsked(call.Caller) {
		return false
	}
	if refused, ok := errors.AsType[*transport.ResponseError](err); ok {
		if !interop.IsRefusedRequest(refused.Object) {
			return false
		}
	} else if err != nil || !interop.ReportsRefusedRequest(result) {
		return false
	}
	if rawjson.Get(call.Params, "inputResponses") != nil || rawjson.Get(call.Params, "requestState") != nil {
		return false // a later round, which only the stateless era has
	}
	e.sessions.markAsksClients()
	return true
}
