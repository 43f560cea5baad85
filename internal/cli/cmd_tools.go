package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/command"
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
func commandLineCaller(g *gateway.Gateway) drawbridge.Caller { return command.Caller(g) }

func (a *app) toolsListCommand() *cobra.Command {
	var asJSON, own bool
	var wait time.Duration
	var profile string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the available tools",
		Long: `List the available tools, from the last listing of each server.
A server that was never listed is started once: by the hub, where one runs. The exit code is 1
when a server that was never listed did not answer, because its tools are missing then. At a
terminal the command waits for such servers until they answer or have a fault, elsewhere for
10 seconds, or as long as --wait says.

With --profile it lists Drawbridge's own tools of a profile: authoring or read-only, survey or
built-in, all. Clients are not listed them; tools call runs them.`,
		Example: "  drawbridge tools list\n  drawbridge tools list --profile all",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			params := a.toolsParams()
			params.Profile = profile
			if cmd.Flags().Changed("wait") {
				params.WaitMillis = max(1, wait.Milliseconds()) // 0 would select the default wait
			}
			return a.withRequests(cmd.Context(), own, func(ctx context.Context, r requester) error {
				list, err := answerRequest[command.ToolList](ctx, r, command.MethodTools, params)
				if err != nil {
					return err
				}
				if asJSON {
					err = a.printToolDefinitions(list)
				} else {
					err = a.printTools(list)
				}
				return errors.Join(err, a.printMissingServers(list, r.g == nil))
			})
		},
	}
	addOwnFlag(cmd, &own)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the tools as MCP has them, as JSON")
	cmd.Flags().StringVar(&profile, "profile", "", "list Drawbridge's own tools of a `PROFILE`")
	cmd.Flags().DurationVar(&wait, "wait", 0, "`time` to wait for servers that were never listed, such as 30s")
	return cmd
}

// toolsParams returns params with the limit of the wait for servers that were never listed. At a terminal there is no
// limit, because a person sees the wait and can end it.
func (a *app) toolsParams() command.ToolsParams {
	if IsTerminal(a.Err) {
		return command.ToolsParams{WaitMillis: -1}
	}
	return command.ToolsParams{WaitMillis: newServersTimeout.Milliseconds()}
}

func (a *app) printToolDefinitions(list command.ToolList) error {
	items := make([]json.RawMessage, 0, len(list.Tools))
	for _, one := range list.Tools {
		items = append(items, json.RawMessage(one.Definition))
	}
	return printRawJSONList(a.Out, items)
}

func (a *app) printTools(list command.ToolList) error {
	tw := NewTable(a.Out)
	for _, one := range list.Tools {
		if one.Name != "" {
			safetext.Fprintf(tw, "%s\t%s\n", one.Name, truncateLine(one.Summary, 80))
		}
	}
	return tw.Flush()
}

// printMissingServers prints the notes on the servers, and why the tools of a server are missing from the list. atHub
// reports whether the hub starts the servers. If a server was never listed, so that its tools are missing, it returns
// errAlreadyPrinted.
func (a *app) printMissingServers(list command.ToolList, atHub bool) error {
	for _, s := range list.Servers {
		for _, note := range s.Notes {
			safetext.Fprintf(a.Err, "server %q: %s\n", s.Server, note)
		}
		switch {
		case s.Phase == drawbridge.Faulted:
			safetext.Fprintf(a.Err, "server %q is not there: %s\n", s.Server, s.Fault)
		case s.Phase == drawbridge.Connecting && s.Listed.IsZero() && atHub:
			safetext.Fprintf(a.Err, "server %q does not answer yet; the hub goes on starting it (drawbridge mcp list)\n",
				s.Server)
		case s.Phase == drawbridge.Connecting:
			safetext.Fprintf(a.Err, "server %q does not answer (drawbridge mcp test %s)\n", s.Server, s.Server)
		case s.Phase == drawbridge.NeedsSignIn && s.Listed.IsZero():
			safetext.Fprintf(a.Err, "server %q needs a sign-in (drawbridge mcp auth %s)\n", s.Server, s.Server)
		}
	}
	if len(list.Missing()) > 0 {
		return errAlreadyPrinted
	}
	return nil
}

func (a *app) toolsShowCommand() *cobra.Command {
	var asJSON, own bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show one tool: its description, its arguments and its output",
		Long: `Show one tool: its description, its schemas and its annotations. If its definition has
no output schema, the type of the output is shown as it was learned from earlier results:
names and types of members, no values. With --json it is in "_meta".`,
		Example: "  drawbridge tools show fs__read_text_file",
		Args:    exactArgs(1, "the name of one tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRequests(cmd.Context(), own, func(ctx context.Context, r requester) error {
				tool, err := answerRequest[command.Tool](ctx, r, command.MethodTool, command.ToolParams{Name: args[0]})
				if err != nil {
					return err
				}
				if asJSON {
					shown, err := toolJSON(tool)
					if err != nil {
						return err
					}
					_, err = safetext.Fprintf(a.Out, "%s\n", safetext.Shown(safetext.JSON(shown)))
					return err
				}
				return printCard(a.Out, tool)
			})
		},
	}
	addOwnFlag(cmd, &own)
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

func (a *app) toolsCallCommand() *cobra.Command {
	var asJSON, own bool
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
			given, err := readCallArguments(a.In, args[1:])
			if err != nil {
				return err
			}
			return a.withRequests(cmd.Context(), own, func(ctx context.Context, r requester) error {
				return a.callTool(ctx, r, args[0], given, asJSON)
			})
		},
	}
	addOwnFlag(cmd, &own)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole result as JSON")
	return cmd
}

// callTool calls a tool and prints its result. It requests the tool's schema only for KEY=VALUE words, whose values are
// converted to the types in the schema.
func (a *app) callTool(ctx context.Context, r requester, name string, given callArguments, asJSON bool) error {
	arguments := given.object
	if arguments == nil {
		tool, err := answerRequest[command.Tool](ctx, r, command.MethodTool, command.ToolParams{Name: name, ForCall: true})
		if err != nil {
			return err
		}
		if arguments, err = given.convert(tool.Spec()); err != nil {
			return err
		}
	}
	params := rawjson.Apply(nil, rawjson.Put(rawjson.Quote(name), "name"), rawjson.Put(arguments, "arguments"))
	result, err := r.do(ctx, mcp.MethodToolsCall, params)
	if err != nil {
		return err
	}
	if asJSON {
		safetext.Fprintf(a.Out, "%s\n", safetext.Shown(safetext.JSON(result)))
	} else {
		printToolResult(a.Out, result)
	}
	if (drawbridge.Result{Raw: result}).IsError() {
		return errAlreadyPrinted
	}
	return nil
}

// withDeck opens a gateway that starts a server only when work needs it, and calls work while the gateway runs. If the
// configuration has notes, it prints their number.
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
