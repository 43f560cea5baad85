package mcp

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// The revisions of the protocol that Drawbridge speaks, newest first.
const (
	Version20260728 = "2026-07-28"
	Version20251125 = "2025-11-25"
	Version20250618 = "2025-06-18"
	Version20250326 = "2025-03-26"
	Version20241105 = "2024-11-05"
)

// LegacyVersions are the stateful revisions, newest first; ModernVersions the stateless ones.
func LegacyVersions() []string {
	return []string{Version20251125, Version20250618, Version20250326, Version20241105}
}

// ModernVersions are the stateless revisions, newest first.
func ModernVersions() []string { return []string{Version20260728} }

// EraOf returns the era of a revision: Modern from 2026-07-28 on. Dates compare as text.
func EraOf(version string) drawbridge.ProtocolEra {
	switch {
	case version == "":
		return 0
	case version >= Version20260728:
		return drawbridge.Modern
	}
	return drawbridge.Legacy
}

// The members of _meta that belong to one hop: they say how the two ends of one connection talk, and are never passed
// on.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaProgressToken      = "progressToken"
)

// MetaRelatedTask is the member of _meta that names the task of a message in 2025-11-25: an object with taskId.
const MetaRelatedTask = "io.modelcontextprotocol/related-task"

// MetaFlagged is the member of _meta by which Drawbridge names the rules that a server's text met, as a list.
const MetaFlagged = "drawbridge/flagged"

// The headers of the HTTP transports.
const (
	HeaderVersion     = "Mcp-Protocol-Version"
	HeaderSession     = "Mcp-Session-Id"
	HeaderMethod      = "Mcp-Method"
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"
	HeaderLastEvent   = "Last-Event-ID"
)

// The JSON-RPC error codes, and those of MCP.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeResourceNotFound   = -32002 // legacy; modern peers use CodeInvalidParams
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
	CodeURLElicitation     = -32042 // legacy only
)

// The methods, by who may send them.
const (
	MethodInitialize    = "initialize"
	MethodPing          = "ping"
	MethodDiscover      = "server/discover"
	MethodToolsList     = "tools/list"
	MethodToolsCall     = "tools/call"
	MethodPromptsList   = "prompts/list"
	MethodPromptsGet    = "prompts/get"
	MethodResourcesList = "resources/list"
	MethodTemplatesList = "resources/templates/list"
	MethodResourcesRead = "resources/read"
	MethodSubscribe     = "resources/subscribe"
	MethodUnsubscribe   = "resources/unsubscribe"
	MethodComplete      = "completion/complete"
	MethodSetLevel      = "logging/setLevel"
	MethodListen        = "subscriptions/listen"

	MethodTasksGet    = "tasks/get"
	MethodTasksUpdate = "tasks/update" // modern only
	MethodTasksCancel = "tasks/cancel"
	MethodTasksResult = "tasks/result" // legacy only
	MethodTasksList   = "tasks/list"   // legacy only

	// Of the skills extension (SEP-2640).
	MethodSkillsList    = "skills/list"
	MethodSkillsGet     = "skills/get"
	MethodDirectoryRead = "resources/directory/read"

	MethodSampling    = "sampling/createMessage"
	MethodElicitation = "elicitation/create"
	MethodRootsList   = "roots/list"

	NoteInitialized      = "notifications/initialized"
	NoteCancelled        = "notifications/cancelled"
	NoteProgress         = "notifications/progress"
	NoteMessage          = "notifications/message"
	NoteToolsChanged     = "notifications/tools/list_changed"
	NotePromptsChanged   = "notifications/prompts/list_changed"
	NoteResourcesChanged = "notifications/resources/list_changed"
	NoteResourceUpdated  = "notifications/resources/updated"
	NoteRootsChanged     = "notifications/roots/list_changed"
	NoteListenAck        = "notifications/subscriptions/acknowledged"
	NoteTask             = "notifications/tasks"        // modern: the task as tasks/get has it
	NoteTaskStatus       = "notifications/tasks/status" // legacy
	NoteElicitComplete   = "notifications/elicitation/complete"
)

// MetaOf returns the _meta object of params; nil where there is none.
func MetaOf(params json.RawMessage) json.RawMessage { return rawjson.Get(params, "_meta") }

// ProtocolVersion returns the protocol version that a modern request carries; empty for others.
func ProtocolVersion(params json.RawMessage) string {
	return rawjson.GetString(params, "_meta", MetaProtocolVersion)
}
