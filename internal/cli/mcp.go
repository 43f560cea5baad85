package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/login"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/shield"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

func (a *app) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "See, add, change, approve and test the configured servers, and sign in at them",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.mcpAddCommand(), a.mcpGetCommand(), a.mcpListCommand(), a.mcpRemoveCommand(), a.mcpEnableCommand(),
		a.mcpDisableCommand(), a.mcpTestCommand(), a.mcpApproveCommand(), a.mcpRejectCommand(), a.mcpReloadCommand())
	cmd.AddCommand(a.login().Commands()...)
	return cmd
}

func (a *app) mcpListCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show each configured server and how it is; starts nothing",
		Example: `  drawbridge mcp list
  drawbridge mcp list --all
  drawbridge mcp list --json | jq '.[] | select(.phase == "faulted")'`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, list, err := a.statuses(cmd.Context(), all)
			if err != nil {
				return err
			}
			credentials, err := a.credentials(rowsOf(list))
			if err != nil {
				return err
			}
			servers := credentials.List(rows)
			if asJSON {
				return printJSON(a.Out, servers)
			}
			for _, w := range list.Warnings {
				safetext.Fprintln(a.Err, w)
			}
			if list.Disabled+list.Shadowed > 0 {
				safetext.Fprintf(a.Err, "not shown: %d disabled, %d shadowed (drawbridge mcp list --all)\n", list.Disabled, list.Shadowed)
			} else if len(rows) == 0 {
				safetext.Fprintln(a.Err, noServers)
			}
			if len(rows) == 0 {
				return nil
			}
			return a.printStatuses(a.Out, servers)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show also what is disabled, and what an earlier definition shadows")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// statuses joins what is configured with what the store remembers of it.
func (a *app) statuses(ctx context.Context, all bool) ([]drawbridge.Status, roster.List, error) {
	list, err := a.roster().List(ctx, all)
	if err != nil {
		return nil, list, err
	}
	mounts, trust, err := a.remembered(ctx, config.Set{Settings: list.Settings, Servers: rowsOf(list)})
	if err != nil {
		return nil, list, err
	}
	rows := make([]drawbridge.Status, 0, len(list.Entries))
	for _, e := range list.Entries {
		var m store.Mount
		if !e.Shadowed {
			m = mounts[e.Server.Hash]
		}
		row := statusOf(e.Server, m)
		if e.Shadowed {
			row.Phase, row.Reason = e.Phase, e.Reason
		} else if e.Server.Phase == drawbridge.Idle {
			row = row.Judged(shield.TrustOf(trust, e.Server))
		}
		rows = append(rows, row)
	}
	return rows, list, nil
}

// rowsOf gives the rows of a list that count.
func rowsOf(list roster.List) (rows []config.Server) {
	for _, e := range list.Entries {
		if !e.Shadowed {
			rows = append(rows, e.Server)
		}
	}
	return rows
}

// remembered is what the store remembers of servers, and how far they are trusted: nothing where there is no store yet.
func (a *app) remembered(ctx context.Context, set config.Set) (map[string]store.Mount, *gateway.TrustBook, error) {
	db, err := a.openStore(ctx, set)
	if _, none := errors.AsType[*noStoreError](err); none {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer db.Close()
	trust, err := gateway.ReadTrust(ctx, db, set.Settings)
	if err != nil {
		return nil, nil, err
	}
	mounts, err := db.MountsOf(ctx, config.Hashes(set.Servers))
	return mounts, trust, err
}

// statusOf is the status of a configured row: what a living process last said of it, else what is stored.
func statusOf(s config.Server, m store.Mount) drawbridge.Status {
	row := drawbridge.Status{Server: s.ID, Phase: s.Phase, Transport: s.Transport(), Era: drawbridge.Era(0).String()}
	if m.Status != nil {
		row = *m.Status
		if !alive(m.Owner) {
			row.Phase, row.SignIn = afterwards(row), "" // nobody waits there any more
		}
	}
	if m.Listing != nil {
		row.Era, row.Listed = m.Listing.Era.String(), m.Listing.At
		row.Cards, row.Prompts = len(m.Listing.Tools), len(m.Listing.Prompts)
		row.Resources, row.Templates = len(m.Listing.Resources), len(m.Listing.Templates)
	}
	var vetted gateway.Vetted
	if json.Unmarshal(m.Vetted, &vetted) == nil { // nil is none, and says nothing
		row.Cards, row.Notes = vetted.Cards, append(row.Notes, vetted.Notes...)
	}
	if s.Phase != drawbridge.Idle {
		row.Phase, row.Reason = s.Phase, s.Reason
	}
	row.Source = s.Origin.String()
	return row
}

// afterwards is the phase of a server whose process is gone with ours: faulted where that is how it was, or was about to
// be once more; one that wanted a sign-in wants it still.
func afterwards(last drawbridge.Status) drawbridge.Phase {
	if last.Phase == drawbridge.NeedsSignIn {
		return last.Phase
	}
	if last.Phase == drawbridge.Faulted || last.Phase == drawbridge.Connecting && last.Fault != "" {
		return drawbridge.Faulted
	}
	return drawbridge.Idle
}

func (a *app) printStatuses(w io.Writer, rows []login.Listed) error {
	paint := shield.PaintFor(w, a.Env)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tPHASE\tCARDS\tERA\tTRANSPORT\tSTART\tLISTED\t"+paint.Head("TRUST")+"\tSOURCE")
	for _, r := range rows {
		safetext.Fprintf(tw, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Server, r.Phase, r.Cards, r.Era, r.Transport, manners.StartTime(r.StartMillis), manners.Ago(r.Listed), safetext.Shown(paint.Score(r.Trust)), a.short(r.Source))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		printTrouble(w, r)
	}
	return nil
}

// printTrouble adds what a person needs to mend a server: nothing for one that is well.
func printTrouble(w io.Writer, r login.Listed) {
	if r.Phase == drawbridge.Idle || r.Phase == drawbridge.Ready || r.Phase == drawbridge.NeedsSignIn {
		r.Fault = "" // it is well again, or it is known what it wants
	}
	var signIn strings.Builder
	r.PrintSignIn(&signIn)
	if r.Reason == "" && r.Fault == "" && r.Junk == 0 && r.Confined == "" && len(r.Notes) == 0 && signIn.Len() == 0 {
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
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "test NAME",
		Short:   "Start one server, list it, and say how that went",
		Example: "  drawbridge mcp test github",
		Args:    exactly(1, "the name of one server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.mcpTest(cmd.Context(), drawbridge.ServerID(args[0]), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// errNeedsSignIn is errQuiet for a server that wants to know who asks.
var errNeedsSignIn = fmt.Errorf("%w", errQuiet)

func (a *app) mcpTest(ctx context.Context, id drawbridge.ServerID, asJSON bool) error {
	r := a.roster()
	roll, err := r.Read(ctx)
	if err != nil {
		return err
	}
	if err := r.Startable(roll, id); err != nil {
		return err
	}
	g, err := a.oneOff(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	var listing drawbridge.Listing
	var fault error
	err = a.running(ctx, g, func(ctx context.Context) error {
		a.whileShown(ctx, g, func() { listing, fault = g.Mount(ctx, id) })
		return nil
	})
	if err != nil {
		return err
	}
	status := drawbridge.Status{Server: id}
	for _, s := range g.Status() {
		if s.Server == id {
			status = s
		}
	}
	if fault != nil {
		status.Fault = fault.Error()
	}
	if c, err := login.StateOf(g, id); err == nil && c.URL != "" && login.Unauthorized(fault) {
		status.Phase, status.SignIn = drawbridge.NeedsSignIn, c.URL // whatever became of it at the end of everything
	}
	if asJSON {
		err = printJSON(a.Out, status)
	} else {
		row, _ := roll.Lookup(id)
		err = a.printTest(row, listing, status, fault)
	}
	switch {
	case err == nil && fault != nil && status.Phase == drawbridge.NeedsSignIn:
		return errNeedsSignIn
	case err == nil && fault != nil:
		return errQuiet
	}
	return err
}

func (a *app) printTest(row config.Server, l drawbridge.Listing, s drawbridge.Status, fault error) error {
	if fault != nil {
		safetext.Fprintf(a.Out, "✗ Failed to connect to %q: %s\n", s.Server, safetext.Shown(safetext.Text(fault.Error())))
		for _, line := range s.Stderr {
			safetext.Fprintf(a.Out, "  stderr| %s\n", line)
		}
		if s.Phase == drawbridge.NeedsSignIn {
			safetext.Fprintf(a.Out, "Server requires OAuth authentication. Run drawbridge mcp auth %s\n", s.Server)
			login.PrintWay(a.Out, s.Server, s.SignIn, false)
			return nil
		}
		if login.Unauthorized(fault) {
			safetext.Fprintln(a.Out, login.Refused(row))
		}
		if tip := login.Tip(fault); tip != "" {
			safetext.Fprintln(a.Out, tip)
		}
		return nil
	}
	var info struct{ Name, Version string }
	_ = json.Unmarshal(l.Info, &info) // a server need not say who it is
	safetext.Fprintf(a.Out, "✓ %s: %s %s, %s protocol, %d tools, %d prompts, %d resources, %d templates, in %s\n",
		s.Server, info.Name, info.Version, l.Era, len(l.Tools), len(l.Prompts), len(l.Resources), len(l.Templates), manners.StartTime(s.StartMillis))
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
	return nil
}

// running does work while the gateway runs, and ends the gateway after it.
func (a *app) running(ctx context.Context, g *gateway.Gateway, work func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	group.Go(func() error { return ended(g.Run(ctx)) })
	group.Go(func() error {
		defer stop()
		return work(ctx)
	})
	return group.Wait()
}
