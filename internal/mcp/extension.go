package mcp

import (
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

import (
	"encoding/json"
	"strings"
)

// The extensions that Drawbridge knows. ExtensionTasks is SEP-2663, ExtensionSkills SEP-2640, ExtensionApps MCP Apps.
const (
	ExtensionApps   = "io.modelcontextprotocol/ui"
	ExtensionSkills = "io.modelcontextprotocol/skills"
	ExtensionTasks  = "io.modelcontextprotocol/tasks"

	// These two extensions describe how a client signs in at its server. Drawbridge does not pass them on to its own
	// clients.
	ExtensionClientCredentials = "io.modelcontextprotocol/oauth-client-credentials"
	ExtensionEnterprise        = "io.modelcontextprotocol/enterprise-managed-authorization"
)

// ExtensionMembers returns the names of the members of capabilities in which extensions are declared: "extensions", and
// "experimental", which older clients and servers use. An extension has the same meaning in both.
func ExtensionMembers() []string { return []string{"extensions", "experimental"} }

// UnknownExtensions returns the set of extensions that capabilities declare with an object as value and that Drawbridge
// does not know. It returns nil if there are none.
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

// ShareUnknownExtension reports whether both capabilities declare the same extension and Drawbridge does not know that
// extension.
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
