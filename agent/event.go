package agent

import (
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// An EventKind says what happened in a session.
type EventKind string

// The kinds of events, with the members of Event that each sets besides Time, Agent and Turn.
const (
	// RunStarted: a prompt was accepted. Text.
	RunStarted EventKind = "run_started"
	// TurnStarted: the model is asked. Model.
	TurnStarted EventKind = "turn_started"
	// TextDelta and ThinkingDelta: a piece of text arrived. Text.
	TextDelta     EventKind = "text"
	ThinkingDelta EventKind = "thinking"
	// ModelRetried: the request to the model is sent again; the text of this turn so far is void. Text is the reason.
	ModelRetried EventKind = "model_retried"
	// ToolStarted: a tool is called. Call, with the exact arguments. A call that is refused has no such event.
	ToolStarted EventKind = "tool_started"
	// ToolProgress: a call advanced. Call (ID and Name only), Progress.
	ToolProgress EventKind = "tool_progress"
	// ToolAsked: a call waits for a person. Call (ID and Name only), Question.
	ToolAsked EventKind = "tool_asked"
	// ToolFinished: a call ended. Call (ID and Name only), Result, Details, Elapsed.
	ToolFinished EventKind = "tool_finished"
	// TurnFinished: the model's message is complete. Message, Usage, Model.
	TurnFinished EventKind = "turn_finished"
	// Condensed: old turns were replaced by a summary. Text is the summary, Usage what it cost.
	Condensed EventKind = "condensed"
	// ModeChanged: the session itself changed the permission mode, because a person approved a plan. Mode.
	ModeChanged EventKind = "mode_changed"
	// ServersAwaited: the run waits for servers that were never listed before, see [Session.SkipWait]. Text has their names.
	ServersAwaited EventKind = "servers_awaited"
	// Notice: something that a person should know. Text.
	Notice EventKind = "notice"
	// RunFinished: the run ended. Outcome, Text (the final text of the model), Err.
	RunFinished EventKind = "run_finished"
)

// An Event says what happened in a session. As JSON it is one line of the event stream.
type Event struct {
	Kind EventKind `json:"type"`
	Time time.Time `json:"time"`
	// Session is the ID of the session, and Agent the path of the sub-agent; see [Identity].
	Session string `json:"session"`
	Agent   string `json:"agent,omitempty"`
	// Turn is the number of the turn in its run, from 1.
	Turn     int                    `json:"turn,omitempty"`
	Text     string                 `json:"text,omitempty"`
	Model    string                 `json:"model,omitempty"`
	Call     *drawbridge.ToolCall   `json:"call,omitempty"`
	Progress *Progress              `json:"progress,omitempty"`
	Question *Question              `json:"question,omitempty"`
	Result   *drawbridge.ToolResult `json:"result,omitempty"`
	Details  *CallDetails           `json:"details,omitempty"`
	Elapsed  time.Duration          `json:"elapsed,omitempty"`
	Message  *drawbridge.Message    `json:"message,omitempty"`
	Usage    *drawbridge.ModelUsage `json:"usage,omitempty"`
	Outcome  Outcome                `json:"outcome,omitempty"`
	Mode     PermissionMode         `json:"mode,omitempty"`
	Err      string                 `json:"error,omitempty"`
}

// CallDetails are the facts about a call that stand beside its text and that the model does not see.
type CallDetails struct {
	// Server is the server that answered, Tool the tool's own name there, and Provider the provider of the model that
	// made the call.
	Server   string `json:"server"`
	Tool     string `json:"tool"`
	Provider string `json:"provider,omitempty"`
	// Structured is the structured content of the result; nil without one, or if it is too large to keep.
	Structured json.RawMessage `json:"structured,omitempty"`
	// Unknown reports that the call was sent and that it is not known whether it took effect.
	Unknown bool `json:"unknown,omitempty"`
	// ScriptCalls is the number of calls that the call made, without those that have entries of their own.
	ScriptCalls int64 `json:"scriptCalls,omitempty"`
	// Cancelled reports that the run was cancelled before the call ended.
	Cancelled bool `json:"cancelled,omitempty"`
	// Label is the label of the run after the call; nil if the run had read only what is trusted and not private.
	Label *RunLabel `json:"label,omitempty"`
}

// An Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	// Completed: the model ended its answer.
	Completed Outcome = "completed"
	// Cancelled: the person cancelled the run.
	Cancelled Outcome = "cancelled"
	// OverBudget: the budget was used up. TooManyTurns: the limit of turns was reached. Looping: the model repeated the
	// same calls.
	OverBudget   Outcome = "over_budget"
	TooManyTurns Outcome = "too_many_turns"
	Looping      Outcome = "looping"
	// Failed: the model could not be asked, or the history could not be written.
	Failed Outcome = "failed"
)
