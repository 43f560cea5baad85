package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (a *app) mcpGetCommand() *cobra.Command {
	var asJSON bool
	cmd := withServerArg(&cobra.Command{
		Use:   "get NAME",
		Short: "Show one server's configuration and state; starts no server",
		Long: `Show one server's row, its file and its state. Variables are not expanded, and values that
may be secrets are not shown.`,
		Example: "  drawbridge mcp get github",
	}, func(ctx context.Context, id drawbridge.ServerID) error {
		d, err := a.adminService().DescribeServer(ctx, id)
		if err != nil {
			return err
		}
		if asJSON {
			return PrintJSON(a.Out, d)
		}
		printServerEntry(a.Out, d.ServerEntry)
		for _, e := range d.Others {
			fmt.Fprintln(a.Out)
			printServerEntry(a.Out, e)
		}
		return nil
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printServerEntry(w io.Writer, e admin.ServerEntry) {
	safetext.Fprintf(w, "%s:\n", e.Name)
	phase := string(e.Phase)
	if e.Reason != "" {
		phase += ": " + e.Reason
	}
	from := map[config.OriginKind]string{config.OriginUser: "your own", config.OriginProject: "the project's",
		config.OriginExplicit: "named with --mcp"}[e.Kind]
	if e.From != "native" {
		from += ", of " + e.From
	}
	lines := []config.NameValue{{Name: "state", Value: phase}, {Name: "file", Value: fmt.Sprintf("%s (%s)",
		e.Source, from)}}
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, config.NameValue{Name: name, Value: value})
		}
	}
	add("transport", e.Transport)
	add("imported from", e.ImportedFrom)
	if e.Decision != "" {
		add("decision", fmt.Sprintf("%s, %s", e.Decision, e.DecidedAt.Local().Format(time.DateTime)))
	}
	lines = append(append(lines, e.MemberLines()...), e.ProgramLines()...)
	add("would take the place of", e.Replaces)
	add("not set", strings.Join(e.Unresolved, ", "))
	printPairs(w, append(lines, e.FindingLines()...))
}
