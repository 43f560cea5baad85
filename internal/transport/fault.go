package transport

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A ResponseError reports that the server responded with this JSON-RPC error object.
type ResponseError struct{ Object json.RawMessage }

const (
	// maxServerMessage is the size in bytes to which a server's message is cut in an error. The message must be short,
	// since a server can cause many such errors, and each may be logged and stored.
	maxServerMessage = 1 << 10
	// maxLoggedError is the size in bytes to which TruncatedError cuts an error, which may contain several messages.
	maxLoggedError = 16 << 10
)

// Error returns a text with the code and the message of the object. A very long message is cut.
func (r *ResponseError) Error() string {
	return fmt.Sprintf("the server answered with error %d: %s", mcp.ErrorCode(r.Object),
		safetext.Truncate(rawjson.GetString(r.Object, "message"), maxServerMessage, safetext.Bytes, "…"))
}

// TruncatedError returns the text of an error, cut to a size that can be logged and stored.
func TruncatedError(err error) string {
	return safetext.Truncate(err.Error(), maxLoggedError, safetext.Bytes, "…")
}

// FaultCode returns the fault code that corresponds to the code of the error object.
func (r *ResponseError) FaultCode() drawbridge.FaultCode {
	switch mcp.ErrorCode(r.Object) {
	case mcp.CodeInvalidParams, mcp.CodeInvalidRequest, mcp.CodeParse, mcp.CodeMissingCapability,
		mcp.CodeURLElicitation:
		return drawbridge.InvalidInput
	case mcp.CodeMethodNotFound, mcp.CodeResourceNotFound:
		return drawbridge.NotFound
	}
	return drawbridge.ServerError
}

// ResultOrError converts the results of Conn.Call to a result object or an error. A response with an error object
// becomes a *ResponseError, a malformed response a *MalformedResponseError.
func ResultOrError(response mcp.Message, err error) (json.RawMessage, error) {
	switch {
	case err != nil:
		return nil, err
	case checkResponse(response) != nil:
		return nil, checkResponse(response)
	case response.Error != nil:
		return nil, &ResponseError{response.Error}
	}
	return response.Result, nil
}

// A CodedError is an error that has a FaultCode.
type CodedError interface {
	error
	FaultCode() drawbridge.FaultCode
}

// FaultCodeOf returns the fault code for the error err of a request. If err wraps a Fault or a CodedError, it is the
// code of that error. Any other error is ServerError if it wraps ErrRefused, otherwise Transient, since a failed
// connection may succeed the next time.
func FaultCodeOf(err error) drawbridge.FaultCode {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return f.Code
	}
	if c, ok := errors.AsType[CodedError](err); ok {
		return c.FaultCode()
	}
	if errors.Is(err, ErrRefused) {
		return drawbridge.ServerError
	}
	return drawbridge.Transient
}

// WithoutNextStep returns a copy of a fault without its advice Next, for callers that set other advice. It returns any
// other error unchanged.
func WithoutNextStep(err error) error {
	if f, ok := err.(*drawbridge.Fault); ok {
		told := *f
		told.Next = ""
		return &told
	}
	return err
}
