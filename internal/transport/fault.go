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

// A ResponseError is a JSON-RPC error object that a server answered with.
type ResponseError struct{ Object json.RawMessage }

const (
	// maxServerMessage is how many bytes of a server's message an error repeats: it is logged and stored, as often as
	// the server wants.
	maxServerMessage = 1 << 10
	// maxLoggedError is how many bytes of an error are logged and kept that may repeat several of them.
	maxLoggedError = 16 << 10
)

// Error returns the code and the message of the object, shortened if it is very long.
func (r *ResponseError) Error() string {
	return fmt.Sprintf("the server answered with error %d: %s", mcp.ErrorCode(r.Object),
		safetext.Truncate(rawjson.GetString(r.Object, "message"), maxServerMessage, safetext.Bytes, "…"))
}

// TruncatedError returns the text of an error for logs and records.
func TruncatedError(err error) string {
	return safetext.Truncate(err.Error(), maxLoggedError, safetext.Bytes, "…")
}

// FaultCode returns the class of the error object by its code.
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

// ResultOrError converts the results of Conn.Call: a response with an error object becomes a *ResponseError,
// a malformed one a *MalformedResponseError.
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

// FaultCodeOf returns the class of a request's error: that of the fault or CodedError in it, if there is one. A failed
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

// WithoutNextStep returns a fault without its advice, for callers that add their own; any other error is returned as it
// is.
func WithoutNextStep(err error) error {
	if f, ok := err.(*drawbridge.Fault); ok {
		told := *f
		told.Next = ""
		return &told
	}
	return err
}
