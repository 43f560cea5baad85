package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/spf13/cobra"
)

// lockCommands implements the command "lock" and its subcommands.
type lockCommands struct {
	Out, Err io.Writer
	// Admin returns the service that reads and writes the lockfile.
	Admin func() *admin.Service
	// WithGateway runs work with a gateway that starts servers only when they are needed.
	WithGateway admin.GatewayRunner
	// StatusLine is the status line of the terminal. It shows which server is being listed.
	StatusLine *StatusLineWriter
	// ErrAlreadyPrinted is the error of a command that failed and has printed the reason.
	ErrAlreadyPrinted error
}

// command returns the command "lock" with its subcommands.
func (d lockCommands) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Keep the allowed definitions of servers in a file under version control",
		Long: `Keep the allowed definitions of servers in a file under version control: drawbridge.lock beside your
drawbridge.toml, or the file that "lock_file" of its [mcp] names. If it exists, a tool with another definition is
held. It has a line for each tool, prompt and resource template, and one for the instructions of each
server. It covers your own servers, and none of a project directory.`,
		Example: `  drawbridge lock write
  drawbridge lock verify                                                 exit code 1 where something differs
  drawbridge lock verify --mcp servers.json --file drawbridge.lock       in CI`,
	}
	var file string
	cmd.PersistentFlags().StringVar(&file, "file", "", "`PATH` of another lockfile")
	cmd.AddCommand(d.writeCommand(&file), d.verifyCommand(&file), d.showCommand(&file))
	return cmd
}

// showProgress shows in the status line of a terminal which server is being listed.
func (d lockCommands) showProgress(server drawbridge.ServerID, done, all int) {
	if IsTerminal(d.Err) {
		d.StatusLine.SetStatus(safetext.Sprintf("listing %s  %d of %d", server, done+1, all))
	}
}

func (d lockCommands) writeCommand(file *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "write [SERVER...]",
		Short: "Write the pinned definitions of servers to the lockfile",
		Long: `Write the pinned definitions of servers to the lockfile: of all your own servers, or of those named. The
command starts them. For a changed tool that waits, it writes the pinned definition and not the new one. Lines of
other servers stay, and so do those of a server that cannot be listed: it is named, and the exit code is 1. If no
server can be listed, nothing is written.`,
		Example: "  drawbridge lock write\n  drawbridge lock write github",
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := d.Admin().WriteLockfile(cmd.Context(), d.WithGateway,
				admin.LockQuery{File: *file, Servers: args, Progress: d.showProgress})
			d.StatusLine.SetStatus("")
			if asJSON && err == nil {
				err = PrintJSON(d.Out, report)
			} else if !asJSON {
				d.printUnlisted(report.Unlisted)
			}
			if err != nil {
				return err
			}
			return d.printLockReport(report, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// printUnlisted prints the servers that could not be listed, or were listed only in part. The lockfile keeps its lines
// for the missing parts.
func (d lockCommands) printUnlisted(all []admin.UnlistedServer) {
	for _, u := range all {
		text := "could not be listed, so its lines stay as they were"
		if u.Incomplete {
			text = "the listing is incomplete, so the lines of its missing parts stay as they were"
		}
		safetext.Fprintf(d.Err, "✗ %s: %s: %s\n", safetext.Line(string(u.Server)), text, safetext.Line(u.Why))
	}
}

// printLockReport prints the result of writing the lockfile, unless asJSON is set. It returns ErrAlreadyPrinted if a
// server or a definition could not be written to the lockfile.
func (d lockCommands) printLockReport(r admin.LockReport, asJSON bool) error {
	if !asJSON {
		d.printLockCounts(r)
	}
	if len(r.Unlisted)+len(r.LeftOut) > 0 {
		return d.ErrAlreadyPrinted
	}
	return nil
}

func (d lockCommands) printLockCounts(r admin.LockReport) {
	for _, l := range r.LeftOut {
		safetext.Fprintf(d.Err, "✗ %s %s: two readers may read two things in its definition, so it cannot be locked\n",
			l.Server, safetext.Exact(shield.PinLabel(l.Part, l.Tool)))
	}
	if r.Waiting > 0 {
		safetext.Fprintf(d.Err,
			"%d definitions changed and wait; the file has what was pinned (drawbridge shield held)\n", r.Waiting)
	}
	if r.Written {
		safetext.Fprintf(d.Out, "✓ %d definitions of %d servers in %s\n", r.Definitions, r.Servers, r.File)
	} else {
		safetext.Fprintf(d.Err, "Nothing was written to %s.\n", r.File)
	}
	var names []string
	for _, u := range r.Unlisted {
		names = append(names, safetext.Line(string(u.Server)))
	}
	if len(names) > 0 {
		safetext.Fprintf(d.Err,
			"drawbridge mcp test NAME shows what is wrong; once it is mended: drawbridge lock write %s\n",
			strings.Join(names, " "))
	}
}

func (d lockCommands) showCommand(file *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the lockfile",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			all, err := d.Admin().LockedDefinitions(*file)
			switch {
			case err != nil:
				return err
			case asJSON:
				return PrintJSON(d.Out, all)
			}
			tw := NewTable(d.Out)
			fmt.Fprintln(tw, "SERVER\tTOOL\tDEFINITION")
			for _, t := range all {
				safetext.Fprintf(tw, "%s\t%s\t%s\n", t.Server, safetext.Exact(shield.PinLabel(t.Part, t.Tool)), t.Hash)
			}
			return tw.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, definitions whole")
	return cmd
}
