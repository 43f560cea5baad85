package mcp

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// The protocol revisions that Drawbridge supports, newest first.
const (
	Version20260728 = "2026-07-28"
	Version20251125 = "2025-11-25"
	Version20250618 = "2025-06-18"
	Version20250326 = "2025-03-26"
	Version20241105 = "2024-11-05"
)

// LegacyVersions returns the stateful revisions, newest first.
func LegacyVersions() []string {
	return []string{Version20251125, Version20250618, Version20250326, Version20241105}
}

// ModernVersions returns the stateless revisions, newest first.
func ModernVersions() []string { return []string{Version20260728} }

// EraOf returns the protocol era of a revision: Modern for 2026-07-28 and later, otherwise Legacy. It returns 0 for the
// empty string. Revisions are dates, which can be compared as text.
func EraOf(version string) drawbridge.ProtocolEra {
	switch {
	case version == "":
		return 0
	case version >= Version20260728:
		return drawbridge.Modern
	}
	return drawbridge.Legacy
}

// The members of _meta that concern a single connection. They describe the communication between one client and its
// server. Drawbridge never passes them on from one connection to another.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaProgressToken      = "progressToken"
)

// MetaRelatedTask is the member of _meta that names the task to which a message belongs in 2025-11-25. Its value is an
// object with the member taskId.
const MetaRelatedTask = "io.modelcontextprotocol/related-task"

// MetaFlagged is the member of _meta in which Drawbridge lists the names of the rules that match a text from the
// server.
const MetaFlagged = "drawbridge/flagged"

// MetaRun is the member of _meta of a call of run_python with the ID that the run gets: lower case letters and digits. MetaResume
// is the member of a call that resumes an interrupted run: its ID, or true for the last one with the same arguments. A
// call with MetaResume never starts a new run, and is never sent to a server.
const (
	MetaRun    = "drawbridge/run"
	MetaResume = "drawbridge/resume"
)

// MetaDirect is the member of _meta in the params of tools/list with which a client requests the list of all tools, in
// every mode of tool discovery. Its value is true.
const MetaDirect = "drawbridge/direct"

// MetaLearnedOutput is the member of _meta in which the command line prints the output type that Drawbridge learned from
// the results of a tool. Clients do not receive it.
const MetaLearnedOutput = "drawbridge/learnedOutput"

// The headers of the HTTP transports.
const (
	HeaderVersion     = "Mcp-Protocol-Version"
	HeaderSession     = "Mcp-Session-Id"
	HeaderMethod      = "Mcp-Method"
	HeaderName        = "Mcp-Name"
	HeaderParamPrefix = "Mcp-Param-"
	HeaderLastEvent   = "Last-Event-ID"
)

// The error codes of JSON-RPC and of MCP.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeResourceNotFound   = -32002 // stateful only; stateless peers use CodeInvalidParams
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
	CodeURLElicitation     = -32042 // stateful only
)

// The methods of requests and notifications, grouped by the kind of message and its sender.
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
	MethodTasksUpdate = "tasks/update" // stateless only
	MethodTasksCancel = "tasks/cancel"
	MethodTasksResult = "tasks/result" // stateful only
	MethodTasksList   = "tasks/list"   // stateful only

	// Methods of the skills extension (SEP-2640).
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
	NoteTask             = "notifications/tasks"        // stateless: with the task in the form of tasks/get
	NoteTaskStatus       = "notifications/tasks/status" // stateful
	NoteElicitComplete   = "notifications/elicitation/complete"
)

// MetaOf returns the _meta object of params, or nil if there is none.
func MetaOf(params json.RawMessage) json.RawMessage { return rawjson.Get(params, "_meta") }

// ProtocolVersion returns the protocol version in the _meta of a stateless request, or "" if there is none.
func ProtocolVersion(params json.RawMessage) string {
	return rawjson.GetString(params, "_meta", MetaProtocolVersion)
}

// A RequestMeta contains the members of the _meta of a stateless request that describe its client.
type RequestMeta struct {
	// Version is the protocol version and LogLevel the minimum level of log messages; "" if there is none.
	Version, LogLevel string
	// ClientInfo and Capabilities are the values of these members; nil if missing.
	ClientInfo, Capabilities json.RawMessage
}

// ReadRequestMeta returns the members of the _meta in the params. It reads params and _meta once each.
func ReadRequestMeta(params json.RawMessage) RequestMeta {
	var r RequestMeta
	for m := range rawjson.Members(MetaOf(params)) {
		switch {
		case m.HasName(MetaProtocolVersion):
			r.Version, _ = rawjson.DecodeString(m.Value)
		case m.HasName(MetaClientInfo):
			r.ClientInfo = m.Value
		case m.HasName(MetaClientCapabilities):
			r.Capabilities = m.Value
		case m.HasName(MetaLogLevel):
			r.LogLevel, _ = rawjson.DecodeString(m.Value)
		}
	}
	return r
}
