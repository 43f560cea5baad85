package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// A scriptRun is what the command run asks of run_python.
type scriptRun struct {
	Code    string   `json:"code"`
	Tools   []string `json:"tools,omitempty"`
	Timeout float64  `json:"timeout,omitempty"`
	// id is the ID that the run gets; resume is the ID of the interrupted run that is resumed, empty for a new one.
	id, resume string
}

// params returns the params of the call of run_python.
func (r scriptRun) params() (json.RawMessage, error) {
	arguments, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	edits := []rawjson.Edit{rawjson.Put(rawjson.Quote(cards.RunPythonName), "name"), rawjson.Put(arguments, "arguments")}
	if r.resume != "" {
		edits = append(edits, rawjson.Put(rawjson.Quote(r.resume), "_meta", mcp.MetaResume))
	} else {
		edits = append(edits, rawjson.Put(rawjson.Quote(r.id), "_meta", mcp.MetaRun))
	}
	return rawjson.Apply(nil, edits...), nil
}

// explainInterruption adds how to resume the run to the error of a run that was interrupted.
func (r scriptRun) explainInterruption(w io.Writer, err error) error {
	next := "drawbridge run --resume " + cmp.Or(r.resume, r.id)
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Ambiguous {
		f.Next = next
	} else if errors.Is(err, errInterruptedAtQuestion) {
		fmt.Fprintf(w, "The run can be resumed for an hour: %s\n", next)
	}
	return err
}

func (a *app) runCommand() *cobra.Command {
	var asJSON, own, explain bool
	var allow []string
	var timeout time.Duration
	var resume string
	cmd := &cobra.Command{
		Use:   "run SCRIPT",
		Short: "Run a Python script that can call the configured tools",
		Long: `Run a Python script that can call the configured tools; "-" reads it from standard input.
The script runs in a sandbox: it has no files, no network and no packages, only the tools.

  import tools
  for issue in tools.github.list_issues(owner="o", repo="r"):
      print(issue["title"])

The same rules hold for its calls as for yours. Calls that need an approval are collected,
and you are asked once for all of them when the script needs their results. If the run is
interrupted while you are asked, --resume goes on with it, and repeats no call. The exit
code is that of the script's sys.exit, and 1 after an exception. See docs/sandbox.md.`,
		Example: `  drawbridge run report.py
  drawbridge run report.py --allow 'github__*' --timeout 2m
  drawbridge run --explain --allow 'github__*'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if (explain || resume != "") && len(args) == 0 {
				return nil
			}
			return exactArgs(1, "the file of a script, or -")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r := scriptRun{Code: explainScript, Tools: allow, Timeout: timeout.Seconds(), id: cards.NewRunID(), resume: resume}
			switch {
			case resume != "" && (explain || len(args) > 0):
				return errors.New("--resume goes on with the script of the run: name no other one")
			case resume == "" && !explain:
				code, err := readScript(a.In, args[0])
				if err != nil {
					return err
				}
				r.Code = code
			}
			return a.withRequests(cmd.Context(), own, func(ctx context.Context, q requester) error {
				return a.runScript(ctx, q, r, asJSON)
			})
		},
	}
	addOwnFlag(cmd, &own)
	cmd.Flags().StringSliceVar(&allow, "allow", nil, "patterns of the tools that the script may call, such as 'github__*' (default all)")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long the script may run; it can only be less than the setting")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the outcome as JSON")
	cmd.Flags().StringVar(&resume, "resume", "", "go on with an interrupted run; its `ID` was printed")
	cmd.Flags().BoolVar(&explain, "explain", false, "run nothing, and list the tools that a script could call")
	return cmd
}

// explainScript prints the tools that a script can call, with what they do.
const explainScript = `
for name in tools.names():
    text = tools.describe(name)["description"].strip()
    print(name + ": " + (text.splitlines() or [""])[0])
`

// readScript reads a script from a file, or from standard input.
func readScript(in io.Reader, name string) (string, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", fmt.Errorf("read the script: %w", err)
		}
		defer f.Close()
		in = f
	}
	code, err := io.ReadAll(io.LimitReader(in, cards.MaxScript+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the script: %w", err)
	case len(code) > cards.MaxScript:
		return "", fmt.Errorf("read the script: it has more than %d bytes", cards.MaxScript)
	}
	return string(code), nil
}

// runScript runs a script and prints its outcome.
func (a *app) runScript(ctx context.Context, q requester, r scriptRun, asJSON bool) error {
	if q.g != nil { // a hub starts its servers itself
		a.awaitNewServers(ctx, q.g)
	}
	params, err := r.params()
	if err != nil {
		return err
	}
	result, err := q.do(ctx, mcp.MethodToolsCall, params)
	if err != nil {
		return r.explainInterruption(a.Err, err)
	}
	raw := rawjson.Get(result, "structuredContent")
	if raw == nil { // refused before it ran
		printToolResult(a.Err, result)
		return errAlreadyPrinted
	}
	var o sandbox.Outcome
	if err := json.Unmarshal(raw, &o); err != nil {
		return errors.New("run the script: the outcome cannot be read")
	}
	if asJSON {
		safetext.Fprintf(a.Out, "%s\n", safetext.Shown(safetext.JSON(raw)))
	} else {
		a.printOutcome(o)
	}
	switch {
	case o.Error != nil:
		return errAlreadyPrinted
	case o.Exit != nil && *o.Exit != 0:
		return ExitError(*o.Exit)
	}
	return nil
}

// printOutcome prints the output and the value of a script to standard output, and its errors to standard error. Text for
// a terminal is made printable; a file gets it unchanged.
func (a *app) printOutcome(o sandbox.Outcome) {
	show := func(w io.Writer, text string) {
		if IsTerminal(w) {
			text = safetext.Text(text)
		}
		_, _ = io.WriteString(w, text) // a closed output ends the command anyway
	}
	show(a.Err, o.Stderr)
	if o.Stdout != "" || o.Value != nil || o.Repr != "" {
		show(a.Out, cards.FormatOutcome(sandbox.Outcome{Stdout: o.Stdout, Truncated: o.Truncated, Value: o.Value, Repr: o.Repr}))
	}
	if o.Error != nil {
		show(a.Err, cards.FormatOutcome(sandbox.Outcome{Error: o.Error}))
	}
}
