package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/command"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

func (a *app) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Manage, approve, test and sign in to the configured servers",
		Args:  rejectUnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.mcpAddCommand(), a.mcpGetCommand(), a.mcpListCommand(), a.mcpRemoveCommand(), a.mcpEnableCommand(),
		a.mcpDisableCommand(), a.mcpTestCommand(), a.mcpApproveCommand(), a.mcpRejectCommand(), a.mcpReloadCommand(),
		a.mcpReconnectCommand(), a.mcpNotificationsCommand(), a.mcpResourcesCommand(), a.mcpPromptsCommand())
	cmd.AddCommand(a.newSignInCommands().commands()...)
	return cmd
}

func (a *app) mcpListCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the configured servers with their state; starts no server",
		Example: `  drawbridge mcp list
  drawbridge mcp list --all
  drawbridge mcp list --json | jq '.[] | select(.phase == "faulted")'`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, list, err := a.adminService().ServerStatuses(cmd.Context(), all)
			if err != nil {
				return err
			}
			credentials, err := a.adminService().CredentialStates(cmd.Context(), list.InForce())
			if err != nil {
				return err
			}
			servers := credentials.AnnotateStatuses(rows)
			if asJSON {
				return PrintJSON(a.Out, servers)
			}
			for _, w := range list.Warnings {
				safetext.Fprintln(a.Err, w)
			}
			if list.Disabled+list.Shadowed > 0 {
				safetext.Fprintf(a.Err, "not shown: %d disabled, %d shadowed (drawbridge mcp list --all)\n",
					list.Disabled, list.Shadowed)
			} else if len(rows) == 0 {
				safetext.Fprintln(a.Err, safetext.Shown(noServersText))
			}
			if len(rows) == 0 {
				return nil
			}
			if err := a.printStatuses(a.Out, servers); err != nil {
				return err
			}
			refused := slices.ContainsFunc(servers, func(r admin.ServerWithCredential) bool {
				return r.Phase == drawbridge.Refused
			})
			if refused && len(a.configPaths) > 0 {
				return errAlreadyPrinted // --mcp names the file, and one of its rows cannot be used
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "include disabled and shadowed servers")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) printStatuses(w io.Writer, rows []admin.ServerWithCredential) error {
	paint := newScoreColours(w, a.Env)
	tw := NewTable(w)
	flagged := slices.ContainsFunc(rows, func(r admin.ServerWithCredential) bool { return r.Flagged > 0 })
	header := "NAME\tSTATE\tTOOLS\tPROTOCOL\tTRANSPORT\tSTART\tLISTED\t" + paint.header("TRUST")
	if flagged {
		header += "\tFLAGGED"
	}
	fmt.Fprintln(tw, header+"\tSOURCE")
	for _, r := range rows {
		safetext.Fprintf(tw, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s",
			r.Server, r.Phase, r.Cards, r.Era, r.Transport, formatStartTime(r.StartMillis), formatAgo(r.Listed),
			safetext.Shown(paint.format(r.Trust)))
		if flagged {
			fmt.Fprintf(tw, "\t%d", r.Flagged)
		}
		safetext.Fprintf(tw, "\t%s\n", a.abbreviateHome(r.Source))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		printServerProblems(w, r)
	}
	return nil
}

// printServerProblems prints the problems and notes of a server. It prints nothing if there are none.
func printServerProblems(w io.Writer, r admin.ServerWithCredential) {
	if r.Phase == drawbridge.Idle || r.Phase == drawbridge.Ready || r.Phase == drawbridge.NeedsSignIn {
		r.Fault = "" // the fault is over, or the missing sign-in explains it
	}
	var signIn strings.Builder
	printSignInState(&signIn, r)
	if r.Reason == "" && r.Fault == "" && r.Junk+r.Flagged+r.Unscanned == 0 && r.Confined == "" &&
		len(r.Notes) == 0 && signIn.Len() == 0 {
		return
	}
	safetext.Fprintf(w, "\n%s:\n%s", r.Server, safetext.Shown(signIn.String()))
	if r.Reason != "" {
		safetext.Fprintf(w, "  %s\n", r.Reason)
	}
	for _, note := range r.Notes {
		safetext.Fprintf(w, "  %s\n", note)
	}
	printConfined(w, r.Confined)
	if r.Fault != "" {
		safetext.Fprintf(w, "  last fault: %s\n", safetext.Shown(safetext.Text(r.Fault)))
		for _, line := range r.Stderr {
			safetext.Fprintf(w, "  stderr| %s\n", line)
		}
	}
	if r.Flagged > 0 {
		safetext.Fprintf(w, "  %s passed on matched rules of the shield (drawbridge shield results)\n",
			formatCount(r.Flagged, "result"))
	}
	if r.Unscanned > 0 {
		safetext.Fprintf(w, "  %s passed on not examined: too many at once, too large, or the process ended\n",
			formatCount(r.Unscanned, "result"))
	}
	if r.Junk > 0 {
		safetext.Fprintf(w, "  %d lines on its standard output were no messages and were dropped\n", r.Junk)
	}
}

func printConfined(w io.Writer, from string) {
	if from != "" {
		safetext.Fprintf(w, "  confined from %s\n", from)
	}
}

func (a *app) mcpTestCommand() *cobra.Command {
	var asJSON, own bool
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Start one server, list its tools and print the result",
		Long: `Start one server, list its tools and print the result. Where a hub runs, it starts the server
unless the server runs already; with --own a second copy is started and ended.`,
		Example: "  drawbridge mcp test github",
		Args:    exactArgs(1, "the name of one server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.testServer(cmd.Context(), drawbridge.ServerID(args[0]), own, asJSON)
		},
	}
	addOwnFlag(cmd, &own)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// errNeedsSignIn wraps errAlreadyPrinted. It means that the server requires a sign-in.
var errNeedsSignIn = fmt.Errorf("%w", errAlreadyPrinted)

func (a *app) testServer(ctx context.Context, id drawbridge.ServerID, own, asJSON bool) error {
	return a.testServerAndPrint(ctx, id, own, func(row config.Server, l drawbridge.Listing, s drawbridge.ServerStatus, fault error) error {
		if asJSON {
			return PrintJSON(a.Out, s)
		}
		return a.printTestResult(row, l, s, fault)
	})
}

// testServerAndPrint starts a server and calls print with the result. The error is errNeedsSignIn if the server requires a
// sign-in, and errAlreadyPrinted if it does not work.
func (a *app) testServerAndPrint(ctx context.Context, id drawbridge.ServerID, own bool,
	print func(config.Server, drawbridge.Listing, drawbridge.ServerStatus, error) error) error {
	r := a.adminService()
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return err
	}
	if err := r.CheckStartable(roll, id); err != nil {
		return err
	}
	var found command.MountResult
	err = a.withRequests(ctx, own, func(ctx context.Context, r requester) error {
		found, err = answerRequest[command.MountResult](ctx, r, command.MethodMount, command.ServerParams{Server: id})
		return err
	})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil { // the hub continues the start
		found, err = command.MountResult{Status: drawbridge.ServerStatus{Server: id}, Fault: command.EncodeFault(err)}, nil
	}
	if err != nil {
		return err
	}
	listing, status, fault := found.Listing, found.Status, found.Fault.Decode()
	if fault != nil {
		status.Fault = fault.Error()
	}
	if found.SignIn != "" && admin.IsAuthFailure(fault) {
		status.Phase, status.SignIn = drawbridge.NeedsSignIn, found.SignIn // regardless of the last phase
	}
	row, _ := roll.Lookup(id)
	err = print(row, listing, status, fault)
	switch {
	case err == nil && fault != nil && status.Phase == drawbridge.NeedsSignIn:
		return errNeedsSignIn
	case err == nil && fault != nil:
		return errAlreadyPrinted
	}
	return err
}

func (a *app) printTestResult(row config.Server, l drawbridge.Listing, s drawbridge.ServerStatus, fault error) error {
	if fault != nil {
		safetext.Fprintf(a.Out, "✗ Failed to connect to %q: %s\n", s.Server,
			safetext.Shown(safetext.Text(fault.Error())))
		for _, line := range s.Stderr {
			safetext.Fprintf(a.Out, "  stderr| %s\n", line)
		}
		if s.Phase == drawbridge.NeedsSignIn {
			safetext.Fprintf(a.Out, "Server requires OAuth authentication. Run drawbridge mcp auth %s\n", s.Server)
			printSignInURL(a.Out, s.Server, s.SignIn, false)
			return nil
		}
		if admin.IsAuthFailure(fault) {
			safetext.Fprintln(a.Out, admin.AuthRequiredText(row))
		}
		if tip := admin.FaultTip(fault); tip != "" {
			safetext.Fprintln(a.Out, tip)
		}
		a.printSearchedPath(row)
		return nil
	}
	var info struct{ Name, Version string }
	_ = json.Unmarshal(l.Info, &info) // a server need not send its name
	safetext.Fprintf(a.Out, "✓ %s: %s %s, %s protocol, %d tools, %d prompts, %d resources, %d templates, in %s\n",
		s.Server, info.Name, info.Version, l.Era, len(l.Tools), len(l.Prompts), len(l.Resources), len(l.Templates),
		formatStartTime(s.StartMillis))
	if n := len(l.Tools); n > 0 && n <= 10 {
		var tools []string
		for _, t := range l.Tools {
			var tool struct{ Name string }
			_ = json.Unmarshal(t, &tool)
			tools = append(tools, safetext.Line(tool.Name))
		}
		safetext.Fprintf(a.Out, "  %s\n", strings.Join(tools, ", "))
	}
	if s.Trust != nil && s.Trust.Score < 1 {
		safetext.Fprintf(a.Out, "  %s (drawbridge shield trust %s)\n", s.Trust, s.Server)
	}
	printConfined(a.Out, s.Confined)
	for _, note := range s.Notes {
		safetext.Fprintf(a.Out, "  %s\n", note)
	}
	for _, line := range s.Stderr[max(0, len(s.Stderr)-maxSuccessStderr):] {
		safetext.Fprintf(a.Out, "  stderr| %s\n", line)
	}
	return nil
}

// maxSuccessStderr is how many of the last lines of standard error are printed for a server that started. A server may
// write there that it cannot work, for example because a key is missing.
const maxSuccessStderr = 3

// printSearchedPath prints, with --verbose, the PATH in which a server's command was not found.
func (a *app) printSearchedPath(row config.Server) {
	_, _, err := gateway.ResolveProcess(row, config.Settings{}, a.Environ)
	if missing, ok := errors.AsType[*process.CommandNotFoundError](err); ok && a.verbose {
		safetext.Fprintf(a.Out, "its PATH is %s\n", missing.Path)
	}
}

// withRunningGateway calls work while the gateway runs, and stops the gateway when work has returned.
func (a *app) withRunningGateway(ctx context.Context, g *gateway.Gateway, work func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	group.Go(func() error { return ignoreCanceled(g.Run(ctx)) })
	group.Go(func() error {
		defer stop()
		return work(ctx)
	})
	return group.Wait()
}
