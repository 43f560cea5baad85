package interop

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// refusals are the words with which the official SDKs for Go, TypeScript and Python refuse to send a request to the
// client during a call of the stateless generation. The first is of the first two, the second is of the third.
var refusals = [...]string{"cannot be sent while serving a request", "no back-channel for server-initiated requests"}

// ReportsRefusedRequest reports whether the result of a tool is an error because the server's SDK refused to send a
// request to the client: sampling, elicitation or roots. Servers that were written for the stateful generation send
// such requests; the stateless generation does not have them.
func ReportsRefusedRequest(result json.RawMessage) bool {
	if !rawjson.MayContain(result, "isError") || string(rawjson.Get(result, "isError")) != "true" {
		return false
	}
	for block := range rawjson.Elements(rawjson.Get(result, "content")) {
		if mentionsRefusedRequest(rawjson.GetString(block, "text")) {
			return true
		}
	}
	return false
}

// IsRefusedRequest reports whether a JSON-RPC error object has the cause that ReportsRefusedRequest describes.
func IsRefusedRequest(errorObject json.RawMessage) bool {
	return mentionsRefusedRequest(rawjson.GetString(errorObject, "message"))
}

func mentionsRefusedRequest(text string) bool {
	inText := func(words string) bool { return strings.Contains(text, words) }
	return slices.ContainsFunc(refusals[:], inText) &&
		slices.ContainsFunc([]string{mcp.MethodElicitation, mcp.MethodSampling, mcp.MethodRootsList}, inText)
}
