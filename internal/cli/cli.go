// Package cli is the command line of Drawbridge: commands, flags, help, output and exit codes. Packages internal/admin
// and gateway do the work: a command only parses flags, calls them and prints the result.
//
// Results go to standard output, and all other text goes to standard error. With --json, a command prints one JSON
// document. An error names its subject and the next step. The exit code is 0 for success and 1 for failure. It is 2 for
// a wrong command line or configuration, and 130 after Ctrl-C. The help of a command names its other codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// The exit codes that all commands share.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// A Process describes the process that a command runs in.
type Process struct {
	In       io.Reader
	Out, Err io.Writer
	// Env looks up an environment variable, as os.LookupEnv does.
	Env func(string) (string, bool)
	// Environ is the whole environment, as os.Environ returns it.
	Environ []string
	// Dir is the working directory.
	Dir string
	// Host is the name of the program that started this one; empty if it is unknown.
	Host string
	// Self is the absolute path with which clients start this program.
	Self string
}

// OSProcess returns the Process that describes this process of the operating system.
func OSProcess() Process {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	return Process{In: process.PolledStdin(os.Stdin, os.Stdout), Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv,
		Environ: os.Environ(), Dir: dir, Host: parentProgram(), Self: executablePath()}
}

// Main runs the command line args, without the program's name, and returns the exit code.
func Main(ctx context.Context, args []string, p Process) int {
	cmd := NewRootCommand(p)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	err = interruptedError(ctx, err)
	code := exitCode(err)
	if text := err.Error(); text != "" {
		fmt.Fprintln(p.Err, "drawbridge:", safetext.Text(text))
	}
	return code
}

// A usageError is a mistake on the command line. The exit code is 2.
type usageError struct{ error }

// errAlreadyPrinted is the error of a command that has printed its problem already. The exit code is 1, and nothing
// more is printed.
var errAlreadyPrinted = errors.New("")

func exitCode(err error) int {
	if own, ok := errors.AsType[ExitError](err); ok {
		return int(own)
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[admin.UserError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[drawbridge.NameError](err); ok {
		return exitUsage
	}
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Code == drawbridge.InvalidInput {
		return exitUsage
	}
	return exitFailed
}

// NewRootCommand returns the command "drawbridge" with all its subcommands. Main runs it; tests read its names and
// flags.
func NewRootCommand(p Process) *cobra.Command {
	a := &app{Process: p, statusLine: NewStatusLineWriter(p.Err), vault: vaultsOf(p)}
	var session agentFlags
	root := &cobra.Command{
		Use:   "drawbridge",
		Short: "One guarded gateway between agents and the tools they may use",
		Long: `Drawbridge mounts the MCP servers of your configuration and serves them all as one
MCP server. It speaks MCP 2024-11-05 to 2025-11-25 (sessions) and 2026-07-28 (stateless).

Configuration is read from .drawbridge/mcp.json in the working directory, then from
~/.config/drawbridge/mcp.json; --mcp names files instead.`,
		Example: `  drawbridge setup                          copy the servers you have, try them, connect a client
  drawbridge import                         copy the servers you already have
  drawbridge connect cursor                 put Drawbridge into a client
  drawbridge serve                          serve on standard input and output
  drawbridge serve --http 127.0.0.1:0       serve over HTTP, on a free port
  drawbridge mcp list                       show the state of each configured server
  drawbridge tools call fs__read_text_file path=README.md
  drawbridge workspace init                 keep pages that agents and you write`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       buildVersion(),
		Args:          cobra.ArbitraryArgs,
		RunE:          func(cmd *cobra.Command, args []string) error { return a.runRoot(cmd, args, session) },
	}
	addAgentFlags(root, &session)
	root.SetVersionTemplate("drawbridge {{.Version}}\n")
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see %q)", err, cmd.CommandPath()+" --help")}
	})
	root.SetHelpTemplate(root.HelpTemplate() +
		"{{if not .HasParent}}\nExit codes: 0 done, 1 not done, 2 the command line or the configuration is wrong,\n130 interrupted.\n{{end}}")
	flags := root.PersistentFlags()
	flags.StringArrayVar(&a.configPaths, "mcp", nil,
		"configuration `PATH` (a file or a directory) instead of the usual ones; may be repeated, or a list with commas")
	flags.StringVar(&a.storeLocation, "store", "",
		"`PATH` of the store, or a postgres:// URL (default ~/.local/state/drawbridge/drawbridge.db)")
	flags.StringVar(&a.naming, "naming", "", "how tools are named: `qualified` (server__tool), mcp or bare")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log what happens to standard error")
	root.AddCommand(a.serveCommand(), a.mcpCommand(), a.toolsCommand(), a.runCommand(), a.addonCommand(), a.undoCommand(), a.ledgerCommand(), a.versionCommand())
	root.AddCommand(a.setupCommand(), a.importCommand(), a.connectCommand(), a.disconnectCommand(),
		a.withSupportTable(a.doctorCommand()), a.psCommand(), a.logsCommand(), a.clientCommand(), a.secretCommand(),
		a.shieldCommand(), a.lockCommand(), a.auditCommand(), a.policyCommand(), a.askCommand(), a.indexCommand(),
		a.newModelsCommand().command(), a.acpCommand())
	root.AddCommand(a.backupCommand(), a.restoreCommand(), a.reportCommand(), a.workspaceCommand(), a.reviewCommand(), a.whyCommand())
	a.addCompletions(root)
	return root
}

// rejectUnknownCommand checks the arguments of a command that only has subcommands. It returns an error if there are
// any, because they name no subcommand. The error suggests the most similar subcommand.
func rejectUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	for cmd.SuggestionsMinimumDistance = 1; cmd.SuggestionsMinimumDistance <= 2; cmd.SuggestionsMinimumDistance++ {
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf(": did you mean %q?", near[0])
			break
		}
	}
	return usageError{fmt.Errorf("%s (see %q)", text, cmd.CommandPath()+" --help")}
}

// An app is the state of one run of the program: its process and the flags that all commands share.
type app struct {
	Process
	statusLine    *StatusLineWriter
	vault         *vaultOpener     // copies of an app share it
	session       *terminalSession // nil outside of a session at the terminal
	configPaths   []string
	storeLocation string
	naming        string
	verbose       bool
}

// newLogger returns a logger that writes messages of at least this level to standard error. With --verbose it writes
// messages of all levels.
func (a *app) newLogger(level slog.Level) *slog.Logger {
	if a.verbose {
		level = slog.LevelDebug
	}
	o := &slog.HandlerOptions{Level: level}
	if IsTerminal(a.Err) {
		o.ReplaceAttr = shortenLogTime
	}
	return slog.New(slog.NewTextHandler(safetext.NewWriter(a.statusLine), o))
}

// shortenLogTime removes the date from the time of a log line; it is the handler's ReplaceAttr function for a terminal.
func shortenLogTime(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && attr.Key == slog.TimeKey {
		return slog.String(attr.Key, attr.Value.Time().Format(time.TimeOnly))
	}
	return attr
}

// openGateway opens the gateway; change may adjust its configuration for the command.
func (a *app) openGateway(ctx context.Context, change func(*gateway.Config)) (*gateway.Gateway, error) {
	cfg := a.gatewayConfig()
	change(&cfg)
	return gateway.Open(ctx, cfg)
}

// gatewayConfig returns the configuration of the gateway from the flags and the process.
func (a *app) gatewayConfig() gateway.Config {
	return gateway.Config{
		Paths: a.configPaths, Dir: a.Dir, LookupEnv: a.Env, Store: a.storeLocation,
		Naming: deck.NamingStyle(a.naming), Logger: a.newLogger(slog.LevelWarn), Version: buildVersion(),
	}
}

// openOnDemandGateway opens a gateway that starts a server only when the command needs it. The gateway logs only
// errors, because the command itself prints the state of the servers. While a hub runs, the gateway does not change the
// statuses of servers in the store, because the hub stores them.
func (a *app) openOnDemandGateway(ctx context.Context) (*gateway.Gateway, error) {
	return a.openGateway(ctx, func(c *gateway.Config) {
		c.OnDemand = true
		c.LeaveStatus = a.hubRuns()
		c.Logger = a.newLogger(slog.LevelError)
	})
}

// hubRuns reports whether a hub runs on the store of this process.
func (a *app) hubRuns() bool {
	lock, err := hub.ReadLockState(a.hubOptions())
	return err == nil && lock.Held
}

// readConfig reads the configuration and the person's approvals. It starts no server.
func (a *app) readConfig(ctx context.Context) (config.Configuration, error) {
	roll, err := a.adminService().ReadServers(ctx)
	return roll.Configuration, err
}

// configOptions returns the options that locate the configuration files.
func (a *app) configOptions() config.Options {
	return config.Options{Paths: a.configPaths, Dir: a.Dir, LookupEnv: a.Env, KeychainValue: a.vaultSecrets().Lookup}
}

// configNotes returns the warnings of the configuration for a person. It adds a text for each server that is refused or
// needs approval.
func configNotes(set config.Configuration) (all []string) {
	for _, w := range set.Warnings {
		all = append(all, w.String())
	}
	for _, s := range set.Servers {
		switch s.Phase {
		case drawbridge.NeedsApproval, drawbridge.Refused:
			all = append(all, fmt.Sprintf("%s: %q is off: %s", s.Origin, s.ID, s.Reason))
		}
	}
	return all
}
