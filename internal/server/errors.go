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

// errorReply turns the error of a call into what its caller is told. What a server answered with passes, see recoded.
// For tools/call, what a model can act on becomes a result of the tool, since models do not see protocol errors;
// everything else is an error of the protocol. An error that is no fault is logged, and says "internal error" outside.
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

// recodeError is a server's error with the code that the caller's generation has for a resource that is not there.
// Nothing else of it changes. A code that the caller's generation has for more than that is taken for it where the
// data name the resource.
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

// notFoundReply says that something does not exist, in the words that the specification has for it.
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

// FaultMeta is the member of a tool result's "_meta" that says what kept the tool from being called: an object of
// "code" (one of the fault codes), "server" (where a server is to blame) and "ambiguous" (the call may have taken
// effect).
const FaultMeta = "drawbridge/fault"

// faultResult is a fault as the result of a tool: for the model a text with step, cause and next step, for programs a
// member of "_meta".
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

// httpStatus is the HTTP status of a modern answer: 404 and 400 for the errors that 2026-07-28 names, else 200.
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

// truncate shortens what a caller wrote to what an error may repeat.
func truncate(text string) string {
	return safetext.Truncate(text, 200, safetext.Bytes, "…")
}
