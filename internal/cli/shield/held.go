package shield

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/change"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/terminal"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/spf13/cobra"
)

func (d Desk) heldCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "held [SERVER [TOOL...]]",
		Short: "Show the tools whose definition changed, with what changed",
		Long: `Show the tools whose definition changed since it was pinned, word by word: [-gone-] and {+new+}. A tool
that waits is listed as it was, and no call reaches it; one that was rejected is not listed. The same holds
for prompts (prompt:NAME), templates of resources (template:URI) and what a server says of its own use
(instructions): the old text is served until you decide.`,
		Example: "  drawbridge shield held\n  drawbridge shield held github create_issue",
		RunE: func(cmd *cobra.Command, args []string) error {
			tools, err := d.named(cmd.Context(), args)
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

// named gives the held tools that words name: a server, and tools of it.
func (d Desk) named(ctx context.Context, words []string) ([]roster.HeldTool, error) {
	if len(words) == 0 {
		return d.Roster().Held(ctx, "")
	}
	return d.Roster().Held(ctx, drawbridge.ServerID(words[0]), words[1:]...)
}

// heldJSON is a held tool as --json prints it.
type heldJSON struct {
	Server drawbridge.ServerID `json:"server"`
	Part   string              `json:"part,omitempty"`
	Tool   string              `json:"tool"`
	State  string              `json:"state"`
	Since  time.Time           `json:"since"`
	change.Difference
	Pinned  json.RawMessage `json:"pinned"`
	Offered json.RawMessage `json:"offered"`
}

func (d Desk) printHeldJSON(tools []roster.HeldTool) error {
	s, err := shield.New(shield.Options{Uncapped: true})
	if err != nil {
		return err
	}
	rows := make([]heldJSON, 0, len(tools))
	for _, h := range tools {
		rows = append(rows, heldJSON{
			Server: h.Server, Part: h.Part, Tool: h.Pin.Tool, State: state(h), Since: h.Pin.Offer.At,
			Difference: change.Between(s, h.Pin.Definition, h.Pin.Offer.Definition),
			Pinned:     h.Pin.Definition, Offered: h.Pin.Offer.Definition,
		})
	}
	return manners.PrintJSON(d.Out, rows)
}

func state(h roster.HeldTool) string {
	if h.Pin.Offer.Rejected {
		return "rejected"
	}
	return "waits"
}

// printHeld shows tools and what changed in them, and with hint what a person can do.
func (d Desk) printHeld(w io.Writer, tools []roster.HeldTool, hint bool) error {
	s, err := shield.New(shield.Options{Uncapped: true})
	if err != nil {
		return err
	}
	for _, h := range tools {
		diff := change.Between(s, h.Pin.Definition, h.Pin.Offer.Definition)
		safetext.Fprintf(w, "%s %s: %s, %s since %s\n", h.Server, safetext.Exact(h.Label()), diff, state(h), manners.LocalTime(h.Pin.Offer.At))
		diff.Print(w, terminal.Is(w))
		if !hint {
			continue
		}
		rest := ", or shield reject"
		if h.Pin.Offer.Rejected {
			rest = " takes the rejection back"
		}
		if _, err := safetext.Fprintf(w, "  %s%s\n", gateway.AcceptCommand(h.Server, h.Label()), rest); err != nil {
			return err
		}
	}
	return nil
}

func (d Desk) acceptCommand() *cobra.Command {
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "accept SERVER [TOOL...]",
		Short: "Let changed tools be called again, after a look at what changed",
		Long: `Let changed tools be called again, after a look at what changed: all of a server that wait, or those
named. What was shown is accepted and nothing else: a tool that changes again waits again. The lockfile, where it
speaks of the tool, is changed too.

At a terminal it asks for each; --yes is for scripts.`,
		Example: "  drawbridge shield accept github\n  drawbridge shield accept github create_issue",
		Args:    someServer,
		RunE: func(cmd *cobra.Command, args []string) error {
			tools, err := d.named(cmd.Context(), args)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				tools = waiting(tools)
			}
			agreed, err := d.agreed(cmd.Context(), tools, yes)
			if err != nil {
				return err
			}
			live, err := d.Roster().AcceptTools(cmd.Context(), agreed)
			if err := d.decided("accepted", agreed, live, asJSON, err); err != nil {
				return err
			}
			if len(tools) > 0 && len(agreed) == 0 {
				return d.Quiet
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "accept without asking")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func someServer(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return roster.Mistake(fmt.Sprintf("%s takes the name of a server, and of tools (see %q)", cmd.CommandPath(), cmd.CommandPath()+" --help"))
	}
	return nil
}

// waiting are the tools that nobody decided about.
func waiting(tools []roster.HeldTool) (all []roster.HeldTool) {
	for _, h := range tools {
		if !h.Pin.Offer.Rejected {
			all = append(all, h)
		}
	}
	return all
}

// agreed shows what changed, and gives the tools that the person agrees to.
func (d Desk) agreed(ctx context.Context, tools []roster.HeldTool, yes bool) (agreed []roster.HeldTool, err error) {
	for _, h := range tools {
		if err := d.printHeld(d.Err, []roster.HeldTool{h}, false); err != nil {
			return nil, err
		}
		ok := yes
		if !yes && d.Asks() {
			if ok, err = d.Confirm(ctx, fmt.Sprintf("Accept %s %s? [y/N]: ", h.Server, safetext.Exact(h.Label())), false); err != nil {
				return nil, errors.New("nothing was accepted: there was no answer")
			}
		}
		if ok {
			agreed = append(agreed, h)
		}
	}
	if len(tools) > 0 && !yes && !d.Asks() {
		return nil, roster.Mistake("nothing was accepted: there is no terminal to ask at (--yes accepts what is shown)")
	}
	return agreed, nil
}

func (d Desk) rejectCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "reject SERVER [TOOL...]",
		Short: "Take changed tools off the deck",
		Long: `Take changed tools off the deck: all of a server that wait, or those named. They come back when the server
says what it said before, and wait again when it says a third thing.`,
		Example: "  drawbridge shield reject github create_issue",
		Args:    someServer,
		RunE: func(cmd *cobra.Command, args []string) error {
			tools, err := d.named(cmd.Context(), args)
			if err != nil {
				return err
			}
			tools = waiting(tools)
			live, err := d.Roster().RejectTools(cmd.Context(), tools)
			return d.decided("rejected", tools, live, asJSON, err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// decided says what was done.
func (d Desk) decided(did string, tools []roster.HeldTool, live string, asJSON bool, err error) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		names := make([]string, 0, len(tools))
		for _, h := range tools {
			names = append(names, h.Label())
		}
		return manners.PrintJSON(d.Out, map[string]any{did: names, "live": live})
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
