package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// clientConfigFlags are the flags of "connect" and "disconnect".
type clientConfigFlags struct {
	yes, replace, noList, asJSON, force bool
	// defaultYes makes an empty answer mean yes. It is set if the person has just chosen the client.
	defaultYes bool
}

func (a *app) connectCommand() *cobra.Command {
	var o clientConfigFlags
	cmd := &cobra.Command{
		Use:   "connect [CLIENT]",
		Short: "Put Drawbridge into a client's configuration",
		Long: `Put Drawbridge into a client's own configuration, as one more MCP server. The change is shown
first and made after a yes; "drawbridge disconnect" restores the file exactly. --mcp, --store
and --naming are written into the entry. Without CLIENT it lists the clients and whether they are
connected.

Servers that were never listed are started and listed once, so that the client's first turn
has their tools.`,
		Example: `  drawbridge connect
  drawbridge connect cursor
  drawbridge connect codex --yes --replace    and remove the servers that import copied`,
		Args: maxOneArg("the id of one client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listClients(o.asJSON)
			}
			return a.connectClient(cmd.Context(), args[0], o)
		},
		ValidArgs: clientIDs(),
	}
	flags := cmd.Flags()
	o.addYesAndJSONFlags(cmd)
	flags.BoolVar(&o.replace, "replace", false,
		"remove the servers from the client that your own configuration has too")
	flags.BoolVar(&o.noList, "no-list", false, "do not start and list servers")
	flags.BoolVar(&o.force, "force", false, "connect even if this program was built by \"go run\", which deletes it")
	return cmd
}

func (a *app) disconnectCommand() *cobra.Command {
	var o clientConfigFlags
	cmd := &cobra.Command{
		Use:   "disconnect CLIENT",
		Short: "Take Drawbridge out of a client's configuration again",
		Long: `Take Drawbridge out of a client's own configuration again. A file that was not edited since
"drawbridge connect" is restored exactly; in an edited file, the edits stay.`,
		Example: "  drawbridge disconnect cursor",
		Args:    exactArgs(1, "the id of one client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.disconnectClient(cmd.Context(), args[0], o)
		},
		ValidArgs: clientIDs(),
	}
	o.addYesAndJSONFlags(cmd)
	return cmd
}

func (o *clientConfigFlags) addYesAndJSONFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "change the file without asking")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON; no questions are asked, and only --yes changes the file")
}

// maxOneArg checks that a command has at most one argument. The text in what describes the argument in the error.
func maxOneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= 1 {
			return nil
		}
		return exactArgs(1, what)(cmd, args)
	}
}

func clientIDs() (ids []string) {
	for _, c := range config.Clients() {
		ids = append(ids, c.ID)
	}
	return ids
}

func (a *app) listClients(asJSON bool) error {
	states := a.adminService().ClientStates()
	if asJSON {
		return PrintJSON(a.Out, states)
	}
	tw := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CLIENT\tNAME\tCONNECTED\tFILE")
	for _, s := range states {
		word := "no"
		switch {
		case s.Problem != "":
			word = "unknown"
		case s.Connected:
			word = "yes"
		case !s.Present:
			word = "-"
		}
		safetext.Fprintf(tw, "%s\t%s\t%s\t%s\n", s.Client, s.Title, word, a.abbreviateHome(s.File))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, s := range states {
		if s.Problem != "" {
			safetext.Fprintln(a.Err, s.Problem)
		}
	}
	return nil
}

// connectOptions returns the options that locate the files of clients and their backups. The backups are in a directory
// beside the default store.
func (a *app) connectOptions() (config.ConnectOptions, error) {
	location, err := gateway.StoreLocation("", config.Settings{}, a.Env)
	o := config.ConnectOptions{Options: a.configOptions(), BackupDir: filepath.Join(filepath.Dir(location), "backups")}
	o.Paths = nil // --mcp names files with servers, not files of clients
	return o, err
}

func (a *app) connectClient(ctx context.Context, id string, o clientConfigFlags) error {
	where, err := a.connectOptions()
	if err != nil {
		return err
	}
	set, err := a.readConfig(ctx)
	if err != nil {
		return err
	}
	entry, err := a.clientEntry()
	if err != nil {
		return err
	}
	if isTemporaryBinary(entry.Command) && !o.force {
		return fmt.Errorf("connect %s: %s was made by \"go run\" and is deleted (go install ./cmd/drawbridge, and connect "+
			"with that; --force connects it all the same)", id, entry.Command)
	}
	replace, err := a.directCopiesToRemove(ctx, id, set, o)
	if err != nil {
		return err
	}
	plan, err := config.PlanConnect(where, id, entry, replace)
	if err != nil {
		return err
	}
	if len(set.Servers) == 0 {
		fmt.Fprintln(a.Err, "no servers are configured yet: drawbridge setup, or drawbridge import, copies those that you have")
	}
	done, err := a.applyClientPlan(ctx, plan, o, "connect")
	if err == nil && done && !o.noList {
		a.listNewServers(ctx, plan.Client.Title)
	}
	return err
}

// directCopiesToRemove returns the servers to remove from a client's file because Drawbridge serves them too. With
// --replace it returns all such servers. At a terminal it asks the person, unless --yes or --json is set. Otherwise it
// prints the command that removes them, and returns none. With --mcp it returns none, or an error if --replace is set.
func (a *app) directCopiesToRemove(ctx context.Context, id string, set config.Configuration, o clientConfigFlags) (
	[]string, error) {
	if len(a.configPaths) > 0 {
		if o.replace {
			return nil, usageError{errors.New(
				"--replace takes out what your own configuration has: it does not go with --mcp")}
		}
		return nil, nil
	}
	client, known := config.LookupClient(id)
	copies, err := a.adminService().DirectCopies(id, set)
	switch {
	case err != nil && o.replace:
		return nil, err
	case err != nil || !known || len(copies) == 0:
		return nil, nil // the plan reports the problem
	case o.replace:
		return copies, nil
	case o.yes || o.asJSON || !a.isInteractive():
		safetext.Fprintf(a.Err, "%s: drawbridge connect %s --replace takes them out\n",
			directCopiesText(client.Title, copies), id)
		return nil, nil
	}
	// The text is printed before the prompt: in the prompt, a terminal of 80 columns would break the line.
	safetext.Fprintf(a.Err, "%s.\n", directCopiesText(client.Title, copies))
	take, err := a.confirm(ctx, "Take them out?", true)
	if err != nil {
		return nil, errAlreadyPrinted
	}
	if !take {
		copies = nil
	}
	return copies, nil
}

// directCopiesText returns a text that names the servers which a client starts itself although Drawbridge serves them.
func directCopiesText(title string, copies []string) string {
	return safetext.Sprintf("%s also starts %d of these itself (%s), past your rules", title, len(copies),
		joinFirst(copies, 5))
}

func (a *app) disconnectClient(ctx context.Context, id string, o clientConfigFlags) error {
	where, err := a.connectOptions()
	if err != nil {
		return err
	}
	plan, err := config.PlanDisconnect(where, id)
	if err != nil {
		return err
	}
	_, err = a.applyClientPlan(ctx, plan, o, "disconnect")
	return err
}

// A connectReport is the plan of "connect" or "disconnect" as --json prints it.
type connectReport struct {
	Client  string   `json:"client"`
	File    string   `json:"file"`
	Changes []string `json:"changes"`
	Diff    string   `json:"diff,omitempty"`
	// Done reports whether the file has the planned content now.
	Done bool `json:"done"`
}

// applyClientPlan shows the planned change of a client's file, and makes it if the person agrees or --yes is set. If
// the plan is not applied, applyClientPlan prints that and returns errAlreadyPrinted. A plan without changes needs no
// agreement. verb is "connect" or "disconnect".
func (a *app) applyClientPlan(ctx context.Context, plan *config.ConnectPlan, o clientConfigFlags,
	verb string) (done bool, err error) {
	if !o.asJSON && !plan.IsEmpty() {
		safetext.Fprintf(a.Out, "%s: %s\n", plan.Client.Title, a.abbreviateHome(plan.Path))
		for _, change := range plan.Changes {
			safetext.Fprintf(a.Out, "  %s\n", change)
		}
		safetext.Fprintf(a.Out, "\n%s\n", safetext.Shown(safetext.Text(plan.Diff)))
	}
	done = o.yes || plan.IsEmpty()
	asked := !done && !o.asJSON && a.isInteractive()
	if asked {
		if question := "Change " + a.abbreviateHome(plan.Path) + "?"; o.defaultYes {
			done = a.confirmDefaultYes(ctx, question)
		} else {
			done = a.confirmDefaultNo(ctx, question)
		}
	}
	if done {
		if err := plan.Apply(); err != nil {
			return false, err
		}
	}
	switch {
	case o.asJSON:
		shown := connectReport{plan.Client.ID, plan.Path, append([]string{}, plan.Changes...), plan.Diff, done}
		if err := PrintJSON(a.Out, shown); err != nil {
			return done, err
		}
	case plan.IsEmpty() && verb == "disconnect":
		safetext.Fprintf(a.Out, "nothing to do: %s is not connected\n", plan.Client.Title)
	case plan.IsEmpty():
		safetext.Fprintf(a.Out, "nothing to do: %s is %sed already\n", plan.Client.Title, verb)
	case done:
		safetext.Fprintf(a.Out, "✓ %s is %sed (restart it, or have it read its servers again)\n",
			plan.Client.Title, verb)
	case asked:
		fmt.Fprintln(a.Out, "nothing was changed")
	default:
		safetext.Fprintf(a.Out, "nothing was changed: drawbridge %s %s --yes makes the change\n", verb, plan.Client.ID)
	}
	if !done {
		return false, errAlreadyPrinted
	}
	return true, nil
}

// clientEntry returns the configuration entry with which a client starts this program.
func (a *app) clientEntry() (config.ClientEntry, error) {
	e := config.ClientEntry{Command: a.Self, Args: []string{"serve"}}
	paths, err := a.configOptions().NamedPaths()
	if err != nil {
		return e, err
	}
	for _, path := range paths {
		e.Args = append(e.Args, "--mcp", path)
	}
	if a.storeLocation != "" {
		location, err := admin.StoreArgument(a.storeLocation, a.Dir)
		if err != nil {
			return e, err
		}
		e.Args = append(e.Args, "--store", location)
	}
	if a.naming != "" {
		e.Args = append(e.Args, "--naming", a.naming)
	}
	e.Env = a.directoryVariables()
	return e, nil
}

// directoryVariables returns XDG_CONFIG_HOME and XDG_STATE_HOME if they differ from the defaults. They locate this
// program's files. The client's entry must contain them, because some clients, such as Codex, do not pass them on.
func (a *app) directoryVariables() (env []config.NameValue) {
	home, _ := a.Env("HOME")
	for _, known := range []struct{ name, usual string }{{"XDG_CONFIG_HOME", ".config"},
		{"XDG_STATE_HOME", ".local/state"}} {
		dir, _ := a.Env(known.name)
		if filepath.IsAbs(dir) && filepath.Clean(dir) != filepath.Join(home, filepath.FromSlash(known.usual)) {
			env = append(env, config.NameValue{Name: known.name, Value: dir})
		}
	}
	return env
}

// firstListingTimeout limits the first listing of servers. It is long because npm may have to download packages.
const firstListingTimeout = time.Minute

// listNewServers starts and lists the servers that were never listed, and prints the results. Otherwise their tools
// would be missing from the first list of tools, and some clients request no second list.
func (a *app) listNewServers(ctx context.Context, client string) {
	rows, list, err := a.adminService().ServerStatuses(ctx, false)
	if err != nil {
		return // connectClient has already read the configuration
	}
	mountable := func(r drawbridge.ServerStatus) bool {
		return slices.ContainsFunc(list.Entries, func(e admin.ServerEntry) bool {
			return e.Phase == drawbridge.Idle &&
				e.Source == r.Source
		})
	}
	fresh := slices.DeleteFunc(rows, func(r drawbridge.ServerStatus) bool {
		return !r.Listed.IsZero() || !mountable(r)
	})
	if len(fresh) == 0 {
		return
	}
	safetext.Fprintf(a.Err, "listing %s once, so that the first turn of %s has the tools…\n", formatCount(len(fresh),
		"server"), client)
	err = a.withDeck(ctx, func(ctx context.Context, g *gateway.Gateway) error {
		wait, cancel := context.WithTimeout(ctx, firstListingTimeout)
		defer cancel()
		a.withProgress(wait, g, func() { g.MountNew(wait) })
		for _, s := range g.Status() {
			if slices.ContainsFunc(fresh, func(r drawbridge.ServerStatus) bool { return r.Source == s.Source }) {
				a.printListingResult(s)
			}
		}
		return nil
	})
	if err != nil {
		safetext.Fprintf(a.Err, "not listed: %v\n", err)
	}
}

func (a *app) printListingResult(s drawbridge.ServerStatus) {
	switch {
	case s.Fault != "" && s.Listed.IsZero():
		safetext.Fprintf(a.Err, "  %s is not there: %s (drawbridge mcp test %s)\n", s.Server, s.Fault, s.Server)
	case s.Listed.IsZero():
		safetext.Fprintf(a.Err, "  %s does not answer (drawbridge mcp test %s)\n", s.Server, s.Server)
	default:
		safetext.Fprintf(a.Err, "  %s: %s\n", s.Server, formatCount(s.Cards, "tool"))
	}
}
