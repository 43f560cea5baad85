package mcp

import (
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

import (
	"encoding/json"
	"strings"
)

// The extensions that are known here. ExtensionTasks is SEP-2663, ExtensionSkills SEP-2640, ExtensionApps MCP Apps.
const (
	ExtensionApps   = "io.modelcontextprotocol/ui"
	ExtensionSkills = "io.modelcontextprotocol/skills"
	ExtensionTasks  = "io.modelcontextprotocol/tasks"

	// These describe how a client signs in at its server. They are not passed on to anyone behind the client.
	ExtensionClientCredentials = "io.modelcontextprotocol/oauth-client-credentials"
	ExtensionEnterprise        = "io.modelcontextprotocol/enterprise-managed-authorization"
)

// ExtensionMembers are the members of capabilities in which extensions are declared: the one of today, and the one that
// served before it. An extension is the same in both.
func ExtensionMembers() []string { return []string{"extensions", "experimental"} }

// UnknownExtensions returns the extensions that capabilities declare, with an object of settings, and that are not
// known here; nil for none.
func UnknownExtensions(capabilities json.RawMessage) map[string]bool {
	var out map[string]bool
	for _, declaration := range ExtensionMembers() {
		for m := range rawjson.Members(rawjson.Get(capabilities, declaration)) {
			id, ok := rawjson.DecodeString(m.Name)
			if !ok || !isUnknownExtension(id) || len(m.Value) == 0 || m.Value[0] != '{' {
				continue
			}
			if out == nil {
				out = map[string]bool{}
			}
			out[id] = true
		}
	}
	return out
}

func isUnknownExtension(extension string) bool {
	switch extension {
	case ExtensionApps, ExtensionSkills, ExtensionTasks, ExtensionClientCredentials, ExtensionEnterprise:
		return false
	}
	return true
}

// ShareUnknownExtension reports whether both ends declare a same extension that is not known here.
func ShareUnknownExtension(one, other json.RawMessage) bool {
	theirs := UnknownExtensions(one)
	for id := range UnknownExtensions(other) {
		if theirs[id] {
			return true
		}
	}
	return false
}

// IsUnknownMethod reports whether a method belongs neither to MCP nor to an extension that Drawbridge knows.
func IsUnknownMethod(method string) bool {
	room, _, _ := strings.Cut(method, "/")
	switch room {
	case "", "initialize", "ping", "server", "tools", "prompts", "resources", "completion", "logging", "subscriptions",
		"notifications", "sampling", "elicitation", "roots", "tasks", "skills":
		return false
	}
	return true
}
