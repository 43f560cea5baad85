package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/hub"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// adminService returns the service that does the work of the commands.
func (a *app) adminService() *admin.Service {
	return admin.New(admin.Options{ConfigOptions: a.configOptions(), Store: a.storeLocation,
		CommandPrefix: "drawbridge mcp", Environ: a.Environ, Secrets: a.vaultSecrets(), OpenVault: a.openVault,
		ReloadServers: a.reloadHubIfRunning, AdminRecorder: a.recordAction, Gateway: a.gatewayConfig(),
		Hub: hubClient{a}})
}

// reloadHubIfRunning makes a running hub read the configuration again, and returns a short description of the result.
// It returns noHubText if no hub runs.
func (a *app) reloadHubIfRunning(context.Context) (string, error) {
	text, err := a.reloadHub()
	if errors.Is(err, hub.ErrNoHub) {
		return a.noHubText(), nil
	}
	return text, err
}

// noHubText describes the result of a change if no hub runs. It is empty in a session that reloads afterwards.
func (a *app) noHubText() string {
	if a.sessionReloads() {
		return ""
	}
	return `no hub is running: the next "drawbridge serve" reads it`
}

// sessionReloads reports whether this command runs in a session that reads the configuration after it.
func (a *app) sessionReloads() bool {
	in, ok := a.In.(sessionInput)
	return ok && in.talk.reloads
}

// reloadHub is like reloadHubIfRunning, but returns hub.ErrNoHub if no hub runs.
func (a *app) reloadHub() (string, error) {
	return reloadSummary(hub.Reload(a.hubOptions()))
}

// relistHub is like reloadHub, but the hub first requests the lists of the named servers again. If none is named, it
// requests the lists of all connected servers.
func (a *app) relistHub(servers ...drawbridge.ServerID) (string, error) {
	return reloadSummary(hub.Relist(a.hubOptions(), servers...))
}

// reloadSummary returns a short description of a reload, and the errors of the reload as one error.
func reloadSummary(r hub.ReloadReport, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return formatReload("the hub", r), errors.Join(toErrors(r.Errors)...)
}

func toErrors(texts []string) (all []error) {
	for _, text := range texts {
		all = append(all, errors.New(text))
	}
	return all
}

// printChange prints a change of the configuration on one line, and the notes of the change on standard error. With
// asJSON it prints only the change, as JSON.
func (a *app) printChange(c admin.Change, asJSON bool) error {
	if asJSON {
		return PrintJSON(a.Out, c)
	}
	a.printChangeNotes(c)
	_, err := safetext.Fprintln(a.Out, c)
	return err
}

func (a *app) printChangeNotes(c admin.Change) {
	if len(c.SecretNames) > 0 {
		if c.Kind != admin.Moved {
			safetext.Fprintf(a.Err, "%s: its secrets are kept as %s\n", c.Server, strings.Join(c.SecretNames, ", "))
		}
		a.printSecretLocation()
	}
	for _, note := range c.Notes {
		safetext.Fprintf(a.Err, "%s: %s\n", c.Server, note)
	}
	asked := c.Kind != admin.Disabled && c.Kind != admin.AlreadyDisabled && c.Kind != admin.Rejected &&
		c.Kind != admin.AlreadyRejected
	if asked && c.Reason != "" {
		safetext.Fprintf(a.Err, "%s is %s: %s\n", c.Server, c.Phase, c.Reason)
	}
}

// withServerArg returns cmd as a command that takes the name of one server. The command calls act with that name.
func withServerArg(cmd *cobra.Command, act func(ctx context.Context, id drawbridge.ServerID) error) *cobra.Command {
	cmd.Args = exactArgs(1, "the name of one server")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return act(cmd.Context(), drawbridge.ServerID(args[0])) }
	return cmd
}

func (a *app) mcpRemoveCommand() *cobra.Command {
	var asJSON bool
	var scope string
	cmd := &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Take a server out of the configuration",
		Example: "  drawbridge mcp remove github\n  drawbridge mcp rm github --scope user",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return admin.UserError(
					"Server name required. Usage: drawbridge mcp remove <name> [--scope project|user]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if scope == "" && cmd.Flags().Changed("scope") {
				scope = "?" // an empty scope would mean any
			}
			c, err := a.adminService().RemoveServer(cmd.Context(), drawbridge.ServerID(args[0]),
				config.OriginKind(scope))
			if err != nil {
				return err
			}
			return a.printChange(c, asJSON)
		},
	}
	cmd.Flags().StringVarP(&scope, "scope", "s", "",
		"`project` or user: the configuration to remove it from (default: the one in force)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) mcpEnableCommand() *cobra.Command {
	var asJSON bool
	cmd := withServerArg(&cobra.Command{
		Use:     "enable NAME",
		Short:   "Turn a server on again",
		Example: "  drawbridge mcp enable github",
	}, func(ctx context.Context, id drawbridge.ServerID) error {
		c, err := a.adminService().EnableServer(ctx, id)
		if err != nil {
			return err
		}
		return a.printChange(c, asJSON)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) mcpDisableCommand() *cobra.Command {
	var asJSON bool
	cmd := withServerArg(&cobra.Command{
		Use:   "disable NAME",
		Short: "Turn a server off, and keep it configured",
		Long: `Turn a server off, and keep it configured: in its own row, or, for a row in another
program's file, in the list disabledServers of your own mcp.json.`,
		Example: "  drawbridge mcp disable github",
	}, func(ctx context.Context, id drawbridge.ServerID) error {
		c, err := a.adminService().DisableServer(ctx, id)
		if err != nil {
			return err
		}
		return a.printChange(c, asJSON)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) mcpReloadCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Make the running hub reload its configuration",
		Long: `Make the running hub reload its configuration. It does so by itself when a file
changes; only servers whose configuration changed are restarted. The connected ones are listed
again.`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := a.relistHub()
			if errors.Is(err, hub.ErrNoHub) {
				text, err = a.noHubText(), nil
			}
			if err != nil {
				return fmt.Errorf("reload: %w", err)
			}
			if asJSON {
				return PrintJSON(a.Out, map[string]string{"live": text})
			}
			_, err = safetext.Fprintln(a.Out, text)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
