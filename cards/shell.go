package cards

import (
	"cmp"
	"context"
	_ "embed" // the descriptions
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/jobs"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

var (
	//go:embed bash.md
	bashText string
	//go:embed process.md
	processText string
	//go:embed bg_process.md
	bgProcessText string
)

// ScopeExec is the scope of the cards that execute commands.
const ScopeExec drawbridge.Scope = "exec"

// The limits of the cards that run commands.
const (
	defaultTimeLimit = 2 * time.Minute
	maxTimeLimit     = 10 * time.Minute
	maxCommand       = 256 << 10
	maxStreamBytes   = 64 << 10 // the maximum size of each stream in a result
	pollWindow       = 32 << 10
	bgProcessLines   = 2000
)

// Jobs are the commands that the cards bash, process and bg-process have started. The cards share one Jobs, so that
// each card lists the commands of all three.
type Jobs struct{ table *jobs.Table }

// NewJobs returns an empty list of jobs. Their commands run in the given shell. Close ends the jobs.
func NewJobs(shell deck.Shell) *Jobs { return &Jobs{jobs.NewTable(shell)} }

// Close ends all jobs, and waits until they have ended.
func (j *Jobs) Close() error { return j.table.Close() }

// A closingCard is a card with its own Jobs, which are not shared with other cards. Closing the card closes them.
type closingCard struct {
	drawbridge.Card
	io.Closer
}

// withJobs builds a card with the Jobs in the context. If the context has none, the card gets its own Jobs, and is a
// closingCard.
func withJobs(c deck.Context, build func(shellBackend) drawbridge.Card) (drawbridge.Card, error) {
	shared, err := deck.Handle[*Jobs](c, JobsKey)
	if err != nil {
		return nil, err
	}
	b := shellBackend{context: c}
	if b.env, err = deck.Handle[ShellEnv](c, ShellEnvKey); err != nil {
		return nil, err
	}
	if b.profile, err = deck.Handle[ClientProfile](c, ClientProfileKey); err != nil {
		return nil, err
	}
	if shared != nil {
		b.jobs = shared.table
		return build(b), nil
	}
	shell := c.Shell
	if shell == nil {
		shell = jobs.LocalShell{Env: process.Environ(os.Environ(), nil, true)}
	}
	own := NewJobs(shell)
	b.jobs = own.table
	return closingCard{build(b), own}, nil
}

// A shellBackend contains the data that the cards for commands share.
type shellBackend struct {
	context deck.Context
	jobs    *jobs.Table
	env     ShellEnv
	profile ClientProfile
}

// A ClientProfile returns the profile of the client that runs a command; the profile determines how the command is
// confined. For the person at the command line and for the agent, it returns [deck.NoProfile].
type ClientProfile func(drawbridge.Caller) deck.Profile

// A ShellEnv returns variables for the environment of a command before it is started, as "name=value". If it returns an
// error, the command is not started.
type ShellEnv func(ctx context.Context, caller drawbridge.Caller, command, dir string) ([]string, error)

// start starts a command in a directory for a caller.
func (b shellBackend) start(ctx context.Context, caller drawbridge.Caller, command, dir string,
	limit time.Duration) (*jobs.Job, error) {
	switch {
	case strings.TrimSpace(command) == "":
		return nil, ToolError("command is empty.")
	case len(command) > maxCommand || strings.ContainsRune(command, 0):
		return nil, ToolError(fmt.Sprintf("The command has a NUL character, or over %d bytes.", maxCommand))
	}
	path, err := resolvePath(b.context, caller, cmp.Or(dir, "."))
	if err != nil {
		return nil, err
	}
	spec := jobs.Spec{Owner: caller.Principal, Run: deck.RunOf(caller), Line: command, Dir: path,
		Shell: b.context.Shell, TimeLimit: limit}
	if b.profile != nil {
		spec.Profile = b.profile(caller)
	}
	if b.env != nil {
		if spec.Env, err = b.env(ctx, caller, command, path); err != nil {
			return nil, ToolError("Could not start the command: " + err.Error() + ".")
		}
	}
	job, err := b.jobs.Start(ctx, spec)
	if err != nil && ctx.Err() == nil {
		return nil, ToolError("Could not start the command: " + err.Error() + ".")
	}
	return job, err
}

type bashInput struct {
	Command   string `json:"command" jsonschema:"The command line."`
	TimeoutMS int    `json:"timeoutMs,omitempty" jsonschema:"The time limit in milliseconds; 120000 if absent, up to 600000."`
	Cwd       string `json:"cwd,omitempty" jsonschema:"The directory to run in; the working directory if absent."`
}

// A commandState describes a command that runs or has ended.
type commandState struct {
	// Status is a text such as "exit 0".
	Status string `json:"status"`
	// ExitCode is -1 for a command that did not exit by itself.
	ExitCode int `json:"exitCode"`
	// Cause is "exited", "signalled", "time limit", "stopped", "cancelled" or "closed"; it is "running" while the
	// command runs.
	Cause string `json:"cause"`
	// Stdout and Stderr are the total numbers of bytes that the command has written.
	Stdout int64 `json:"stdoutBytes"`
	Stderr int64 `json:"stderrBytes"`
	TookMS int64 `json:"tookMs"`
}

func stateOf(job *jobs.Job) commandState {
	s := job.State()
	return commandState{Status: s.String(), ExitCode: s.ExitCode, Cause: cmp.Or(string(s.Cause), "running"),
		Stdout: job.Stdout.Size(), Stderr: job.Stderr.Size(), TookMS: s.Took.Milliseconds()}
}

// failed reports whether the command has ended without success.
func (s commandState) failed() bool { return s.Cause != "running" && s.ExitCode != 0 }

// newBashCard returns the card that runs a command and waits for it.
func newBashCard(c deck.Context) (drawbridge.Card, error) {
	return withJobs(c, func(b shellBackend) drawbridge.Card {
		return newShipped(Description[bashInput]{
			Name: "bash", Title: "Run command", Text: bashText, Scopes: []drawbridge.Scope{ScopeExec}, AcceptsText: true, TextForScripts: true,
			Annotations: &Annotations{Destructive: true, OpenWorld: true},
			Examples:    []bashInput{{Command: "go test ./..."}, {Command: "make", Cwd: "web", TimeoutMS: 300_000}},
		}, func(ctx context.Context, call drawbridge.Call, in bashInput) (Answer[commandState], error) {
			limit := time.Duration(in.TimeoutMS) * time.Millisecond
			if limit < 0 || limit > maxTimeLimit {
				return Answer[commandState]{}, ToolError(fmt.Sprintf("timeoutMs must be from 1 to %d.", maxTimeLimit.Milliseconds()))
			}
			job, err := b.start(ctx, call.Caller, in.Command, in.Cwd, cmp.Or(limit, defaultTimeLimit))
			if err != nil {
				return Answer[commandState]{}, err
			}
			return b.await(ctx, job)
		})
	})
}

// await waits for a command, and returns its output. If ctx ends first, await stops the command and returns the output
// so far.
func (b shellBackend) await(ctx context.Context, job *jobs.Job) (answer Answer[commandState], err error) {
	select {
	case <-job.Done():
		b.jobs.Forget(job)
	case <-ctx.Done():
		if err := b.jobs.Stop(context.WithoutCancel(ctx), job, jobs.Cancelled); err != nil {
			return answer, fmt.Errorf("end %s: %w", job.ID, err)
		}
	}
	state := stateOf(job)
	var text strings.Builder
	output := job.Stdout.Text(maxStreamBytes)
	writeStream(&text, "stdout", output)
	writeStream(&text, "stderr", job.Stderr.Text(maxStreamBytes))
	fmt.Fprintf(&text, "status: %s\n", state.Status)
	return Answer[commandState]{Text: text.String(), Value: state, Plain: &output, IsError: state.failed()}, nil
}

// writeStream writes the text of a stream with its name as heading, unless the text is empty.
func writeStream(w *strings.Builder, name, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(w, "%s:\n%s", name, text)
	if !strings.HasSuffix(text, "\n") {
		w.WriteByte('\n')
	}
}

type processInput struct {
	Action  string `json:"action" jsonschema:"start, list, poll or stop."`
	Command string `json:"command,omitempty" jsonschema:"The command line to start."`
	Cwd     string `json:"cwd,omitempty" jsonschema:"The directory to run in; the working directory if absent."`
	ID      string `json:"id,omitempty" jsonschema:"The job to poll or to stop."`
}

type processOutput struct {
	Jobs []jobOutput `json:"jobs"`
}

type jobOutput struct {
	ID      string `json:"id"`
	Command string `json:"command"`
	Dir     string `json:"dir"`
	commandState
}

func newJobOutput(job *jobs.Job) jobOutput {
	return jobOutput{ID: job.ID, Command: job.Line, Dir: job.Dir, commandState: stateOf(job)}
}

// A jobReader returns the text of a job's output for a caller.
type jobReader func(caller drawbridge.Caller, job *jobs.Job) string

// newProcessCard returns the card that runs commands in the background.
func newProcessCard(c deck.Context) (drawbridge.Card, error) {
	cursors := newStateTable[map[string]streamCursor]()
	return newJobCard(c, "process", "Background commands", processText, func(caller drawbridge.Caller, job *jobs.Job) string {
		var text strings.Builder
		cursors.use(caller, "", func(all *map[string]streamCursor) {
			if *all == nil || len(*all) > maxStates {
				*all = map[string]streamCursor{}
			}
			at := (*all)[job.ID]
			at.stdout = writeFrom(&text, "stdout", &job.Stdout, at.stdout)
			at.stderr = writeFrom(&text, "stderr", &job.Stderr, at.stderr)
			(*all)[job.ID] = at
		})
		return text.String()
	})
}

// A streamCursor contains the positions up to which a run has polled the output of a job, in bytes for each stream.
type streamCursor struct{ stdout, stderr int64 }

// writeFrom writes the output of a stream after the position cursor, and returns the position for the next call.
func writeFrom(w *strings.Builder, name string, stream *jobs.Output, cursor int64) (next int64) {
	text, elided, next := stream.From(cursor, pollWindow)
	if elided > 0 {
		text = fmt.Sprintf("[%d bytes elided to stay within the output ceiling]\n", elided) + text
	}
	writeStream(w, name, text)
	return next
}

// newBgProcessCard returns the app card that runs commands in the background.
func newBgProcessCard(c deck.Context) (drawbridge.Card, error) {
	return newJobCard(c, "bg-process", "Background process", bgProcessText, func(_ drawbridge.Caller, job *jobs.Job) string {
		var text strings.Builder
		writeStream(&text, "stdout", strings.Join(job.Stdout.LastLines(bgProcessLines), "\n"))
		writeStream(&text, "stderr", strings.Join(job.Stderr.LastLines(bgProcessLines), "\n"))
		return text.String()
	})
}

func newJobCard(c deck.Context, name, title, text string, read jobReader) (drawbridge.Card, error) {
	return withJobs(c, func(b shellBackend) drawbridge.Card {
		return newShipped(Description[processInput]{
			Name: name, Title: title, Text: text, Scopes: []drawbridge.Scope{ScopeExec}, AcceptsText: true, TextForScripts: true,
			Annotations: &Annotations{Destructive: true, OpenWorld: true},
			Examples:    []processInput{{Action: "start", Command: "npm run dev"}, {Action: "poll", ID: "job-1"}},
		}, func(ctx context.Context, call drawbridge.Call, in processInput) (Answer[processOutput], error) {
			return b.act(ctx, call.Caller, in, read)
		})
	})
}

// act carries out one action on background commands.
func (b shellBackend) act(ctx context.Context, caller drawbridge.Caller, in processInput,
	read jobReader) (answer Answer[processOutput], err error) {
	switch in.Action {
	case "start":
		job, err := b.start(ctx, caller, in.Command, in.Cwd, 0)
		if err != nil {
			return answer, err
		}
		return jobAnswer(fmt.Sprintf("Started %s.\n", job.ID), job), nil
	case "list":
		return listAnswer(b.jobs.List(caller.Principal)), nil
	case "poll", "stop":
	default:
		return answer, ToolError("action must be start, list, poll or stop.")
	}
	job, err := b.jobs.Find(caller.Principal, in.ID)
	if errors.Is(err, jobs.ErrNotFound) {
		return answer, ToolError(fmt.Sprintf("There is no job %q. List them with action list.", in.ID))
	}
	if in.Action == "stop" {
		if err := b.jobs.Stop(context.WithoutCancel(ctx), job, jobs.Stopped); err != nil {
			return answer, fmt.Errorf("stop %s: %w", job.ID, err)
		}
	}
	return jobAnswer(read(caller, job)+"status: "+job.State().String()+"\n", job), nil
}

func jobAnswer(text string, job *jobs.Job) Answer[processOutput] {
	return Answer[processOutput]{Text: text, Value: processOutput{Jobs: []jobOutput{newJobOutput(job)}}}
}

func listAnswer(all []*jobs.Job) Answer[processOutput] {
	out := processOutput{Jobs: []jobOutput{}}
	var text strings.Builder
	for _, job := range all {
		row := newJobOutput(job)
		out.Jobs = append(out.Jobs, row)
		fmt.Fprintf(&text, "%-8s %-40s %s\n", row.ID, row.Status, jobs.Shorten(row.Command, 80))
	}
	if len(all) == 0 {
		text.WriteString("No jobs.\n")
	}
	return Answer[processOutput]{Text: text.String(), Value: out}
}
