package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/server"
	"github.com/spf13/cobra"
)

func (a *app) psCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "Show what runs: the hub, its clients and its servers",
		Long: `Show what runs: the hub, which is the process that owns your servers; its clients; who made
calls, with the sessions, calls and errors of each; and the servers, with their processes,
their memory, and about how many tokens their definitions cost a model that receives all of
them. An error is a call that ended without a result of its tool.`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			state, err := hub.ReadState(a.hubOptions())
			none := errors.Is(err, hub.ErrNoHub)
			switch {
			case none && asJSON:
				_, err = fmt.Fprintln(a.Out, "null")
				return err
			case none:
				safetext.Fprintln(a.Err, noHubText)
				return nil
			case err != nil:
				return err
			case asJSON:
				return PrintJSON(a.Out, state)
			}
			return a.printHubState(state)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON; null where no hub runs")
	return cmd
}

// noHubText is printed if no hub runs.
const noHubText = "no hub runs: the first client that starts \"drawbridge serve\" starts it"

func (a *app) printHubState(s hub.State) error {
	w := a.Out
	safetext.Fprintf(w, "hub: process %d, since %s (%s), %s\n", s.PID, formatLocalTime(s.Since), formatUptime(s.Since),
		formatBytes(s.Memory))
	if len(s.Clients) > 0 {
		fmt.Fprintln(w)
		tw := NewTable(w)
		fmt.Fprintln(tw, "CLIENT\tPID\tVIA\tSINCE\tMEMORY\tDIRECTORY")
		for _, c := range s.Clients {
			safetext.Fprintf(tw, "%s\t%d\t%s\t%s\t%s\t%s\n", dashIfEmpty(c.Host), c.PID, c.Door, formatUptime(c.Since),
				formatBytes(c.Memory), a.abbreviateHome(c.Dir))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if err := printCallers(w, s.Callers); err != nil {
		return err
	}
	if s.Models != (gateway.ModelStatus{}) {
		fmt.Fprintln(w)
		printModelStatus(w, s.Models)
	}
	if len(s.Servers) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	tw := NewTable(w)
	fmt.Fprintln(tw, "SERVER\tSTATE\tPIDS\tMEMORY\tTOKENS\tCLIENTS\tSOURCE")
	for _, one := range s.Servers {
		pids := strings.Trim(fmt.Sprint(one.PIDs), "[]")
		safetext.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%d\t%s\n", one.Server, one.Phase, dashIfEmpty(pids),
			formatBytes(one.Memory), one.Tokens, one.Clients, a.abbreviateHome(one.Source))
	}
	return tw.Flush()
}

// printCallers prints a table of the callers. Each line has the name that the client declared, and the numbers of its
// sessions, calls and errors.
func printCallers(w io.Writer, callers []server.ClientActivity) error {
	if len(callers) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	tw := NewTable(w)
	fmt.Fprintln(tw, "CALLER\tNAME\tVIA\tSESSIONS\tCALLS\tERRORS\tLAST CALL")
	for _, c := range callers {
		safetext.Fprintf(tw, "%s\t%s\t%s\t%d\t%d\t%d\t%s\n", truncateEscaped(c.Principal, 40),
			dashIfEmpty(truncateEscaped(c.Client, 30)), c.Via, c.Sessions, c.Calls, c.Errors, formatAgo(c.Last))
	}
	return tw.Flush()
}

// dashIfEmpty returns "-" for an empty text, and any other text unchanged.
func dashIfEmpty(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// formatBytes returns a number of bytes for people. It returns "-" for 0, which may mean that the number is unknown.
func formatBytes(bytes int64) string {
	switch {
	case bytes == 0:
		return "-"
	case bytes < 1<<20:
		return fmt.Sprintf("%d KiB", bytes>>10)
	case bytes < 1<<30:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// formatUptime returns the time since t for people, such as "12s" or "3h5m".
func formatUptime(t time.Time) string {
	if d := time.Since(t); d < time.Minute {
		return fmt.Sprintf("%ds", max(0, d/time.Second))
	}
	return strings.TrimSuffix(time.Since(t).Truncate(time.Minute).String(), "0s")
}

func (a *app) logsCommand() *cobra.Command {
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the standard error output of a server",
		Long: `Print the last lines that a server wrote to standard error: from the hub, or, if no
hub runs, from the store. With -f each new line follows, until Ctrl-C.`,
		Example: "  drawbridge logs -f github",
		Args:    exactArgs(1, "the name of one server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.printLogs(cmd.Context(), drawbridge.ServerID(args[0]), follow, asJSON)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print each new line as it comes")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each line as a JSON string")
	return cmd
}

func (a *app) printLogs(ctx context.Context, id drawbridge.ServerID, follow, asJSON bool) error {
	print := func(line string) error {
		if asJSON {
			return printJSONLine(a.Out, line)
		}
		_, err := fmt.Fprintln(a.Out, safetext.Text(line))
		return err
	}
	err := hub.Logs(ctx, a.hubOptions(), id, follow, print)
	fault, ok := errors.AsType[*drawbridge.Fault](err)
	elsewhere := ok && fault.Code == drawbridge.NotFound
	if !elsewhere && !errors.Is(err, hub.ErrNoHub) {
		return err
	}
	rows, _, err := a.adminService().ServerStatuses(ctx, true)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(rows, func(r drawbridge.ServerStatus) bool { return r.Server == id })
	if i < 0 {
		_, err := a.adminService().DescribeServer(ctx, id) // its error suggests names
		return err
	}
	for _, line := range rows[i].Stderr {
		if err := print(line); err != nil {
			return err
		}
	}
	if len(rows[i].Stderr) == 0 {
		safetext.Fprintf(a.Err, "no standard error output of %q is stored\n", id)
	}
	if follow {
		return fmt.Errorf("there is nothing to follow: the server %q is not run by a hub (drawbridge ps)", id)
	}
	return nil
}
