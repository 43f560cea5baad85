package agent

import (
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// historyVersion is the version of the entries that this package writes. A history with a greater one is not opened.
const historyVersion = 1

// An EntryKind says what an Entry records.
type EntryKind string

// The kinds of entries, with the members of Entry that each sets besides ID, Parent, Time, Agent and Run.
const (
	// SessionEntry begins a history. Version.
	SessionEntry EntryKind = "session"
	// InstructionsEntry has the system prompt. Text, Digest.
	InstructionsEntry EntryKind = "instructions"
	// ToolsEntry has the names of tools that the model was shown for the first time. Names.
	ToolsEntry EntryKind = "tools"
	// PromptEntry is a message of the person. Message.
	PromptEntry EntryKind = "prompt"
	// ModelEntry is a complete message of the model. Message, Model, Stop, Usage, Cost.
	ModelEntry EntryKind = "model"
	// CallEntry is written before a call is sent. Call, as it is sent.
	CallEntry EntryKind = "call"
	// ScriptCallEntry is written before a call makes another call, such as that of a script, if the budget limits calls.
	// Call is the call that makes it (ID and Name only), and Names has the name of the called tool.
	ScriptCallEntry EntryKind = "script_call"
	// ResultEntry has the result of a call. Result, Details.
	ResultEntry EntryKind = "result"
	// SummaryEntry replaces what precedes the entry Keep. Text, Keep, Model, Usage, Cost.
	SummaryEntry EntryKind = "summary"
	// AnswerEntry is an answer of the model to a server that asked for one. Text, Model, Usage, Cost.
	AnswerEntry EntryKind = "answer"
	// AgentEntry begins a sub-agent. Its parent is the CallEntry of the task. Text is the objective, Rights what it may do.
	AgentEntry EntryKind = "agent"
	// SettingsEntry changes settings of the session. Settings.
	SettingsEntry EntryKind = "settings"
	// HeadEntry continues the conversation after its parent; without a parent, the conversation is empty.
	HeadEntry EntryKind = "head"
)

// An Entry is one record of a History. The parents of the entries form the tree of a conversation: an entry follows its
// parent. Entries are never changed.
type Entry struct {
	Kind   EntryKind `json:"kind"`
	ID     string    `json:"id"`
	Parent string    `json:"parent,omitempty"`
	Time   time.Time `json:"time"`
	// Agent is the path of the sub-agent, and Run the ID of the run; see [Identity].
	Agent string `json:"agent,omitempty"`
	Run   string `json:"run,omitempty"`

	Version  int                    `json:"version,omitempty"`
	Message  *drawbridge.Message    `json:"message,omitempty"`
	Model    string                 `json:"model,omitempty"`
	Stop     drawbridge.StopReason  `json:"stop,omitempty"`
	Usage    *drawbridge.ModelUsage `json:"usage,omitempty"`
	Cost     float64                `json:"cost,omitempty"`
	Call     *drawbridge.ToolCall   `json:"call,omitempty"`
	Result   *drawbridge.ToolResult `json:"result,omitempty"`
	Details  *CallDetails           `json:"details,omitempty"`
	Text     string                 `json:"text,omitempty"`
	Keep     string                 `json:"keep,omitempty"`
	Digest   string                 `json:"digest,omitempty"`
	Names    []drawbridge.CardName  `json:"names,omitempty"`
	Settings *Settings              `json:"settings,omitempty"`
	Rights   *Rights                `json:"rights,omitempty"`
}

// Settings are the settings of a session that a person changes. An empty member means no change.
type Settings struct {
	Model    string                   `json:"model,omitempty"`
	Thinking drawbridge.ThinkingLevel `json:"thinking,omitempty"`
	Mode     PermissionMode           `json:"mode,omitempty"`
	Name     string                   `json:"name,omitempty"`
}

// Rights record what a sub-agent may do; see [Identity].
type Rights struct {
	Mode  PermissionMode `json:"mode"`
	Tools [][]string     `json:"tools,omitempty"`
	Depth int            `json:"depth"`
}

// merge returns s with the members that change sets.
func (s Settings) merge(change Settings) Settings {
	if change.Model != "" {
		s.Model = change.Model
	}
	if change.Thinking != "" {
		s.Thinking = change.Thinking
	}
	if change.Mode != "" {
		s.Mode = change.Mode
	}
	if change.Name != "" {
		s.Name = change.Name
	}
	return s
}
