package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

func (a *app) mcpReconnectCommand() *cobra.Command {
	var asJSON bool
	cmd := withServerArg(&cobra.Command{
		Use:   "reconnect NAME",
		Short: "Have the running hub connect to a server again",
		Long: `Have the running hub close its connections to a server and open them again; a command is
started again. Calls of that server that are running end with an error.`,
		Example: "  drawbridge mcp reconnect github",
	}, func(ctx context.Context, id drawbridge.ServerID) error {
		fault := hub.Reconnect(ctx, a.hubOptions(), id)
		switch {
		case errors.Is(fault, hub.ErrNoHub):
			return errors.New(noHubText)
		case fault != nil:
			return fault
		case asJSON:
			return PrintJSON(a.Out, struct {
				Server drawbridge.ServerID `json:"server"`
				Done   bool                `json:"reconnected"`
			}{id, true})
		}
		_, err := safetext.Fprintf(a.Out, "✓ Reconnected to %q\n", id)
		return err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) mcpResourcesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "resources NAME [URI]",
		Short:   "List the resources of a server, or print one",
		Example: "  drawbridge mcp resources docs\n  drawbridge mcp resources docs file:///notes.txt",
		Args:    rangeArgs(1, 2, "the name of a server, and the URI of a resource"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := drawbridge.ServerID(args[0])
			return a.withDeck(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				if len(args) == 1 {
					return a.printServerItems(ctx, g, id, asJSON, mcp.MethodResourcesList, mcp.MethodTemplatesList)
				}
				raw, err := a.adminService().ReadResource(ctx, g, commandLineCaller(g), id, args[1])
				if err != nil || asJSON {
					return a.printRawResult(raw, err)
				}
				for item := range rawjson.Elements(rawjson.Get(raw, "contents")) {
					text := rawjson.GetString(item, "text")
					if rawjson.Get(item, "text") == nil {
						text = fmt.Sprintf("[%s: %s, %d bytes of Base64]", rawjson.GetString(item, "uri"),
							rawjson.GetString(item, "mimeType"), len(rawjson.GetString(item, "blob")))
					}
					safetext.Fprintf(a.Out, "%s\n", safetext.Shown(safetext.Text(text)))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) mcpPromptsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "prompts NAME [PROMPT [KEY=VALUE...]]",
		Short:   "List the prompts of a server, or print one",
		Example: "  drawbridge mcp prompts docs\n  drawbridge mcp prompts docs summarize topic=ships",
		Args:    rangeArgs(1, 1000, "the name of a server, and a prompt with its arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := drawbridge.ServerID(args[0])
			var given []config.NameValue
			for _, word := range args[min(2, len(args)):] {
				key, value, ok := strings.Cut(word, "=")
				if !ok || key == "" {
					return admin.UserError(fmt.Sprintf("argument %q is not KEY=VALUE", word))
				}
				given = append(given, config.NameValue{Name: key, Value: value})
			}
			return a.withDeck(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				if len(args) == 1 {
					return a.printServerItems(ctx, g, id, asJSON, mcp.MethodPromptsList)
				}
				raw, err := a.adminService().GetPrompt(ctx, g, commandLineCaller(g), id, args[1], given)
				if err != nil || asJSON {
					return a.printRawResult(raw, err)
				}
				for message := range rawjson.Elements(rawjson.Get(raw, "messages")) {
					text := rawjson.GetString(message, "content", "text")
					if kind := rawjson.GetString(message, "content", "type"); kind != "text" {
						text = "[" + kind + "]"
					}
					safetext.Fprintf(a.Out, "%s: %s\n", rawjson.GetString(message, "role"),
						safetext.Shown(safetext.Text(text)))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// rangeArgs checks that a command has from least to most arguments. The text in what describes the arguments in the
// error.
func rangeArgs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usageError{fmt.Errorf("%s takes %s (see %q)", cmd.CommandPath(), what, cmd.CommandPath()+" --help")}
		}
		return nil
	}
}

// printRawResult prints a result as JSON. If err is not nil, it only returns err.
func (a *app) printRawResult(raw json.RawMessage, err error) error {
	if err == nil {
		_, err = safetext.Fprintf(a.Out, "%s\n", safetext.Shown(safetext.JSON(raw)))
	}
	return err
}

// printServerItems prints the items that a server returns for the list methods, such as prompts/list. Each line has the
// item's name on the server and its description. With asJSON it prints the definitions as one JSON array.
func (a *app) printServerItems(ctx context.Context, g *gateway.Gateway, id drawbridge.ServerID, asJSON bool,
	methods ...string) error {
	items, err := a.adminService().ServerItems(ctx, g, commandLineCaller(g), id, methods...)
	if err != nil {
		return err
	}
	if asJSON {
		var raw []json.RawMessage
		for _, spec := range items {
			raw = append(raw, spec.Definition)
		}
		return printRawJSONList(a.Out, raw)
	}
	for _, spec := range items {
		safetext.Fprintf(a.Out, "%s  %s\n", spec.Tool, truncateLine(spec.Summary, 80))
	}
	if len(items) == 0 {
		safetext.Fprintf(a.Err, "server %q lists none\n", id)
	}
	return nil
}
