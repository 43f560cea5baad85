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
