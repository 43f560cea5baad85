package mcp

import (
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

import (
	"encoding/json"
	"strings"
)

// RequiredCapability returns the client capability that a server needs to send a request with this method. It returns
// "" if the method is not a server request of MCP.
func RequiredCapability(method string) string {
	switch method {
	case MethodSampling:
		return "sampling"
	case MethodElicitation:
		return "elicitation"
	case MethodRootsList:
		return "roots"
	}
	return ""
}

// DeclaresAny reports whether capabilities contains a member with one of these names. A null member counts as absent.
func DeclaresAny(capabilities json.RawMessage, names ...string) bool {
	for _, name := range names {
		if v := rawjson.Get(capabilities, name); v != nil && string(v) != "null" {
			return true
		}
	}
	return false
}

// ServerMayRequest reports whether a server may send a request to a client. client and server are their declared
// capabilities. The server may send requests that ClientAcceptsRequest permits, and requests of an extension that both
// declare and Drawbridge does not know. It may also send requests about a task that the client created for an earlier
// request (2025-11-25).
func ServerMayRequest(client, server json.RawMessage, method string, params json.RawMessage) bool {
	switch {
	case ClientAcceptsRequest(client, method, params):
		return true
	case strings.HasPrefix(method, "tasks/"):
		return DeclaresAny(client, "tasks")
	}
	return IsUnknownMethod(method) && ShareUnknownExtension(client, server)
}

// ClientMayNotify reports whether a client's notification may be sent to a server. client and server are their declared
// capabilities. Permitted are changes of the client's roots, and notifications of an extension that both declare and
// Drawbridge does not know. Also permitted is the status of a task that the client created for a server request.
func ClientMayNotify(client, server json.RawMessage, method string) bool {
	switch method {
	case NoteRootsChanged:
		return DeclaresAny(client, "roots")
	case NoteTaskStatus:
		return DeclaresAny(client, "tasks")
	}
	about, ours := strings.CutPrefix(method, "notifications/")
	if ours && (about == "initialized" || about == "cancelled" || about == "progress" || about == "message") {
		return false
	}
	return IsUnknownMethod(about) && ShareUnknownExtension(client, server)
}

// ClientAcceptsRequest reports whether a client with these capabilities accepts a request for sampling, elicitation or
// roots. An elicitation by URL requires the member "url" in the capability "elicitation". An elicitation by form
// requires "form", or the absence of "url": older clients declare an empty object for forms. Sampling with tools
// requires "tools" in the capability "sampling".
func ClientAcceptsRequest(capabilities json.RawMessage, method string, params json.RawMessage) bool {
	name := RequiredCapability(method)
	if name == "" || !DeclaresAny(capabilities, name) {
		return false
	}
	declared := rawjson.Get(capabilities, name)
	switch {
	case method == MethodElicitation && rawjson.GetString(params, "mode") == "url":
		return DeclaresAny(declared, "url")
	case method == MethodElicitation:
		return DeclaresAny(declared, "form") || !DeclaresAny(declared, "url")
	case method == MethodSampling && DeclaresAny(params, "tools", "toolChoice"):
		return DeclaresAny(declared, "tools")
	}
	return true
}
