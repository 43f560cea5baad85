package cards

import (
	"cmp"
	"context"
	_ "embed" // the description
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

//go:embed run_python.md
var runPythonText string

// RunPythonName is the name of the card that runs scripts.
const RunPythonName = toolsearch.RunPythonName

// MaxScript is the maximum length of a script in bytes.
const MaxScript = 1 << 20

// A ScriptRunner runs Python scripts, see [sandbox.Sandbox].
type ScriptRunner interface {
	Run(ctx context.Context, script sandbox.Script, host sandbox.Host) (sandbox.Outcome, error)
}

// A runPythonInput is a script and what it may use.
type runPythonInput struct {
	Code string `json:"code" jsonschema:"The Python script."`
	// Tools only narrow: a script has no tool that its caller has not.
	Tools     []string       `json:"tools,omitempty" jsonschema:"Patterns of the tools that the script may call, such as github__*; absent for all."`
	Arguments map[string]any `json:"arguments,omitempty" jsonschema:"The script reads them as the variable arguments."`
	Timeout   float64        `json:"timeout,omitempty" jsonschema:"Seconds after which the script is ended; it can only be less than the default."`
}

// NewRunPythonCard returns the card that runs scripts. The limits are those of each run; a caller can shorten the time.
// runs keeps the runs that wait for a person. tasks may be nil; otherwise a client may get a task as the answer.
func NewRunPythonCard(runner ScriptRunner, tools ScriptTools, runs RunStore, limits sandbox.Limits,
	results ScriptResults, tasks *ScriptTasks) drawbridge.Card {
	var card drawbridge.Card
	card = foreignCard{newShipped(Description[runPythonInput]{
		Name: RunPythonName, Title: "Run Python", Text: runPythonText, AcceptsText: true, NotForScripts: true,
		Scopes: []drawbridge.Scope{"sandbox"}, MayBeTask: true,
		Annotations: &Annotations{Destructive: true, OpenWorld: true},
		Examples:    []runPythonInput{{Code: `print(len(tools.call("drawbridge_tools")["tools"]))`}},
	}, func(ctx context.Context, call drawbridge.Call, in runPythonInput) (answer Answer[runPythonOutput], err error) {
		if tasks != nil && asksForTask(call) {
			result, err := tasks.answer(ctx, call)
			answer.Raw, answer.Foreign = result.Raw, result.Foreign
			return answer, err
		}
		in, saved, journal, entries, err := openRun(ctx, runs, call, in)
		if err != nil {
			return answer, err
		}
		// As they were sent: in in.Arguments large numbers have lost digits.
		arguments := rawjson.Get(saved.Input, "arguments")
		runCtx, cancel := context.WithCancel(ctx)
		host := newScriptHost(tools, call, card.Spec(), in, arguments)
		host.runID, host.results = saved.ID, results
		defer host.close()
		defer cancel()
		outcome, err := runner.Run(runCtx, sandbox.Script{
			Code: in.Code, Arguments: arguments, Owner: scriptOwner(call.Caller), Limits: host.limits(in.narrow(limits)),
			Journal: journal, Entries: entries,
			OnFirstStart: func() {
				host.notifyProgress(ctx, "the Python interpreter is prepared, once on this machine")
			},
		}, host)
		// The outcome is worth more than a journal that is left over; it expires.
		_ = journal.Close(context.WithoutCancel(ctx), err == nil || errors.Is(err, sandbox.ErrUnrepeatable) ||
			errors.Is(context.Cause(ctx), errTaskCancelled))
		if err != nil {
			return answer, runFault(ctx, call.Caller, err)
		}
		out := host.cutOutcome(outcome)
		return Answer[runPythonOutput]{Text: out.text(), Value: out, IsError: outcome.Error != nil,
			Foreign: host.foreign.Load()}, nil
	})}
	if tasks != nil {
		tasks.card = card
	}
	return card
}

// scriptOwner returns a key for callers with the same rights and the same private data: they may share a worker.
func scriptOwner(c drawbridge.Caller) string {
	scopes := slices.Sorted(slices.Values(c.Scopes))
	return fmt.Sprintf("%s %q %q %q %q", c.Kind, c.Transport, c.Principal, c.Session, scopes)
}

// runFault returns the error for a script that was not run. Only the person at the command line gets the cause, because
// it names files of this machine.
func runFault(ctx context.Context, caller drawbridge.Caller, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, sandbox.ErrNoInterpreter), errors.Is(err, sandbox.ErrNoWorkers),
		errors.Is(err, sandbox.ErrUnrepeatable):
		return ToolError(err.Error())
	}
	fault := &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.ServerError, Step: "run the script", Err: err}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		fault.Next = "make the directory writable, or set XDG_CACHE_HOME to another one"
	}
	if caller.Kind != drawbridge.Author {
		fault.Err, fault.Next = errors.New("the Python interpreter does not start on this machine"), `"drawbridge run --explain" shows why`
	}
	return fault
}

// narrow returns the limits of the run.
func (in runPythonInput) narrow(limits sandbox.Limits) sandbox.Limits {
	limits = limits.WithDefaults()
	if t := in.Timeout * float64(time.Second); t > 0 && t < float64(limits.Time) {
		limits.Time = time.Duration(t)
	}
	return limits
}

// check returns what is wrong with the input, as a text for the model.
func (in runPythonInput) check() error {
	switch {
	case strings.TrimSpace(in.Code) == "":
		return ToolError("The script is empty.")
	case len(in.Code) > MaxScript:
		return ToolError(fmt.Sprintf("The script has %d bytes; the maximum is %d.", len(in.Code), MaxScript))
	case in.Timeout < 0:
		return ToolError("The timeout must be a positive number of seconds.")
	}
	for _, pattern := range in.Tools {
		if _, err := path.Match(pattern, ""); err != nil {
			return ToolError("The pattern " + safetext.Quote(pattern) + " is not valid.")
		}
	}
	return nil
}

// FormatOutcome returns the text of an outcome: the output, the value of the last line, then the error.
func FormatOutcome(o sandbox.Outcome) string { return runPythonOutput{Outcome: o}.text() }

// text returns the text of the output, with a line after each part that is cut.
func (o runPythonOutput) text() string {
	var b strings.Builder
	section := func(text string) {
		if text = strings.TrimRight(text, "\n"); text != "" {
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			b.WriteString(text + "\n")
		}
	}
	section(o.Stdout)
	section(o.rest(stdoutPart))
	if o.Truncated {
		section("[the output is truncated]")
	}
	section(valueText(o.Outcome))
	section(o.rest(valuePart))
	if o.Stderr != "" {
		section("stderr:\n" + o.Stderr)
		section(o.rest(stderrPart))
	}
	switch {
	case o.Error == nil:
	case o.Error.Traceback != "":
		section(o.Error.Traceback)
	default:
		section(o.Error.Type + ": " + o.Error.Message)
	}
	if b.Len() == 0 {
		return "The script ended without output.\n"
	}
	return b.String()
}

// valueText returns the text of the value of the last line; a string without quotes.
func valueText(o sandbox.Outcome) (text string) {
	if o.Repr != "" || json.Unmarshal(o.Value, &text) != nil {
		return cmp.Or(o.Repr, string(o.Value))
	}
	return text
}
