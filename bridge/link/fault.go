package link

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A ReplyError is a JSON-RPC error object that a server answered with.
type ReplyError struct{ Object json.RawMessage }

const (
	// mostSaid is how many bytes of a server's message an error repeats: it is logged and kept, and the server says how often.
	mostSaid = 1 << 10
	// mostTold is how many bytes of an error are logged and kept that may repeat several of them.
	mostTold = 16 << 10
)

// Error gives the code and the message of the object; of a very long one the beginning.
func (r *ReplyError) Error() string {
	return fmt.Sprintf("the server answered with error %d: %s", wire.ErrorCode(r.Object), safetext.Truncate(wire.GetText(r.Object, "message"), mostSaid, safetext.Bytes, "…"))
}

// Told is what is logged and kept of an error.
func Told(err error) string { return safetext.Truncate(err.Error(), mostTold, safetext.Bytes, "…") }

// FaultCode sorts the error object by its code.
func (r *ReplyError) FaultCode() drawbridge.FaultCode {
	switch wire.ErrorCode(r.Object) {
	case wire.CodeInvalidParams, wire.CodeInvalidRequest, wire.CodeParse, wire.CodeMissingCapability, wire.CodeURLElicitation:
		return drawbridge.InvalidInput
	case wire.CodeMethodNotFound, wire.CodeResourceNotFound:
		return drawbridge.NotFound
	}
	return drawbridge.ServerError
}

// Result takes what [Conn] Do gives apart: a response with an error object is a *ReplyError.
func Result(response wire.Message, err error) (json.RawMessage, error) {
	switch {
	case err != nil:
		return nil, err
	case response.Error != nil:
		return nil, &ReplyError{response.Error}
	}
	return response.Result, nil
}

// A Coded is an error that knows what a caller can do about it.
type Coded interface {
	error
	FaultCode() drawbridge.FaultCode
}

// CodeOf sorts the error of a request by what a caller can do about it: as the fault or the Coded error in it says; a
// connection that came to nothing may come about the next time.
func CodeOf(err error) drawbridge.FaultCode {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return f.Code
	}
	if c, ok := errors.AsType[Coded](err); ok {
		return c.FaultCode()
	}
	if errors.Is(err, ErrRefused) {
		return drawbridge.ServerError
	}
	return drawbridge.Transient
}

// WithoutNext gives a fault without what to do, for where that is said around it; any other error as it is.
func WithoutNext(err error) error {
	if f, ok := err.(*drawbridge.Fault); ok {
		told := *f
		told.Next = ""
		return &told
	}
	return err
}
