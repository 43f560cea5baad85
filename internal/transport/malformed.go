package transport

import (
	"errors"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A MalformedResponseError is a response of a server that does not conform to JSON-RPC or MCP. The request was
// delivered and may have taken effect.
type MalformedResponseError struct{ Reason string }

// Error names the defect.
func (e *MalformedResponseError) Error() string { return "malformed response: " + e.Reason }

// FaultCode is ServerError: a retry brings the same.
func (*MalformedResponseError) FaultCode() drawbridge.FaultCode { return drawbridge.ServerError }

// isResponseOrMalformed reports whether a message answers a request, also without the result that it must have. To
// drop such a message would make the request wait for its timeout.
func isResponseOrMalformed(m mcp.Message) bool {
	return m.IsResponse() || m.Method == "" && m.ID != nil
}

// checkResponse returns what makes a response malformed, or nil. The ids of our requests are integers, and JSON-RPC
// wants them back as they were.
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

// IsMalformed reports whether an error is a malformed response.
func IsMalformed(err error) bool {
	_, ok := errors.AsType[*MalformedResponseError](err)
	return ok
}
