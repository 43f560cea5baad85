package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/undo"
)

func (a *app) undoCommand() *cobra.Command {
	var run string
	var list, dryRun, yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "undo",
		Short: "Take back the changes of files that a run made with Drawbridge's own tools",
		Long: `Take back the changes that the last run, or the one of --run, made to files with Drawbridge's own
tools. A run is a session of a client, or one call of the command line. A file that was changed
since is left alone. What servers changed, and programs that were run, cannot be taken back.
The undo is a change as well: a second undo takes it back.`,
		Example: "  drawbridge undo --list\n  drawbridge undo --dry-run\n  drawbridge undo --run 3fa9c1d2",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			service := a.adminService()
			if list {
				runs, err := service.UndoRuns(cmd.Context())
				if err != nil || asJSON {
					return printJSONUnless(a.Out, runs, err)
				}
				return a.printUndoRuns(runs)
			}
			plan, err := service.PlanUndo(cmd.Context(), run)
			if err != nil || dryRun && asJSON {
				return printJSONUnless(a.Out, plan, err)
			}
			if !asJSON {
				a.printUndoPlan(plan)
			}
			switch {
			case dryRun || !restores(plan.Steps):
				return refusedError(plan.Steps)
			case yes:
			case !a.isInteractive():
				return admin.UserError("nothing was changed: no terminal to ask at (--yes restores the files shown)")
			case !a.confirmDefaultNo(cmd.Context(), "Restore these files?"):
				return errors.New("nothing was changed")
			}
			done, err := service.Undo(cmd.Context(), plan)
			if err != nil || asJSON {
				return printJSONUnless(a.Out, done, err)
			}
			safetext.Fprintf(a.Out, "✓ Took back run %s\n", done.Run.ID)
			return refusedError(done.Steps)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&run, "run", "", "the `ID` of the run, or its beginning; the last one if absent")
	flags.BoolVar(&list, "list", false, "list the runs whose changes are kept")
	flags.BoolVar(&dryRun, "dry-run", false, "show what would be done, and change nothing")
	flags.BoolVarP(&yes, "yes", "y", false, "restore without a question")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printJSONUnless prints a value as JSON. If err is not nil, it only returns err.
func printJSONUnless(w io.Writer, value any, err error) error {
	if err != nil {
		return err
	}
	return PrintJSON(w, value)
}

// restores reports whether any step restores or deletes a file.
func restores(steps []undo.Step) bool {
	for _, s := range steps {
		if s.Action == undo.Restore || s.Action == undo.Delete {
			return true
		}
	}
	return false
}

// refusedError returns errAlreadyPrinted if any step refuses to restore a file.
func refusedError(steps []undo.Step) error {
	for _, s := range steps {
		if s.Action == undo.Refuse {
			return errAlreadyPrinted
		}
	}
	return nil
}

func (a *app) printUndoRuns(runs []undo.Run) error {
	if len(runs) == 0 {
		safetext.Fprintln(a.Err, "no tool of Drawbridge changed a file yet")
		return nil
	}
	tw := NewTable(a.Out)
	fmt.Fprintln(tw, "RUN\tLAST CHANGE\tBY\tFILES\tDIRECTORY")
	for _, r := range runs {
		safetext.Fprintf(tw, "%s\t%s\t%s\t%d\t%s\n", r.ID, formatAgo(r.Last),
			truncateEscaped(fmt.Sprintf("%s (%s)", r.Caller, r.Client), 40), len(r.Files), a.abbreviateHome(r.Dir))
	}
	return tw.Flush()
}

// printUndoPlan prints the run whose changes are undone and the action for each of its files. It also prints the later
// calls of the same client that cannot be undone.
func (a *app) printUndoPlan(plan admin.UndoResult) {
	safetext.Fprintf(a.Err, "run %s, by %s (%s), %s\n", plan.Run.ID, plan.Run.Caller, plan.Run.Client, formatAgo(plan.Run.Last))
	for _, s := range plan.Steps {
		words := map[undo.Action]string{undo.Restore: "restore", undo.Delete: "delete", undo.Unchanged: "nothing to do",
			undo.Refuse: "leave alone"}[s.Action]
		if s.Reason != "" {
			words += ": " + s.Reason
		}
		safetext.Fprintf(a.Err, "  %s  %s\n", a.abbreviateHome(filepath.Clean(s.Path)), words)
	}
	if len(plan.Others) > 0 {
		names := make([]string, len(plan.Others))
		for i, o := range plan.Others {
			names[i] = fmt.Sprintf("%s (%d)", o.Tool, o.Count)
		}
		safetext.Fprintf(a.Err, "Since then the same client also called, and this is not taken back: %s\n", strings.Join(names, ", "))
	}
}
