package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/spf13/cobra"
)

func (a *app) mcpGetCommand() *cobra.Command {
	var asJSON bool
	cmd := oneServer(&cobra.Command{
		Use:   "get NAME",
		Short: "Show one server's row, where it stands and how it is; starts nothing",
		Long: `Show one server's row, where it stands and how it is. Variables are not put in, and what
may be a secret is not shown.`,
		Example: "  drawbridge mcp get github",
	}, func(ctx context.Context, id drawbridge.ServerID) error {
		d, err := a.roster().Get(ctx, id)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(a.Out, d)
		}
		printEntry(a.Out, d.Entry)
		for _, e := range d.Others {
			fmt.Fprintln(a.Out)
			printEntry(a.Out, e)
		}
		return nil
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printEntry(w io.Writer, e roster.Entry) {
	safetext.Fprintf(w, "%s:\n", e.Name)
	phase := string(e.Phase)
	if e.Reason != "" {
		phase += ": " + e.Reason
	}
	from := map[config.OriginKind]string{config.User: "your own", config.Project: "the project's", config.Explicit: "named with --mcp"}[e.Kind]
	if e.From != "native" {
		from += ", of " + e.From
	}
	lines := []config.Pair{{Name: "state", Value: phase}, {Name: "file", Value: fmt.Sprintf("%s (%s)", e.Source, from)}}
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, config.Pair{Name: name, Value: value})
		}
	}
	add("transport", e.Transport)
	add("imported from", e.ImportedFrom)
	if e.Decision != "" {
		add("decision", fmt.Sprintf("%s, %s", e.Decision, e.DecidedAt.Local().Format(time.DateTime)))
	}
	lines = append(append(lines, e.Members()...), e.Runs()...)
	add("would take the place of", e.Replaces)
	add("not set", strings.Join(e.Unresolved, ", "))
	printPairs(w, append(lines, e.Notes()...))
}
