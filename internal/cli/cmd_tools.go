package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (a *app) toolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List, find, show and call tools",
		Args:  rejectUnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.toolsListCommand(), a.toolsShowCommand(), a.toolsCallCommand(),
		a.newToolIndexCommands().searchCommand())
	return cmd
}

// commandLineCaller returns the caller of the command line: the user at the terminal.
func commandLineCaller(g *gateway.Gateway) drawbridge.Caller {
	c := g.Owner()
	c.Kind = drawbridge.Author
	c.Era, c.Protocol = drawbridge.Modern, mcp.Version20260728
	return c
}

func (a *app) toolsListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the available tools",
		Long: `List the available tools, from the last listing of each server.
A server that was never listed is started once.`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withDeck(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				a.awaitNewServers(ctx, g)
				list, err := g.Deck().List(ctx, commandLineCaller(g), mcp.MethodToolsList)
				if err != nil {
					return err
				}
				if asJSON {
					return printRawJSONList(a.Out, list.Items)
				}
				return a.printCards(g, list)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the tools as MCP has them, as JSON")
	return cmd
}

func (a *app) printCards(g *gateway.Gateway, list deck.List) error {
	tw := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, item := range list.Items {
		name := rawjson.GetString(item, "name")
		spec, ok := g.Deck().FindCard(commandLineCaller(g), drawbridge.CardName(name))
		if !ok {
			continue
		}
		safetext.Fprintf(tw, "%s\t%s\n", name, truncateLine(spec.Summary, 80))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, s := range g.Status() {
		for _, note := range s.Notes {
			safetext.Fprintf(a.Err, "server %q: %s\n", s.Server, note)
		}
		switch {
		case s.Phase == drawbridge.Faulted:
			safetext.Fprintf(a.Err, "server %q is not there: %s\n", s.Server, s.Fault)
		case s.Phase == drawbridge.Connecting:
			safetext.Fprintf(a.Err, "server %q does not answer (drawbridge mcp test %s)\n", s.Server, s.Server)
		}
	}
	return nil
}

func (a *app) toolsShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show one tool: its description and its arguments",
		Example: "  drawbridge tools show fs__read_text_file",
		Args:    exactArgs(1, "the name of one tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withDeck(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				spec, err := a.findCard(ctx, g, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					_, err := safetext.Fprintf(a.Out, "%s\n", safetext.Shown(safetext.JSON(spec.Definition)))
					return err
				}
				return printCard(a.Out, spec, g.CardNotes(spec))
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the tool as MCP has it, as JSON")
	return cmd
}

// newServersTimeout limits the wait for servers that were never listed.
const newServersTimeout = 10 * time.Second

func (a *app) awaitNewServers(ctx context.Context, g *gateway.Gateway) {
	ctx, cancel := context.WithTimeout(ctx, newServersTimeout)
	defer cancel()
	a.withProgress(ctx, g, func() { g.MountNew(ctx) })
}

// findCard returns the card with a name. For an unknown name it mounts the server that the name begins with. If no such
// server is configured, it waits for the servers that were never listed.
func (a *app) findCard(ctx context.Context, g *gateway.Gateway, name string) (drawbridge.Spec, error) {
	find := func() (drawbridge.Spec, bool) {
		return g.Deck().FindCard(commandLineCaller(g), drawbridge.CardName(name))
	}
	spec, ok := find()
	if ok {
		return spec, nil
	}
	if id, ok := serverOfCardName(g, name); ok {
		var err error
		a.withProgress(ctx, g, func() { _, err = g.Mount(ctx, id) })
		if err != nil {
			return spec, err
		}
	} else {
		a.awaitNewServers(ctx, g)
	}
	if spec, ok = find(); !ok {
		return spec, &drawbridge.Fault{
			Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound, Step: "unknown tool " + name,
			Next: "drawbridge tools list",
		}
	}
	return spec, nil
}

// serverOfCardName returns the configured server that a qualified name begins with.
func serverOfCardName(g *gateway.Gateway, name string) (drawbridge.ServerID, bool) {
	set := g.Config()
	for _, s := range set.Mountable() {
		if strings.HasPrefix(name, string(s.ID)+drawbridge.NameSeparator) {
			return s.ID, true
		}
	}
	return "", false
}

func (a *app) toolsCallCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "call NAME [JSON | KEY=VALUE...]",
		Short: "Call one tool and print its result",
		Long: `Call one tool and print its result. Arguments are one JSON object ("-" reads it from
standard input), or KEY=VALUE words, whose values are converted to the types of the tool's
schema. The exit code is 1 when the tool reports an error.`,
		Example: `  drawbridge tools call everything__echo message=hello
  drawbridge tools call fs__read_multiple_files '{"paths": ["a.txt", "b.txt"]}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("%s takes the name of a tool (see %q)", cmd.CommandPath(),
					cmd.CommandPath()+" --help")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withDeck(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				spec, err := a.findCard(ctx, g, args[0])
				if err != nil {
					return err
				}
				given, err := parseCallArguments(a.In, spec, args[1:])
				if err != nil {
					return err
				}
				return a.callCard(ctx, g, spec, given, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole result as JSON")
	return cmd
}

func (a *app) callCard(ctx context.Context, g *gateway.Gateway, spec drawbridge.Spec, given json.RawMessage,
	asJSON bool) error {
	params := rawjson.Apply(nil, rawjson.Put(rawjson.Quote(string(spec.Name)), "name"), rawjson.Put(given, "arguments"))
	var result drawbridge.Result
	var err error
	a.withProgress(ctx, g, func() {
		result, err = g.Deck().Call(ctx, drawbridge.Call{Caller: commandLineCaller(g), Method: mcp.MethodToolsCall,
			Params: params})
	})
	if err != nil {
		return err
	}
	if asJSON {
		safetext.Fprintf(a.Out, "%s\n", safetext.Shown(safetext.JSON(result.Raw)))
	} else {
		printToolResult(a.Out, result.Raw)
	}
	if result.IsError() {
		return errAlreadyPrinted
	}
	return nil
}

// withDeck runs work with a gateway that starts servers only on demand.
func (a *app) withDeck(ctx context.Context, work func(context.Context, *gateway.Gateway) error) error {
	g, err := a.openOnDemandGateway(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	if n := len(configNotes(g.Config())); n > 0 {
		safetext.Fprintf(a.Err, "drawbridge mcp list has notes on the configuration (%d)\n", n)
	}
	return a.withRunningGateway(ctx, g, func(ctx context.Context) error { return work(ctx, g) })
}
