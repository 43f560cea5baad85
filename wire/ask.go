package wire

import (
	"encoding/json"
	"strings"
)

// Capability gives the client capability without which a server may not send a request in the midst of a call; empty for
// a method that is no such request.
func Capability(method string) string {
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

// Declares says whether an object of capabilities names one of these: null is as good as absent.
func Declares(capabilities json.RawMessage, names ...string) bool {
	for _, name := range names {
		if v := Get(capabilities, name); v != nil && string(v) != "null" {
			return true
		}
	}
	return false
}

// MayAskBy says whether a client with these capabilities may be sent a request by a server with those: what MayAsk allows,
// a request about a task that the client has made of an earlier one (2025-11-25), and one of an extension that both declare.
func MayAskBy(client, server json.RawMessage, method string, params json.RawMessage) bool {
	switch {
	case MayAsk(client, method, params):
		return true
	case strings.HasPrefix(method, "tasks/"):
		return Declares(client, "tasks")
	}
	return ForeignMethod(method) && ShareForeign(client, server)
}

// MayTell says whether a notification of a client with these capabilities is for a server with those: that its roots have
// changed, how a task goes that it made of the server's request, and what an extension has that both declare.
func MayTell(client, server json.RawMessage, method string) bool {
	switch method {
	case NoteRootsChanged:
		return Declares(client, "roots")
	case NoteTaskStatus:
		return Declares(client, "tasks")
	}
	about, ours := strings.CutPrefix(method, "notifications/")
	if ours && (about == "initialized" || about == "cancelled" || about == "progress" || about == "message") {
		return false
	}
	return ForeignMethod(about) && ShareForeign(client, server)
}

// MayAsk says whether a client with these capabilities may be sent a request: sampling, elicitation or roots. An
// elicitation by URL needs "url" in elicitation, one by form "form", or nothing at all: an empty object is what clients
// declared when forms were all there was. Sampling with tools needs "tools" in sampling.
func MayAsk(capabilities json.RawMessage, method string, params json.RawMessage) bool {
	name := Capability(method)
	if name == "" || !Declares(capabilities, name) {
		return false
	}
	declared := Get(capabilities, name)
	switch {
	case method == MethodElicitation && GetText(params, "mode") == "url":
		return Declares(declared, "url")
	case method == MethodElicitation:
		return Declares(declared, "form") || !Declares(declared, "url")
	case method == MethodSampling && Declares(params, "tools", "toolChoice"):
		return Declares(declared, "tools")
	}
	return true
}
