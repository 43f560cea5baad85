package cli

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/addons"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (a *app) addonCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "addon",
		Short: "Programs of yours that watch, rewrite or block calls, and bring tools",
		Long: `Programs of yours that watch, rewrite or block calls of tools, and bring tools of their own.
An addon is a directory in ~/.config/drawbridge/addons. One in .drawbridge/addons of a project
needs your approval, and again when one of its files changes.`,
	}
	cmd.AddCommand(a.addonListCommand(), a.addonCheckCommand(), a.addonApproveCommand(), a.addonRejectCommand())
	return cmd
}

// An addonLine is an addon in the output of "addon list --json".
type addonLine struct {
	ID      string             `json:"id"`
	Version string             `json:"version,omitempty"`
	Summary string             `json:"summary,omitempty"`
	Dir     string             `json:"dir"`
	State   gateway.AddonState `json:"state"`
	Project bool               `json:"project,omitempty"`
	Tools   []string           `json:"tools,omitempty"`
	Notes   []string           `json:"notes,omitempty"`
	Error   string             `json:"error,omitempty"`
}

func (a *app) addonListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the addons and whether they are in use",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.adminService().Addons(cmd.Context())
			lines := make([]addonLine, 0, len(all))
			for _, f := range all {
				lines = append(lines, newAddonLine(f))
			}
			if err != nil || asJSON {
				return printJSONUnless(a.Out, lines, err)
			}
			return a.printAddons(lines)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newAddonLine(f gateway.FoundAddon) addonLine {
	line := addonLine{ID: f.ID, Version: f.Version, Summary: f.Summary, Dir: f.Dir, State: f.State, Project: f.FromProject,
		Notes: f.Notes}
	for _, t := range f.Tools {
		line.Tools = append(line.Tools, t.Name)
	}
	if f.Err != nil {
		line.Error = f.Err.Error()
	}
	return line
}

func (a *app) printAddons(lines []addonLine) error {
	if len(lines) == 0 {
		safetext.Fprintf(a.Err, "No addons. docs/addons.md shows how to write one.\n")
		return nil
	}
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	safetext.Fprintf(t, "ADDON\tVERSION\tSTATE\tTOOLS\tSUMMARY\n")
	for _, l := range lines {
		safetext.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", l.ID, l.Version, string(l.State), strings.Join(l.Tools, " "), l.Summary)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, l := range lines {
		if l.Error != "" {
			safetext.Fprintf(a.Err, "%s: %s\n", l.ID, l.Error)
		}
		if l.State == gateway.AddonNeedsApproval {
			safetext.Fprintf(a.Err, "%s: drawbridge addon approve %s\n", l.ID, l.ID)
		}
		for _, note := range l.Notes {
			safetext.Fprintf(a.Err, "%s: %s\n", l.ID, note)
		}
	}
	return nil
}

func (a *app) addonCheckCommand() *cobra.Command {
	var run bool
	cmd := &cobra.Command{
		Use: "check DIR", Short: "Check the manifest of an addon, and say which of its events fire",
		Long: `Check the manifest of an addon in a directory, and say which of its events fire in this version.
With --run its program is started and gets a sample of each event that wants an answer.`,
		Example: "  drawbridge addon check ~/.config/drawbridge/addons/no-push\n  drawbridge addon check . --run",
		Args:    exactArgs(1, "the directory of an addon"),
		RunE: func(cmd *cobra.Command, args []string) error {
			found := addons.Read(filepath.Clean(a.absolutePath(args[0])), false)
			if found.Err != nil {
				return admin.UserError(found.Err.Error())
			}
			a.printFacts(found)
			for _, h := range found.Handlers {
				if !addons.Fires(h.Event) {
					safetext.Fprintf(a.Out, "Note: %s does not fire in this version; it is an event of the agent.\n", h.Event)
				}
			}
			if len(found.Commands) > 0 {
				safetext.Fprintf(a.Out, "Note: commands are not used in this version; they are for the terminal of the agent.\n")
			}
			if !run {
				return nil
			}
			addon, err := addons.New(found, process.Environ(a.Environ, nil, true), slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			return errors.Join(addon.Try(cmd.Context(), a.Out), addon.Close(cmd.Context()))
		},
	}
	cmd.Flags().BoolVar(&run, "run", false, "start the program and send samples")
	return cmd
}

func (a *app) printFacts(f addons.Found) {
	for _, fact := range admin.AddonFacts(f) {
		safetext.Fprintf(a.Out, "%-10s %s\n", fact.Name, fact.Value)
	}
}

func (a *app) addonApproveCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "approve ID", Short: "Let an addon of this directory run",
		Long: `Let an addon of this directory run with the files that it has now. What it may do is shown first.
Its program runs as you, without confinement: read it before you approve it.`,
		Args: exactArgs(1, "the id of an addon"),
		RunE: func(cmd *cobra.Command, args []string) error {
			service := a.adminService()
			found, err := service.FindProjectAddon(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			a.printFacts(found.Found)
			switch {
			case found.State == gateway.AddonActive:
				safetext.Fprintf(a.Out, "It is approved already.\n")
				return nil
			case yes:
			case !a.isInteractive():
				return admin.UserError("nothing was approved: no terminal to ask at (--yes approves what is shown)")
			case !a.confirmDefaultNo(cmd.Context(), "Approve this addon?"):
				return errors.New("nothing was approved")
			}
			if err := service.DecideAddon(cmd.Context(), found, true); err != nil {
				return err
			}
			safetext.Fprintf(a.Out, "✓ Approved %s. A running hub uses it after: drawbridge mcp reload\n", found.ID)
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "approve without a question")
	return cmd
}

func (a *app) addonRejectCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reject ID", Short: "Keep an addon of this directory from running",
		Args: exactArgs(1, "the id of an addon"),
		RunE: func(cmd *cobra.Command, args []string) error {
			service := a.adminService()
			found, err := service.FindProjectAddon(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := service.DecideAddon(cmd.Context(), found, false); err != nil {
				return err
			}
			safetext.Fprintf(a.Out, "✓ Rejected %s\n", found.ID)
			return nil
		},
	}
}
