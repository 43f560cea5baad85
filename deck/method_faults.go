package deck

import (
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// methodNotFoundFault returns the fault for an unknown method. Its member Raw is the JSON-RPC error "Method not found".
func methodNotFoundFault(method string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound, Step: "unknown method " + clipText(method),
		Raw: mcp.NewErrorObject(mcp.CodeMethodNotFound, "Method not found: "+clipText(method), nil),
	}
}

// severalServersFault returns the fault for a method of an unknown extension that several visible servers may support.
func severalServersFault(method string, servers []string) error {
	text := fmt.Sprintf(
		"Method not found: %s: several servers have an extension that you declare (%s): name a tool, prompt or resource of one of them",
		clipText(method), clipText(strings.Join(servers, ", ")))
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: text,
		Raw: mcp.NewErrorObject(mcp.CodeMethodNotFound, text, nil),
	}
}

// unexpectedTaskFault returns the fault for a server that answered a call with a task of the modern form, which the
// caller's protocol does not support.
func unexpectedTaskFault(server drawbridge.ServerID) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: fmt.Sprintf("tools/call on %s", server),
		Err: errors.New("the server turned the call into a task, which the caller's protocol does not support"),
	}
}
