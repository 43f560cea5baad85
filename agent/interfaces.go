package agent

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Model asks a language model. Its methods may be called from several goroutines.
type Model interface {
	// Generate asks the model for the next message of a conversation. It calls onDelta, one call at a time, for each
	// piece of the answer that arrives; the last delta comes before Generate returns. It retries as the provider asks.
	// The error is a *drawbridge.ModelError, or the cause of ctx's end. An answer that does not end is an error.
	Generate(ctx context.Context, r drawbridge.ModelRequest, onDelta func(drawbridge.ModelDelta)) (
		drawbridge.ModelResponse, error)
	// Info describes the model.
	Info() drawbridge.ModelInfo
}

// A History keeps the entries of one session. Its methods may be called from several goroutines.
type History interface {
	// ID returns the ID of the session.
	ID() string
	// Append writes an entry after all others. When it returns nil, the entry survives the end of the process.
	Append(ctx context.Context, e Entry) error
	// Entries returns the entries in the order in which they were appended.
	Entries(ctx context.Context) iter.Seq2[Entry, error]
}

// Tools calls tools for a session. Its methods may be called from several goroutines.
type Tools interface {
	// Brief returns what the instructions of the model say about the tools. If wait is set, it first waits until no
	// server is Waiting, or until ctx ends, which is an error.
	Brief(ctx context.Context, who Identity, wait bool) (Briefing, error)
	// Select returns the tools for the next turn. text is what the turn is about. known are the tools that the model
	// has seen in this session; they come first, in the same order, as long as they exist.
	Select(ctx context.Context, who Identity, text string, known []drawbridge.CardName) ([]drawbridge.ToolDefinition, error)
	// Call calls one tool. It calls update while the call runs, from any goroutine. The error is a *drawbridge.Fault,
	// or the cause of ctx's end; see [drawbridge.Fault.Ambiguous]. Server, Tool and Fenced of the outcome count with an
	// error too. Call returns soon after ctx ends: the session waits for it.
	Call(ctx context.Context, who Identity, call drawbridge.ToolCall, update func(CallUpdate)) (CallOutcome, error)
	// Answer passes a person's answer to a call that waits; see [CallUpdate.Question].
	Answer(ctx context.Context, a Answer) error
}

// A PromptReceiver is implemented by Tools that follow where the values of calls come from.
type PromptReceiver interface {
	// Prompted is called with each message of the person before the model gets it, and with the earlier ones of a
	// session that is continued.
	Prompted(ctx context.Context, who Identity, parts []drawbridge.MessagePart) error
}

// An Identity says who calls a tool. Rights only narrow: a sub-agent has at most the rights of its parent.
type Identity struct {
	// Session is the ID of the session. Agent is the path of the sub-agent in it, such as "1/2"; it is empty for the
	// session's own agent. Run is the ID of the prompt's run.
	Session, Agent, Run string
	// Mode is the permission mode.
	Mode PermissionMode
	// Tools, if it is not nil, are patterns of the tools that may be called, such as "github__*". Each element narrows
	// further: a tool must match a pattern of every element.
	Tools [][]string
	// Depth is the number of sub-agents above this one.
	Depth int
	// CallsLimited reports that the budget of the session limits calls of tools. Tools then ask before each call that a
	// call makes; see [CallUpdate.Reserve].
	CallsLimited bool
}

// A PermissionMode is what a session may do without asking its person; see [drawbridge.PermissionMode].
type PermissionMode = drawbridge.PermissionMode

// The permission modes.
const (
	AskFirst    = drawbridge.AskFirst
	AcceptEdits = drawbridge.AcceptEdits
	PlanOnly    = drawbridge.PlanOnly
	Bypass      = drawbridge.Bypass
)

// A Briefing is what the model is told about the tools.
type Briefing struct {
	// Own are the names of the tools that belong to no server.
	Own []drawbridge.CardName
	// Servers are the mounted servers, in the order of the configuration.
	Servers []ServerBriefing
	// Dir is the working directory.
	Dir string
	// Notes are further facts, one line each.
	Notes []string
}

// A ServerBriefing describes one mounted server to the model.
type ServerBriefing struct {
	Name string
	// Tools is the number of its tools.
	Tools int
	// Instructions is the server's own text. It is not verified.
	Instructions string
	// Problem says why the server offers nothing; empty if it is ready. Waiting reports that it was never listed
	// before, and that its first start has not ended.
	Problem string
	Waiting bool
}

// A CallOutcome is the result of a tool, with where it came from.
type CallOutcome struct {
	Result drawbridge.Result
	// Server is the server that answered, and Tool the tool's own name there.
	Server, Tool string
	// Fenced is true if the text came from outside, so that it must be marked as foreign before the model sees it.
	Fenced bool
	// ScriptCalls is the number of calls that the call made, such as those of a script, without a reservation.
	ScriptCalls int64
	// Label is the label of the run after the call; nil if the run has read only what is trusted and not private.
	Label *RunLabel
}

// A CallUpdate tells something about a call that runs. One member is set.
type CallUpdate struct {
	Progress *Progress
	// Question waits for a person. [Tools.Answer] answers it.
	Question *Question
	// Task asks the session to run a sub-agent; the call waits for [Tools.Answer].
	Task *TaskRequest
	// Reserve asks the session for one call of its budget, such as for a script; the call waits for [Tools.Answer], and
	// makes the other call only after a yes.
	Reserve *CallReservation
}

// A CallReservation asks for one call that another call makes.
type CallReservation struct {
	ID   string
	Tool drawbridge.CardName
}

// Progress is how far a call is. Total is 0 if it is not known.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"`
	Message  string  `json:"message,omitempty"`
}

// A QuestionKind is what a person is asked.
type QuestionKind string

// The kinds of questions.
const (
	// AskApproval: may the call be made? AskScript: may the calls of a script be made?
	AskApproval QuestionKind = "approval"
	AskScript   QuestionKind = "script"
	// AskForm: a server asks for values. AskURL: a server asks to open a web page. AskSampling: a server asks for an
	// answer of the session's model.
	AskForm     QuestionKind = "form"
	AskURL      QuestionKind = "url"
	AskSampling QuestionKind = "sampling"
	// AskPlan: may the plan be carried out? Message is the whole plan. A yes ends the mode PlanOnly.
	AskPlan QuestionKind = "plan"
)

// A Question waits for a person's answer.
type Question struct {
	ID   string       `json:"id"`
	Kind QuestionKind `json:"kind"`
	// Server and Tool name what asks.
	Server string `json:"server,omitempty"`
	Tool   string `json:"tool,omitempty"`
	// Reason says why a person is asked.
	Reason string `json:"reason,omitempty"`
	// Arguments are the arguments of the call, with secrets redacted; for other kinds, the params of the server.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Message is a text for the person, such as the table of a script's effects or the text of a server.
	Message string `json:"message,omitempty"`
	// URL is the address of a page, for AskURL.
	URL string `json:"url,omitempty"`
}

// An Answer answers a Question, a TaskRequest or a CallReservation.
type Answer struct {
	ID string `json:"id"`
	// Allow reports the person's yes. Always asks for a grant for equal calls in this session.
	Allow  bool `json:"allow"`
	Always bool `json:"always,omitempty"`
	// Content is the content of a form, or the result of a sampling request, of a task or of a plan; see [TaskReport]
	// and [PlanReport].
	Content json.RawMessage `json:"content,omitempty"`
	// Reason says why the answer to AskPlan or to a CallReservation is no.
	Reason string `json:"reason,omitempty"`
}

// A PlanReport is the content of the Answer yes to AskPlan.
type PlanReport struct {
	// Mode is the permission mode from now on, and Note says to the model what it means.
	Mode PermissionMode `json:"mode"`
	Note string         `json:"note"`
}

// A TaskReport is the content of the Answer to a TaskRequest.
type TaskReport struct {
	// Report is the last text of the sub-agent.
	Report string `json:"report"`
	// Outcome is how its run ended; empty if it did not begin. Error says why it did not complete.
	Outcome Outcome `json:"outcome,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// A TaskRequest asks for a sub-agent.
type TaskRequest struct {
	ID        string
	Objective string
	// Tools are patterns of the tools that the sub-agent may call; nil means those of its parent.
	Tools []string
}
