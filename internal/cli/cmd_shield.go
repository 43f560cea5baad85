package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/spf13/cobra"
)

// A serverItem is one item that a server lists. ID is the qualified name or the URI of the item; for instructions it is
// the server. Kind is "tool", "prompt", "resource", "template" or "instructions". Definition is the item's JSON; for
// instructions it is a JSON string. Label is the label that shield.PinLabel returns, such as "prompt:NAME".
type serverItem struct {
	ID, Kind   string
	Definition json.RawMessage
	Server     drawbridge.ServerID
	Label      string
}

// An unlistedServer is a server that could not be listed, and the reason.
type unlistedServer struct {
	Server drawbridge.ServerID
	Reason string
}

// shieldCommands implements the command "shield" and its subcommands.
type shieldCommands struct {
	In       io.Reader
	Out, Err io.Writer
	// Env looks up a variable of the environment.
	Env func(name string) (string, bool)
	// ListItems returns the items of one server, and the servers that could not be listed. An empty server selects all
	// servers. An unknown server is an error.
	ListItems func(ctx context.Context, server drawbridge.ServerID) ([]serverItem, []unlistedServer, error)
	// Admin returns the service that carries out decisions.
	Admin func() *admin.Service
	// IsInteractive reports whether a person can be asked at a terminal. Confirm asks a yes-or-no question, and returns
	// the value of otherwise for an empty answer.
	IsInteractive func() bool
	Confirm       func(ctx context.Context, question string, otherwise bool) (bool, error)
	// ErrAlreadyPrinted is the error of a command that failed and has printed the reason.
	ErrAlreadyPrinted error
}

// command returns the command "shield" with its subcommands.
func (d shieldCommands) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shield",
		Short: "Check definitions and results of servers, and changes of definitions",
		Long: `Check definitions and results of servers, and decide on tools whose definition changed.
docs/shield.md describes the findings. "shield trust" shows the trust in each server, which
depends on its behaviour.`,
		Example: `  drawbridge shield scan                      all servers
  drawbridge shield scan --server github      one server
  drawbridge shield scan tools.jsonl --json   rows of a file, one JSON object a line
  drawbridge shield diff pairs.jsonl --json
  drawbridge shield held                      changed tools that wait for you
  drawbridge shield accept github`,
	}
	cmd.AddCommand(d.scanCommand(), d.diffCommand(), d.heldCommand(), d.acceptCommand(), d.rejectCommand(),
		d.unlockCommand(), d.trustCommand(), d.resultsCommand())
	return cmd
}

func (d shieldCommands) scanCommand() *cobra.Command {
	var server string
	var asJSON bool
	var failOn string
	cmd := &cobra.Command{
		Use:   "scan [FILE.jsonl]",
		Short: "Check the definitions of servers, or the rows of a file",
		Long: `Check the definitions of servers, or the rows of a file ("-" is standard input). A row is a JSON object:
a tool as in MCP, or an object with "id" and one of "tool", "prompt", "resource", "template" or
"elicitation" (a definition), "instructions" (a text), "text" or "result" (the answer to a call).

For each it prints its id, the verdict (clean, flagged or blanked; held for a definition that waits
for a person, and for a row that cannot be read) and the reasons with their positions. With --json, or for rows of a file if output is not a terminal, it also prints the
canonical text, one JSON object a line. Any verdict except "clean" means that text was removed,
blanked, or looks like an order to the model; a cut at a size limit is only reported. The exit
code is 1 if a server could not be listed or a row cannot be read; both are named.`,
		Example: "  drawbridge shield scan tools.jsonl --json --fail-on flagged",
		Args:    maxOneScanFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			least, err := parseFailOn(failOn)
			if err != nil {
				return err
			}
			s, err := shield.New(shield.Options{})
			if err != nil {
				return err
			}
			p := &scanPrinter{out: bufio.NewWriter(d.Out), json: asJSON || len(args) == 1 && !IsTerminal(d.Out),
				failVerdict: least, errAlreadyPrinted: d.ErrAlreadyPrinted}
			switch {
			case len(args) == 1 && server != "":
				return admin.UserError("give a file or --server, not both")
			case len(args) == 1:
				err = d.eachFileRow(args[0], p, func(r jsonLine) error {
					if err := cmd.Context().Err(); err != nil {
						return err
					}
					return p.scanRow(cmd.Context(), s, r)
				})
			default:
				err = d.scanMounted(cmd.Context(), s, drawbridge.ServerID(server), p)
			}
			return p.finish(err)
		},
	}
	cmd.Flags().StringVar(&server, "server", "", "check one server only")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	cmd.Flags().StringVar(&failOn, "fail-on", "never",
		`exit with 1 if a verdict is at least "flagged" or "blanked"; "never" ignores verdicts`)
	return cmd
}

// parseFailOn returns the mildest verdict that makes a scan fail. It returns -1 for "never".
func parseFailOn(word string) (shield.CheckVerdict, error) {
	switch word {
	case "never":
		return -1, nil
	case "blanked":
		return shield.VerdictBlanked, nil
	case "flagged":
		return shield.VerdictFlagged, nil
	}
	return 0, admin.UserError(`--fail-on is "never", "flagged" or "blanked"`)
}

func (d shieldCommands) scanMounted(ctx context.Context, s *shield.Shield, server drawbridge.ServerID,
	p *scanPrinter) error {
	items, absent, err := d.ListItems(ctx, server)
	if err != nil {
		return err
	}
	held, err := d.heldReasons(ctx, server)
	if err != nil {
		return err
	}
	for _, it := range items {
		o := scanOutcome{ID: it.ID, Kind: it.Kind}
		if err := o.judge(ctx, s, it.Kind, it.Definition); err != nil {
			return fmt.Errorf("%s %q: %w", it.Kind, it.ID, err)
		}
		if why := held[string(it.Server)+" "+it.Label]; why != "" {
			o.Verdict = shield.VerdictHeld
			o.Reasons = append(o.Reasons, shield.Finding{Rule: "pin", Action: "held", Why: why})
		}
		if err := p.printOutcome(o); err != nil {
			return err
		}
	}
	for _, s := range absent {
		p.failed = true
		safetext.Fprintf(d.Err, "✗ %s: could not be looked at: %s\n", s.Server, safetext.Line(s.Reason))
	}
	if len(items)+len(absent) == 0 {
		fmt.Fprintln(d.Err, "nothing is mounted (drawbridge mcp list)")
	}
	return nil
}

// heldReasons returns why items are held: their definition changed, and a person has not accepted the new one. The key
// of the map is the server and the item's label, with a space between them. An empty server selects all servers.
func (d shieldCommands) heldReasons(ctx context.Context, server drawbridge.ServerID) (map[string]string, error) {
	all, err := d.Admin().HeldTools(ctx, server)
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	for _, h := range all {
		what := "waits for a person"
		if h.Pin.Pending.Rejected {
			what = "a person rejected it"
		}
		key := string(h.Server) + " " + h.Label()
		why[key] = fmt.Sprintf("is another definition than was pinned: %s (drawbridge shield held %s)", what, h.Server)
	}
	return why, nil
}

func (d shieldCommands) diffCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff FILE.jsonl",
		Short: "Judge changed definitions: pairs of before and after",
		Long: `Judge changed definitions. Each row is a JSON object with "before" and "after", and may have an
"id". For each one it prints the risk (none, low, review, high), whether a person should be asked
before the new definition replaces the old one, the changes, and the findings in the new one.
A row that cannot be read is of high risk, and the exit code is 1 then.`,
		Example: "  drawbridge shield diff pairs.jsonl --json",
		Args:    maxOneScanFile,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return admin.UserError(`diff takes a file of pairs, or "-" for standard input`)
			}
			s, err := shield.New(shield.Options{NoCaps: true})
			if err != nil {
				return err
			}
			p := &scanPrinter{out: bufio.NewWriter(d.Out), json: asJSON || !IsTerminal(d.Out), failVerdict: -1,
				errAlreadyPrinted: d.ErrAlreadyPrinted}
			return p.finish(d.eachFileRow(args[0], p, func(r jsonLine) error { return p.diffRow(s, r) }))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

func maxOneScanFile(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return admin.UserError(fmt.Sprintf("%s takes one file (see %q)", cmd.CommandPath(),
			cmd.CommandPath()+" --help"))
	}
	return nil
}

// A scanOutcome is the result of the check of one item of a server, or of one row of a file.
type scanOutcome struct {
	ID string `json:"id"`
	// Line is the line number of a row that cannot be read; 0 for any other row.
	Line      int                 `json:"line,omitempty"`
	Kind      string              `json:"kind"`
	Verdict   shield.CheckVerdict `json:"verdict"`
	Reasons   []shield.Finding    `json:"reasons"`
	Canonical json.RawMessage     `json:"canonical"`
}

// judge checks raw, the JSON of an item of the given kind. It stores the kind, the verdict, the reasons and the
// canonical text in o.
func (o *scanOutcome) judge(ctx context.Context, s *shield.Shield, kind string, raw json.RawMessage) error {
	o.Kind = kind
	if kind == "text" || kind == "instructions" {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		look := s.CheckText
		if kind == "text" {
			look = s.CheckResultText
		}
		out, verdict, reasons := look(text)
		o.Verdict, o.Reasons, o.Canonical = verdict, reasons, jsonString(out)
		return nil
	}
	var r shield.Report
	var err error
	if kind == "result" {
		r, err = resultScanner{s}.scan(ctx, raw)
	} else {
		r, err = s.CheckDefinition(raw)
	}
	o.Verdict, o.Reasons, o.Canonical = r.Verdict, r.Reasons, r.Canonical
	return err
}

// A scanPrinter prints outcomes one by one, and counts them by verdict.
type scanPrinter struct {
	out               *bufio.Writer
	json              bool
	failVerdict       shield.CheckVerdict
	counts            [4]int
	unreadable        int
	failed            bool
	errAlreadyPrinted error
}

func (p *scanPrinter) printOutcome(o scanOutcome) error {
	p.counts[o.Verdict]++
	p.failed = p.failed || p.failVerdict >= 0 && o.Verdict <= p.failVerdict
	if p.json {
		if o.Reasons == nil {
			o.Reasons = []shield.Finding{}
		}
		return printJSONLine(p.out, o)
	}
	if o.Verdict == shield.VerdictClean && !slices.ContainsFunc(o.Reasons,
		func(r shield.Finding) bool { return r.Action == "noted" }) {
		return nil
	}
	safetext.Fprintf(p.out, "%-8s %s %s\n", o.Verdict, o.Kind, safetext.Exact(o.ID))
	for _, r := range o.Reasons {
		if r.Action == "held" { // the whole item is held
			safetext.Fprintf(p.out, "         held: %s\n", r.Why)
			continue
		}
		where := fmt.Sprintf("byte %d", r.Offset)
		if r.Path != "" {
			where = safetext.Exact(r.Path) + ", " + where
		}
		safetext.Fprintf(p.out, "         %s: %s (%s): %s\n", r.Action, r.Why, where, r.Excerpt)
	}
	return nil
}

// finish prints the number of outcomes for each verdict, unless the output is JSON. It returns err if err is not nil,
// and errAlreadyPrinted if the scan failed.
func (p *scanPrinter) finish(err error) error {
	if err == nil && !p.json && p.counts != [4]int{} {
		safetext.Fprintf(p.out, "%d clean, %d flagged, %d blanked, %d held\n", p.counts[shield.VerdictClean],
			p.counts[shield.VerdictFlagged], p.counts[shield.VerdictBlanked], p.counts[shield.VerdictHeld])
	}
	if flushed := p.out.Flush(); err == nil {
		err = flushed
	}
	if err == nil && p.failed {
		return p.errAlreadyPrinted
	}
	return err
}

// jsonString returns a text as a JSON string.
func jsonString(text string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(text) != nil {
		return json.RawMessage(`""`)
	}
	return bytes.TrimSpace(b.Bytes())
}
