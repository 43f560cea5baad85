package mcp

import (
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

import (
	"encoding/json"
	"strings"
)

// RequiredCapability returns the client capability that a server needs to send a request during a call; empty for any
// other method.
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

// DeclaresAny reports whether an object of capabilities names one of these: null is as good as absent.
func DeclaresAny(capabilities json.RawMessage, names ...string) bool {
	for _, name := range names {
		if v := rawjson.Get(capabilities, name); v != nil && string(v) != "null" {
			return true
		}
	}
	return false
}

// ServerMayRequest reports whether a client with these capabilities may be sent a request by a server with those: what
// ClientAcceptsRequest allows, a request about a task that the client has made of an earlier one (2025-11-25), and one
// of an extension that both declare.
func ServerMayRequest(client, server json.RawMessage, method string, params json.RawMessage) bool {
	switch {
	case ClientAcceptsRequest(client, method, params):
		return true
	case strings.HasPrefix(method, "tasks/"):
		return DeclaresAny(client, "tasks")
	}
	return IsUnknownMethod(method) && ShareUnknownExtension(client, server)
}

// ClientMayNotify reports whether a notification of a client with these capabilities is for a server with those: that
// its roots have changed, how a task goes that it made of the server's request, and what an extension has that both
// declare.
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

// ClientAcceptsRequest reports whether a client with these capabilities may be sent a request: sampling, elicitation or
// roots. An elicitation by URL needs "url" in elicitation, one by form "form", or nothing at all: an empty object is
// what clients declared when forms were all there was. Sampling with tools needs "tools" in sampling.
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
