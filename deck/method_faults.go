package deck

import (
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// methodNotFoundFault is the fault for a method that nobody answers, in the words of JSON-RPC.
func methodNotFoundFault(method string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound, Step: "unknown method " + clipText(method),
		Raw: mcp.NewErrorObject(mcp.CodeMethodNotFound, "Method not found: "+clipText(method), nil),
	}
}

// severalServersFault is the fault for a method that any of several servers may have, all of which the caller may know
// of.
func severalServersFault(method string, servers []string) error {
	text := fmt.Sprintf(
		"Method not found: %s: several servers have an extension that you declare (%s): name a tool, prompt or resource of one of them",
		clipText(method), clipText(strings.Join(servers, ", ")))
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: text,
		Raw: mcp.NewErrorObject(mcp.CodeMethodNotFound, text, nil),
	}
}

// unexpectedTaskFault refuses a task for a caller whose protocol has no words for it.
func unexpectedTaskFault(server drawbridge.ServerID) error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: fmt.Sprintf("tools/call on %s", server),
		Err: errors.New("the server made a task of the call, which the caller's protocol has no words for"),
	}
}
