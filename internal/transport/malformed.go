package transport

import (
	"errors"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A MalformedResponseError reports a response that does not conform to JSON-RPC or MCP. The request was delivered and
// may have taken effect.
type MalformedResponseError struct{ Reason string }

// Error returns a text with the reason.
func (e *MalformedResponseError) Error() string { return "malformed response: " + e.Reason }

// FaultCode returns ServerError.
func (*MalformedResponseError) FaultCode() drawbridge.FaultCode { return drawbridge.ServerError }

// isResponseOrMalformed reports whether a message is a response, including a response that lacks its result. If such a
// malformed response were dropped, the request would wait until its timeout.
func isResponseOrMalformed(m mcp.Message) bool {
	return m.IsResponse() || m.Method == "" && m.ID != nil
}

// checkResponse returns an error for a malformed response, otherwise nil. The IDs of Drawbridge's requests are
// integers, and JSON-RPC requires a response to contain the same ID.
func checkResponse(m mcp.Message) error {
	switch {
	case m.Ambiguous != "":
		return &MalformedResponseError{fmt.Sprintf("member %q is repeated or has a look-alike", m.Ambiguous)}
	case slices.ContainsFunc(m.ID, func(c byte) bool { return c < '0' || c > '9' }) && !isParseFailure(m):
		return &MalformedResponseError{"the id is not the integer that the request had"}
	case m.Error != nil:
		return nil
	case m.Result == nil:
		return &MalformedResponseError{"it has neither result nor error"}
	case m.Result[0] != '{':
		return &MalformedResponseError{"the result is not an object"}
	}
	return nil
}

// IsMalformed reports whether an error wraps a *MalformedResponseError.
func IsMalformed(err error) bool {
	_, ok := errors.AsType[*MalformedResponseError](err)
	return ok
}
