package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/spf13/cobra"
)

func (d shieldCommands) heldCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "held [SERVER [TOOL...]]",
		Short: "Show the tools whose definition changed, with the changes",
		Long: `Show the tools whose definition changed since it was pinned, word by word: [-gone-] and {+new+}. A tool
that waits is listed as it was, and no call reaches it; one that was rejected is not listed. Changed prompts
(prompt:NAME), resource templates (template:URI) and instructions of a server (instructions) wait too: the old
text is served meanwhile.`,
		Example: "  drawbridge shield held\n  drawbridge shield held github create_issue",
		RunE: func(cmd *cobra.Command, args []string) error {
			tools, err := d.heldTools(cmd.Context(), args)
			if err != nil {
				return err
			}
			if asJSON {
				return d.printHeldJSON(tools)
			}
			if len(tools) == 0 {
				fmt.Fprintln(d.Err, "Nothing is held.")
			}
			return d.printHeld(d.Out, tools, true)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, definitions whole")
	return cmd
}

// heldTools returns the held tools that words name: words[0] is a server, and further words are its tools. Without
// further words it returns all held tools of the server; without any word, the held tools of all servers.
func (d shieldCommands) heldTools(ctx context.Context, words []string) ([]admin.HeldTool, error) {
	if len(words) == 0 {
		return d.Admin().HeldTools(ctx, "")
	}
	return d.Admin().HeldTools(ctx, drawbridge.ServerID(words[0]), words[1:]...)
}

// A heldToolJSON is a held tool as --json prints it.
type heldToolJSON struct {
	Server drawbridge.ServerID `json:"server"`
	Part   string              `json:"part,omitempty"`
	Tool   string              `json:"tool"`
	State  string              `json:"state"`
	Since  time.Time           `json:"since"`
	admin.DefinitionDiff
	Pinned  json.RawMessage `json:"pinned"`
	Offered json.RawMessage `json:"offered"`
}

func (d shieldCommands) printHeldJSON(tools []admin.HeldTool) error {
	s, err := shield.New(shield.Options{NoCaps: true})
	if err != nil {
		return err
	}
	rows := make([]heldToolJSON, 0, len(tools))
	for _, h := range tools {
		rows = append(rows, heldToolJSON{
			Server: h.Server, Part: h.Part, Tool: h.Pin.Tool, State: heldToolState(h), Since: h.Pin.Pending.At,
			DefinitionDiff: admin.DiffDefinitions(s, h.Pin.Definition, h.Pin.Pending.Definition),
			Pinned:         h.Pin.Definition, Offered: h.Pin.Pending.Definition,
		})
	}
	return PrintJSON(d.Out, rows)
}

func heldToolState(h admin.HeldTool) string {
	if h.Pin.Pending.Rejected {
		return "rejected"
	}
	return "waits"
}

// printHeld prints tools with their changes. With hint it also prints the command that accepts each tool.
func (d shieldCommands) printHeld(w io.Writer, tools []admin.HeldTool, hint bool) error {
	s, err := shield.New(shield.Options{NoCaps: true})
	if err != nil {
		return err
	}
	for _, h := range tools {
		diff := admin.DiffDefinitions(s, h.Pin.Definition, h.Pin.Pending.Definition)
		safetext.Fprintf(w, "%s %s: %s, %s since %s\n", h.Server, safetext.Exact(h.Label()), diff, heldToolState(h),
			formatLocalTime(h.Pin.Pending.At))
		PrintDefinitionDiff(w, diff, IsTerminal(w))
		if !hint {
			continue
		}
		rest := ", or shield reject"
		if h.Pin.Pending.Rejected {
			rest = " takes the rejection back"
		}
		if _, err := safetext.Fprintf(w, "  %s%s\n", gateway.AcceptCommand(h.Server, h.Label()), rest); err != nil {
			return err
		}
	}
	return nil
}

func (d shieldCommands) acceptCommand() *cobra.Command {
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "accept SERVER [TOOL...]",
		Short: "Accept changed tools after you have seen the changes",
		Long: `Accept changed tools after you have seen the changes: all waiting tools of a server, or those named. Only
the definition that was shown is accepted: a tool that changes again waits again. If the lockfile contains the
tool, its line is updated too.

At a terminal it asks for each; --yes is for scripts.`,
		Example: "  drawbridge shield accept github\n  drawbridge shield accept github create_issue",
		Args:    requireServerArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			tools, err := d.heldTools(cmd.Context(), args)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				waiting := undecidedTools(tools)
				if len(waiting) == 0 && len(tools) > 0 {
					return rejectedToolsError(tools)
				}
				tools = waiting
			}
			agreed, err := d.confirmTools(cmd.Context(), tools, yes)
			if err != nil {
				return err
			}
			live, err := d.Admin().AcceptTools(cmd.Context(), agreed)
			if err := d.printToolDecision("accepted", agreed, live, asJSON, err); err != nil {
				return err
			}
			if len(tools) > 0 && len(agreed) == 0 {
				return d.ErrAlreadyPrinted
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "accept without asking")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func requireServerArg(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return admin.UserError(fmt.Sprintf("%s takes the name of a server, and of tools (see %q)", cmd.CommandPath(),
			cmd.CommandPath()+" --help"))
	}
	return nil
}

// rejectedToolsError returns the error for a server whose held tools were all rejected. To accept such a tool, the
// person must name it.
func rejectedToolsError(tools []admin.HeldTool) error {
	next := make([]string, 0, len(tools))
	for _, h := range tools {
		next = append(next, gateway.AcceptCommand(h.Server, h.Label()))
	}
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.NotFound,
		Step: "nothing waits: each held definition of this server was rejected",
		Next: "to accept one after all: " + strings.Join(next, ", or ")}
}

// undecidedTools returns the tools that still wait for a decision, without the rejected tools.
func undecidedTools(tools []admin.HeldTool) (all []admin.HeldTool) {
	for _, h := range tools {
		if !h.Pin.Pending.Rejected {
			all = append(all, h)
		}
	}
	return all
}

// confirmTools shows the changes of each tool, and asks about each tool unless yes is set. It returns the tools that
// the person agrees to, or all tools if yes is set. If yes is not set and there is no terminal, it returns an error.
func (d shieldCommands) confirmTools(ctx context.Context, tools []admin.HeldTool,
	yes bool) (agreed []admin.HeldTool, err error) {
	for _, h := range tools {
		if err := d.printHeld(d.Err, []admin.HeldTool{h}, false); err != nil {
			return nil, err
		}
		ok := yes
		if !yes && d.IsInteractive() {
			if ok, err = d.Confirm(ctx, fmt.Sprintf("Accept %s %s?", h.Server, safetext.Exact(h.Label())),
				false); err != nil {
				return nil, errors.New("nothing was accepted: there was no answer")
			}
		}
		if ok {
			agreed = append(agreed, h)
		}
	}
	if len(tools) > 0 && !yes && !d.IsInteractive() {
		return nil, admin.UserError(
			"nothing was accepted: no terminal to ask at (--yes accepts the changes shown)")
	}
	return agreed, nil
}

func (d shieldCommands) rejectCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "reject SERVER [TOOL...]",
		Short: "Keep changed tools unavailable",
		Long: `Keep changed tools unavailable: all of a server that wait, or those named. They return when the server
offers the pinned definition again, and wait again when it offers another one.`,
		Example: "  drawbridge shield reject github create_issue",
		Args:    requireServerArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			tools, err := d.heldTools(cmd.Context(), args)
			if err != nil {
				return err
			}
			tools = undecidedTools(tools)
			live, err := d.Admin().RejectTools(cmd.Context(), tools)
			return d.printToolDecision("rejected", tools, live, asJSON, err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printToolDecision prints the tools that were decided on. The parameter did names the decision, such as "accepted",
// and live describes the result in the running hub. If err is not nil, printToolDecision only returns err.
func (d shieldCommands) printToolDecision(did string, tools []admin.HeldTool, live string, asJSON bool,
	err error) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		names := make([]string, 0, len(tools))
		for _, h := range tools {
			names = append(names, h.Label())
		}
		return PrintJSON(d.Out, map[string]any{did: names, "live": live})
	case len(tools) == 0:
		_, err = safetext.Fprintf(d.Err, "Nothing was %s.\n", did)
		return err
	}
	for _, h := range tools {
		safetext.Fprintf(d.Out, "✓ %s %s %s\n", did, h.Server, safetext.Exact(h.Label()))
	}
	if live != "" {
		safetext.Fprintln(d.Err, live)
	}
	return nil
}
