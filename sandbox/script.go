package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"time"
)

// A Script is one Python script.
type Script struct {
	// Code is the text of the script. The value of a last line that is an expression is the value of the run.
	Code string
	// Arguments is a JSON object; the script reads it as the variable "arguments". It may be nil.
	Arguments json.RawMessage
	// Owner identifies the rights and the private data with which the script runs. A worker process serves one owner.
	Owner string
	// OnFirstStart is called if the script must wait for seconds because the interpreter is unpacked and compiled, once
	// on a machine. It must not block; nil calls nothing.
	OnFirstStart func()
	// Journal keeps what is needed to repeat the run if the program ends while a person is asked; nil keeps nothing.
	Journal Journal
	// Entries are the entries that the Journal has from an interrupted run. With them the script is repeated: what it
	// did before is answered from the entries, with the same clock and the same random numbers, and what was sent is
	// not sent again. Code, Arguments and Limits must be the same. A script that takes another way than before is
	// ended. nil is a first run.
	Entries [][]byte
	// Limits are the limits of this run; a zero member means the default.
	Limits Limits
}

// Limits are the limits of a run.
type Limits struct {
	// Time is how long the script may run, with its calls; the time in which [Reply.Pending] calls wait for a person is
	// not counted. The default is 30 seconds.
	Time time.Duration
	// Memory is the maximum size of the memory of the interpreter in bytes; the interpreter itself uses 23 MiB. The
	// default is 256 MiB.
	Memory int64
	// Output is the maximum number of bytes that are kept of the standard output, and of the standard error. The
	// default is 256 KiB. A script that writes 16 times as much is ended.
	Output int
	// Value is the maximum number of bytes of the value of the last line, as JSON. The default is that of Output.
	Value int
	// Calls is the maximum number of calls of tools. The default is 1,000.
	Calls int
	// Transfer is the maximum size of one request and of one reply in bytes. The default is 16 MiB.
	Transfer int
}

// WithDefaults returns the limits with the default in place of each zero member.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Time:     cmp.Or(max(l.Time, 0), 30*time.Second),
		Memory:   cmp.Or(max(l.Memory, 0), 256<<20),
		Output:   cmp.Or(max(l.Output, 0), 256<<10),
		Value:    cmp.Or(max(l.Value, 0), max(l.Output, 0), 256<<10),
		Calls:    cmp.Or(max(l.Calls, 0), 1000),
		Transfer: min(cmp.Or(max(l.Transfer, 0), 16<<20), maxFrame/2),
	}
}

// An Outcome is the result of a run: all of it comes from the script and is untrusted.
type Outcome struct {
	// Stdout and Stderr are the kept output. Truncated reports that there was more.
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	// Value is the value of the last expression as JSON; Repr is its text if it has no JSON form.
	Value json.RawMessage `json:"value,omitempty" jsonschema:"The value of the last line."`
	Repr  string          `json:"repr,omitempty"`
	// Exit is the status of sys.exit, if the script called it.
	Exit *int `json:"exit,omitempty"`
	// Error is the exception that ended the script, or nil.
	Error *ScriptError `json:"error,omitempty"`
	// Limit is the limit that ended the run: "time", "memory", "output", "calls"; "crash", if the interpreter ended
	// without a result; or "journal", if the run could not be recorded or repeated. It is empty for a run that ended by
	// itself.
	Limit string `json:"limit,omitempty"`
	// Calls is the number of calls of tools that the script made.
	Calls int `json:"calls"`
	// Duration is how long the run took, and Memory is the size of the interpreter's memory at its end in bytes.
	Duration time.Duration `json:"-"`
	Memory   int64         `json:"-"`
}

// A ScriptError is the exception that ended a script.
type ScriptError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	// Line is the line of the script at which it was raised; 0 if it is unknown.
	Line int `json:"line,omitempty"`
	// Traceback has the lines of the script only.
	Traceback string `json:"traceback,omitempty"`
}

// A Host carries out the requests of a script. Its methods are called by several goroutines. The context ends when the
// run ends.
type Host interface {
	// Call calls a tool.
	Call(ctx context.Context, call ToolCall) Reply
}

// A HostFunc is a function that is a [Host].
type HostFunc func(ctx context.Context, call ToolCall) Reply

// Call implements [Host].
func (f HostFunc) Call(ctx context.Context, call ToolCall) Reply { return f(ctx, call) }

// A ToolCall is a call of a tool by a script.
type ToolCall struct {
	// Name is the name in the script: "github__create_issue", or "github.create_issue" for an attribute of an
	// attribute.
	Name string `json:"name"`
	// Arguments is a JSON object.
	Arguments json.RawMessage `json:"arguments"`
	// Line is the line of the script, as the script reports it; 0 if it is unknown.
	Line int `json:"line"`
}

// A Reply is the answer to a [ToolCall]. One of its members is set.
type Reply struct {
	// Result is a result object of MCP's tools/call.
	Result json.RawMessage
	// Pending is the id of a call that waits for a person. The script goes on without its result, until it uses the
	// result, or ends: then the Host's [Collector] is asked.
	Pending string
	// Tool is the full name of the tool of a Pending call, for error texts.
	Tool string
	// Err is why there is no result. A *[CallError] has a code and a next step for the script.
	Err error
}

// A CallError is an error with a code and the next thing to do, which the script can read.
type CallError struct {
	Code, Message, Next string
}

// Error returns the message.
func (e *CallError) Error() string { return e.Message }

// A Collector is a [Host] whose calls may wait for a person.
type Collector interface {
	Host
	// Flush has a person asked about the pending calls with these ids, sends those that are allowed with [Batch.Send],
	// and returns the replies in the order of the ids.
	Flush(ctx context.Context, ids []string, batch Batch) []Reply
}

// A Batch is what a [Collector] needs of the run whose pending calls it flushes.
type Batch interface {
	// Pause stops the clock of the run until resume is called, for the time in which a person is asked.
	Pause() (resume func())
	// Send calls send, which sends the call with this id, and returns its reply. It has both recorded in the [Journal]
	// of the run. If the call cannot be recorded, send is not called.
	Send(ctx context.Context, id string, send func() Reply) Reply
}

// A Repeater is a [Host] that is told of the calls of a repeated run that are answered from its [Journal]. For a kept
// result that is read from the journal, it is told of a call of each of [ResultPart].Tools, without arguments.
type Repeater interface {
	Host
	Repeat(ctx context.Context, call ToolCall)
}

// A Directory is a [Host] in which scripts can look for tools.
type Directory interface {
	Host
	// Search returns an object {"tools": [{"name", "summary"}, ...]}.
	Search(ctx context.Context, query string, limit int) (json.RawMessage, error)
	// Describe returns an object with "name", "description", "input_schema" and "output_schema". If the output schema
	// was learned from results, "output_schema_learned_from" is their number.
	Describe(ctx context.Context, name string) (json.RawMessage, error)
	// Names returns the names of all tools that the script may call.
	Names(ctx context.Context) ([]string, error)
}
