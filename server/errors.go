package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// failed turns the error of a call into what its caller is told. What a server answered with passes, see recoded. For
// tools/call, what a model can act on becomes a result of the tool, since models do not see protocol errors; everything
// else is an error of the protocol. An error that is no fault is logged, and says "internal error" outside.
func (s *Server) failed(ctx context.Context, caller drawbridge.Caller, method string, params json.RawMessage, err error) reply {
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
		return reply{fault: recoded(caller.Era, method, f.Raw)}
	case f.Code == drawbridge.NotFound || f.Kind == drawbridge.UnknownCapability:
		return missing(caller.Era, method, params, f)
	case f.Code == drawbridge.InvalidInput:
		return failure(wire.CodeInvalidParams, f.Error(), nil)
	case method == wire.MethodToolsCall:
		return s.finish(caller, method, s.faultResult(caller, params, f))
	}
	return failure(wire.CodeInternal, f.Error(), faultData(f, ""))
}

// recoded is a server's error with the code that the caller's generation has for a resource that is not there. Nothing else
// of it changes. A code that the caller's generation has for more than that is taken for it where the data name the resource.
func recoded(era drawbridge.Era, method string, fault json.RawMessage) json.RawMessage {
	if method != wire.MethodResourcesRead {
		return fault
	}
	code := wire.ErrorCode(fault)
	switch _, named := wire.Text(wire.Get(fault, "data", "uri")); {
	case era == drawbridge.Modern && code == wire.CodeResourceNotFound:
		code = wire.CodeInvalidParams
	case era != drawbridge.Modern && code == wire.CodeInvalidParams && named:
		code = wire.CodeResourceNotFound
	default:
		return fault
	}
	return wire.Apply(fault, wire.Put(strconv.AppendInt(nil, int64(code), 10), "code"))
}

// missing says that something does not exist, in the words that the specification has for it.
func missing(era drawbridge.Era, method string, params json.RawMessage, f *drawbridge.Fault) reply {
	known := f.Kind != drawbridge.UnknownCapability
	switch {
	case method == wire.MethodResourcesRead || method == wire.MethodSubscribe:
		code := wire.CodeInvalidParams
		if era != drawbridge.Modern {
			code = wire.CodeResourceNotFound
		}
		data := append([]byte(`{"uri":`), wire.Quote(wire.GetText(params, "uri"))...)
		return failure(code, "Resource not found", append(data, '}'))
	case known:
		return failure(wire.CodeInvalidParams, f.Error(), faultData(f, ""))
	case method == wire.MethodToolsCall:
		return failure(wire.CodeInvalidParams, "Unknown tool: "+clip(wire.GetText(params, "name")), nil)
	case method == wire.MethodPromptsGet:
		return failure(wire.CodeInvalidParams, "Unknown prompt: "+clip(wire.GetText(params, "name")), nil)
	}
	return failure(wire.CodeInvalidParams, f.Error(), nil)
}

// FaultMeta is the member of a tool result's "_meta" that says what kept the tool from being called: an object of
// "code" (one of the fault codes), "server" (where a server is to blame) and "ambiguous" (the call may have taken effect).
const FaultMeta = "drawbridge/fault"

// faultResult is a fault as the result of a tool: for the model a text with step, cause and next step, for programs a
// member of "_meta".
func (s *Server) faultResult(caller drawbridge.Caller, params json.RawMessage, f *drawbridge.Fault) json.RawMessage {
	var server string
	if spec, ok := s.deck.Find(caller, drawbridge.CardName(wire.GetText(params, "name"))); ok {
		server = string(spec.Server)
	}
	out := append([]byte(`{"content":[{"type":"text","text":`), wire.Quote(f.Error())...)
	out = append(out, `}],"isError":true,"_meta":{"`+FaultMeta+`":`...)
	return append(append(out, faultData(f, server)...), '}', '}')
}

func faultData(f *drawbridge.Fault, server string) json.RawMessage {
	out := append([]byte(`{"code":`), wire.Quote(string(f.Code))...)
	if server != "" {
		out = append(append(out, `,"server":`...), wire.Quote(server)...)
	}
	return fmt.Appendf(out, `,"ambiguous":%t}`, f.Ambiguous)
}

func noMethod(method string) reply {
	return failure(wire.CodeMethodNotFound, "Method not found: "+clip(method), nil)
}

// statusOf is the HTTP status of a modern answer: 404 and 400 for the errors that 2026-07-28 names, else 200.
func statusOf(r reply) int {
	if r.fault == nil {
		return http.StatusOK
	}
	switch wire.ErrorCode(r.fault) {
	case wire.CodeMethodNotFound:
		return http.StatusNotFound
	case wire.CodeParse, wire.CodeInvalidRequest, wire.CodeInvalidParams, wire.CodeHeaderMismatch,
		wire.CodeMissingCapability, wire.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// clip shortens what a caller wrote to what an error may repeat.
func clip(text string) string {
	return safetext.Truncate(text, 200, safetext.Bytes, "…")
}
