package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// errorReply converts the error of a call to a reply. An error object of a server is passed on, see recodeError. For
// tools/call, an error that a model can act on becomes a tool result, because models do not see protocol errors. Every
// other error becomes a protocol error. An error that is not a *drawbridge.Fault is logged, and the caller receives
// "internal error". If ctx has ended, errorReply returns the zero reply.
func (s *Server) errorReply(ctx context.Context, caller drawbridge.Caller, method string, params json.RawMessage,
	err error) reply {
	if ctx.Err() != nil {
		return reply{}
	}
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok {
		s.log.Error("a request ended in an internal error", "method", method, "err", err)
		f = drawbridge.AsFault(err)
	}
	switch {
	case f.Raw != nil:
		return reply{fault: recodeError(caller.Era, method, f.Raw)}
	case f.Code == drawbridge.NotFound || f.Kind == drawbridge.UnknownCapability:
		return notFoundReply(caller.Era, method, params, f)
	case f.Code == drawbridge.InvalidInput:
		return failureReply(mcp.CodeInvalidParams, f.Error(), nil)
	case method == mcp.MethodToolsCall:
		return s.finishResult(caller, method, s.faultResult(caller, params, f))
	}
	return failureReply(mcp.CodeInternal, f.Error(), faultData(f, ""))
}

// recodeError changes the code of a server's error for a missing resource to the code that the caller's protocol
// generation uses. All other errors are returned unchanged. CodeInvalidParams has several meanings; it counts as
// "missing resource" only if the error's data contain the URI.
func recodeError(era drawbridge.ProtocolEra, method string, fault json.RawMessage) json.RawMessage {
	if method != mcp.MethodResourcesRead {
		return fault
	}
	code := mcp.ErrorCode(fault)
	switch _, named := rawjson.DecodeString(rawjson.Get(fault, "data", "uri")); {
	case era == drawbridge.Modern && code == mcp.CodeResourceNotFound:
		code = mcp.CodeInvalidParams
	case era != drawbridge.Modern && code == mcp.CodeInvalidParams && named:
		code = mcp.CodeResourceNotFound
	default:
		return fault
	}
	return rawjson.Apply(fault, rawjson.Put(strconv.AppendInt(nil, int64(code), 10), "code"))
}

// notFoundReply returns the reply for a tool, prompt or resource that does not exist, with the code and the message of
// the specification.
func notFoundReply(era drawbridge.ProtocolEra, method string, params json.RawMessage, f *drawbridge.Fault) reply {
	known := f.Kind != drawbridge.UnknownCapability
	switch {
	case method == mcp.MethodResourcesRead || method == mcp.MethodSubscribe:
		code := mcp.CodeInvalidParams
		if era != drawbridge.Modern {
			code = mcp.CodeResourceNotFound
		}
		data := append([]byte(`{"uri":`), rawjson.Quote(rawjson.GetString(params, "uri"))...)
		return failureReply(code, "Resource not found", append(data, '}'))
	case known:
		return failureReply(mcp.CodeInvalidParams, f.Error(), faultData(f, ""))
	case method == mcp.MethodToolsCall:
		return failureReply(mcp.CodeInvalidParams, "Unknown tool: "+truncate(rawjson.GetString(params, "name")), nil)
	case method == mcp.MethodPromptsGet:
		return failureReply(mcp.CodeInvalidParams, "Unknown prompt: "+truncate(rawjson.GetString(params, "name")), nil)
	}
	return failureReply(mcp.CodeInvalidParams, f.Error(), nil)
}

// FaultMeta is the name of the member of a tool result's "_meta" that explains why the call failed. Its value is an
// object. Its members are "code" (a fault code), "server" (the called server, if any) and "ambiguous" (true if the call
// may have taken effect).
const FaultMeta = "drawbridge/fault"

// faultResult returns the tool result for a fault. It contains a text for the model with the failed step, the cause and
// the next step, and the member FaultMeta for programs.
func (s *Server) faultResult(caller drawbridge.Caller, params json.RawMessage, f *drawbridge.Fault) json.RawMessage {
	var server string
	if spec, ok := s.deck.FindCard(caller, drawbridge.CardName(rawjson.GetString(params, "name"))); ok {
		server = string(spec.Server)
	}
	out := append([]byte(`{"content":[{"type":"text","text":`), rawjson.Quote(f.Error())...)
	out = append(out, `}],"isError":true,"_meta":{"`+FaultMeta+`":`...)
	return append(append(out, faultData(f, server)...), '}', '}')
}

func faultData(f *drawbridge.Fault, server string) json.RawMessage {
	out := append([]byte(`{"code":`), rawjson.Quote(string(f.Code))...)
	if server != "" {
		out = append(append(out, `,"server":`...), rawjson.Quote(server)...)
	}
	return fmt.Appendf(out, `,"ambiguous":%t}`, f.Ambiguous)
}

func methodNotFound(method string) reply {
	return failureReply(mcp.CodeMethodNotFound, "Method not found: "+truncate(method), nil)
}

// httpStatus returns the HTTP status of a response to a stateless request: 404 or 400 for the errors that 2026-07-28
// names, else 200.
func httpStatus(r reply) int {
	if r.fault == nil {
		return http.StatusOK
	}
	switch mcp.ErrorCode(r.fault) {
	case mcp.CodeMethodNotFound:
		return http.StatusNotFound
	case mcp.CodeParse, mcp.CodeInvalidRequest, mcp.CodeInvalidParams, mcp.CodeHeaderMismatch,
		mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// truncate returns a text that a caller sent, truncated to 200 bytes, for an error message.
func truncate(text string) string {
	return safetext.Truncate(text, 200, safetext.Bytes, "…")
}
