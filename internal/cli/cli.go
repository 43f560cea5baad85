// Package cli is the program as a person types it: commands, their help, what they print and how they exit.
//
// It promises that every command's result goes to standard output and everything else to standard error, that --json
// prints one JSON document a command, that an error names the thing and the next step, and that the exit code is 0 when
// what was asked for was done, 1 when it was not, 2 when the command line or the configuration was wrong, and 130 when Ctrl-C broke it
// off; a command with a code of its own says so in its help.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/terminal"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/stdin"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/secrets"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// A Process is what a command needs of the process it runs in.
type Process struct {
	In       io.Reader
	Out, Err io.Writer
	// Env looks a variable up, as os.LookupEnv does.
	Env func(string) (string, bool)
	// Environ is the whole environment, as os.Environ gives it.
	Environ []string
	// Dir is the working directory.
	Dir string
	// Host is the name of the program that started this one; empty where that is not known.
	Host string
	// Self is the absolute path by which clients are to start this program.
	Self string
}

// OS is the process as the operating system started it.
func OS() Process {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	return Process{In: stdin.Polled(os.Stdin, os.Stdout), Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, Environ: os.Environ(), Dir: dir, Host: parent(), Self: self()}
}

// Main runs the command line args, without the program's name, and gives the exit code.
func Main(ctx context.Context, args []string, p Process) int {
	cmd := Command(p)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	err = manners.Interrupted(ctx, err)
	code := exitCode(err)
	if text := err.Error(); text != "" {
		fmt.Fprintln(p.Err, "drawbridge:", safetext.Text(text))
	}
	return code
}

// usageError is a mistake on the command line: exit code 2.
type usageError struct{ error }

// quiet ends a command with exit code 1 and says nothing more: what there is to say was printed.
var errQuiet = errors.New("")

func exitCode(err error) int {
	if own, ok := errors.AsType[manners.Exit](err); ok {
		return int(own)
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[roster.Mistake](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[drawbridge.BadName](err); ok {
		return exitUsage
	}
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Code == drawbridge.InvalidInput {
		return exitUsage
	}
	return exitFailed
}

// Command is the tree of commands, for Main and for tests that read its names and flags.
func Command(p Process) *cobra.Command {
	a := &app{Process: p, screen: terminal.NewScreen(p.Err)}
	root := &cobra.Command{
		Use:   "drawbridge",
		Short: "One guarded bridge between agents and every tool they may use",
		Long: `Drawbridge mounts the MCP servers of your configuration and serves them all as one
MCP server, to every client and in both generations of the protocol.

Configuration is read from .drawbridge/mcp.json in the working directory, then from
~/.config/drawbridge/mcp.json; --mcp names files instead.`,
		Example: `  drawbridge import                         take over the servers you already have
  drawbridge connect cursor                 put Drawbridge into a client
  drawbridge serve                          serve on standard input and output
  drawbridge serve --http 127.0.0.1:0       serve over HTTP, on a free port
  drawbridge mcp list                       how each configured server is
  drawbridge tools call fs__read_text_file path=README.md`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see %q)", err, cmd.CommandPath()+" --help")}
	})
	root.SetHelpTemplate(root.HelpTemplate() + "{{if not .HasParent}}\nExit codes: 0 done, 1 not done, 2 the command line or the configuration is wrong,\n130 interrupted.\n{{end}}")
	flags := root.PersistentFlags()
	flags.StringArrayVar(&a.paths, "mcp", nil, "configuration `PATH` (a file or a directory) instead of the usual ones; repeats, and splits on commas")
	flags.StringVar(&a.store, "store", "", "`PATH` of the store, or a postgres:// URL (default ~/.local/state/drawbridge/drawbridge.db)")
	flags.StringVar(&a.naming, "naming", "", "how cards are named: `qualified` (server__tool), mcp or bare")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log what happens to standard error")
	root.AddCommand(a.serveCommand(), a.mcpCommand(), a.toolsCommand(), a.ledgerCommand(), a.versionCommand())
	root.AddCommand(a.importCommand(), a.connectCommand(), a.disconnectCommand(), a.doctorCommand(), a.psCommand(), a.logsCommand(), a.clientCommand(), a.secretCommand(), a.shieldCommand(), a.lockCommand(), a.auditCommand(), a.policyCommand(), a.askCommand(), a.indexCommand())
	return root
}

// unknownCommand refuses words after a command that only has subcommands, and names the nearest.
func unknownCommand(cmd *cobra.Command, args []string) error {
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

// exactly checks the number of words that a command takes.
func exactly(n int, what string) cobra.PositionalArgs { return manners.Exactly(n, what) }

// app is one run of the program: its process and the flags that all commands share.
type app struct {
	Process
	screen  *terminal.Screen
	opened  *secrets.Vault // see vault
	paths   []string
	store   string
	naming  string
	verbose bool
}

// logger writes to standard error what is at least that bad; all of it where the person asked for that.
func (a *app) logger(level slog.Level) *slog.Logger {
	if a.verbose {
		level = slog.LevelDebug
	}
	o := &slog.HandlerOptions{Level: level}
	if isTerminal(a.Err) {
		o.ReplaceAttr = clockOnly
	}
	return slog.New(slog.NewTextHandler(safetext.NewWriter(a.screen), o))
}

// clockOnly shortens a log line's time for somebody who watches.
func clockOnly(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && attr.Key == slog.TimeKey {
		return slog.String(attr.Key, attr.Value.Time().Format(time.TimeOnly))
	}
	return attr
}

// version is what the build says of itself.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// gateway opens the whole system, with what the command changes.
func (a *app) gateway(ctx context.Context, change func(*gateway.Config)) (*gateway.Gateway, error) {
	cfg := a.config()
	change(&cfg)
	return gateway.Open(ctx, cfg)
}

// config is what the flags and the process come to.
func (a *app) config() gateway.Config {
	return gateway.Config{
		Paths: a.paths, Dir: a.Dir, LookupEnv: a.Env, Store: a.store,
		Naming: deck.Naming(a.naming), Logger: a.logger(slog.LevelWarn), Version: version(),
	}
}

// oneOff opens the whole system for a command that starts only the servers it needs, and that tells itself how they were.
func (a *app) oneOff(ctx context.Context) (*gateway.Gateway, error) {
	return a.gateway(ctx, func(c *gateway.Config) {
		c.OnDemand = true
		c.Logger = a.logger(slog.LevelError)
	})
}

// configuration reads what is configured, with what the person approved of it, and starts nothing.
func (a *app) configuration(ctx context.Context) (config.Set, error) {
	roll, err := a.roster().Read(ctx)
	return roll.Set, err
}

// places says where configuration is looked for.
func (a *app) places() config.Options {
	return config.Options{Paths: a.paths, Dir: a.Dir, LookupEnv: a.Env, Kept: a.keeper().Lookup}
}

// openStore opens the store that the gateway would use, for a command that only reads: where there is none, none is made.
func (a *app) openStore(ctx context.Context, set config.Set) (*store.DB, error) {
	location, err := gateway.StoreLocation(a.store, set.Settings, a.Env)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(location); errors.Is(err, fs.ErrNotExist) && !strings.Contains(location, "://") {
		return nil, &noStoreError{location}
	}
	return store.Open(ctx, location, store.Options{})
}

// A noStoreError is a store that nothing has made yet.
type noStoreError struct{ location string }

func (e *noStoreError) Error() string {
	return fmt.Sprintf("there is no store at %s yet (drawbridge serve makes it; --store names another)", e.location)
}

// notes are what a person should know of the configuration: its warnings, and the rows that stay off.
func notes(set config.Set) (all []string) {
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

// isTerminal says whether w is a terminal that a person looks at.
func isTerminal(w io.Writer) bool { return terminal.Is(w) }

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := safetext.Fprintln(a.Out, "drawbridge", version())
			return err
		},
	}
}
