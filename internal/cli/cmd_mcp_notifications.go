package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (a *app) mcpNotificationsCommand() *cobra.Command {
	var asJSON bool
	cmd := withServerArg(&cobra.Command{
		Use:   "notifications NAME",
		Short: "Print what a server of the running hub notified of",
		Long: `Print what a server may notify of, which resources are watched, how many notifications of each
kind the running hub received, and the last 50 of them. Progress is only counted.`,
		Example: "  drawbridge mcp notifications github",
	}, func(ctx context.Context, id drawbridge.ServerID) error {
		r, err := hub.Notifications(ctx, a.hubOptions(), id)
		switch {
		case errors.Is(err, hub.ErrNoHub):
			return errors.New(noHubText)
		case err != nil:
			return err
		case asJSON:
			return PrintJSON(a.Out, r)
		}
		return printNotifications(a.Out, r)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printNotifications prints a report as text and tables.
func printNotifications(w io.Writer, r drawbridge.NotificationReport) error {
	safetext.Fprintf(w, "declares: %s\n", dashIfEmpty(strings.Join(r.Declared, ", ")))
	safetext.Fprintf(w, "watched:  %s\n", dashIfEmpty(strings.Join(r.Watched, ", ")))
	if len(r.Counts) == 0 {
		_, err := fmt.Fprintln(w, "no notifications were received")
		return err
	}
	tw := NewTable(w)
	fmt.Fprintln(tw, "\nNOTIFICATION\tRECEIVED")
	for _, method := range slices.Sorted(maps.Keys(r.Counts)) {
		safetext.Fprintf(tw, "%s\t%d\n", method, r.Counts[method])
	}
	if len(r.Recent) > 0 {
		fmt.Fprintln(tw, "\nTIME\tNOTIFICATION\tPARAMS")
	}
	for _, n := range r.Recent {
		safetext.Fprintf(tw, "%s\t%s\t%s\n", n.At.Local().Format("15:04:05"), n.Method, truncateEscaped(n.Params, 100))
	}
	return tw.Flush()
}
