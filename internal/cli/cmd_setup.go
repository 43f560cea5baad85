package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// setupFlags are the flags of "setup".
type setupFlags struct {
	yes, moveSecrets, replace, noList, force bool
	connect                                  []string
}

func (a *app) setupCommand() *cobra.Command {
	var o setupFlags
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Copy the servers you have, try each once, and connect your clients",
		Long: `Set Drawbridge up in four steps, each with its question: copy the servers that your clients start,
store their secrets encrypted, start each server once, and put Drawbridge into the clients that you
choose. A second run changes only what is new. "drawbridge" alone does the same as long as nothing is
configured.

With --yes it asks nothing: it copies the servers that no other one shadows, leaves secrets where they are
without --move-secrets, and changes no client without --connect.`,
		Example: `  drawbridge setup
  drawbridge setup --yes --move-secrets --connect cursor --replace`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runSetup(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.yes, "yes", "y", false, "ask nothing and take the defaults")
	flags.BoolVar(&o.moveSecrets, "move-secrets", false, "store secrets of copied servers encrypted")
	flags.StringSliceVar(&o.connect, "connect", nil, "put Drawbridge into `CLIENT`; may be repeated")
	flags.BoolVar(&o.replace, "replace", false, "remove the servers from the clients that Drawbridge serves now")
	flags.BoolVar(&o.noList, "no-list", false, "do not start servers")
	flags.BoolVar(&o.force, "force", false, "connect clients even if this program was built by \"go run\", which deletes it")
	return cmd
}

// isFirstRun reports whether nothing is configured, and the program was started at a terminal without --mcp and
// --store.
func (a *app) isFirstRun() bool {
	if !a.isInteractive() || len(a.configPaths) > 0 || a.storeLocation != "" {
		return false
	}
	set, err := config.Load(a.configOptions())
	return err == nil && len(set.Servers)+len(set.Shadowed)+len(set.Sources) == 0
}

// A setupRun is one run of "setup".
type setupRun struct {
	*app
	flags setupFlags
	// changed reports whether a file was changed. connected and clientIDs are the titles and IDs of the clients that
	// start Drawbridge now. cards are the tools of all servers.
	changed   bool
	connected []string
	clientIDs []string
	cards     []drawbridge.Spec
}

// errSetupStopped is the error of "setup" if a question gets no answer.
var errSetupStopped = errors.New("setup stopped; the finished steps stay (drawbridge setup goes on)")

func (a *app) runSetup(ctx context.Context, o setupFlags) error {
	switch {
	case len(a.configPaths) > 0:
		return usageError{errors.New("setup writes to your own mcp.json: --mcp has no place here")}
	case !o.yes && !a.isInteractive():
		return usageError{errors.New("setup asks its questions at a terminal (drawbridge setup --yes takes the defaults)")}
	}
	for _, id := range o.connect {
		if _, ok := config.LookupClient(id); !ok {
			return usageError{fmt.Errorf("unknown client %q: use one of %s", id, strings.Join(clientIDs(), ", "))}
		}
	}
	s := &setupRun{app: a, flags: o}
	for _, step := range []func(context.Context) error{s.copyServers, s.tryServers, s.connectClients} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return s.finish(ctx)
}

func (s *setupRun) heading(n int, text string) {
	safetext.Fprintf(s.Out, "\nStep %d of 3: %s\n\n", n, text)
}

// copyServers is the first step: it copies the servers of other programs that the person chooses.
func (s *setupRun) copyServers(ctx context.Context) error {
	s.heading(1, "copy the servers that your clients have (their files stay as they are)")
	scan, err := s.adminService().ScanImports(nil)
	if err != nil {
		return err
	}
	for _, w := range scan.Warnings {
		safetext.Fprintln(s.Err, w)
	}
	offers := admin.ImportOffers(scan)
	if len(offers) == 0 {
		s.printNothingToCopy(scan)
		return nil
	}
	picks, err := s.pickServers(ctx, scan, offers)
	if err != nil {
		return err
	}
	if len(picks) == 0 {
		fmt.Fprintln(s.Out, "nothing was copied")
		return nil
	}
	report, err := s.adminService().NewImportReport(scan, picks)
	if err != nil {
		return err
	}
	flags := importFlags{yes: s.flags.yes}
	if s.flags.moveSecrets {
		flags.secrets = "move"
	}
	done, err := s.importServers(ctx, flags, &report)
	switch {
	case err != nil:
		return err
	case !done:
		return errSetupStopped
	}
	s.changed = true
	safetext.Fprintf(s.Out, "✓ %s copied into %s: %s\n", formatCount(len(report.Taken), "server"),
		s.abbreviateHome(report.File), joinServers(report.Taken))
	s.printMovedSecrets(report)
	return s.reloadHubAfterImport()
}

// printNothingToCopy prints why the first step has nothing to do.
func (s *setupRun) printNothingToCopy(scan config.ImportScan) {
	if len(scan.OwnNames) == 0 {
		fmt.Fprintln(s.Out, "No other program has a server configured. Add one: drawbridge mcp add (it asks for everything)")
		return
	}
	safetext.Fprintf(s.Out, "✓ nothing new to copy; you have %s\n", formatCount(len(scan.OwnNames), "server"))
	for _, c := range scan.Candidates {
		if admin.IsImportable(c) && c.SameAs == nil {
			safetext.Fprintf(s.Out, "  not copied: %s of %s, another definition (drawbridge import --as %s:%s=NAME copies it)\n",
				c.Name, c.ProviderTitle, c.Provider, c.Name)
		}
	}
}

// pickServers asks which servers to copy. For a chosen server whose name is already used, it also asks for another
// name. With --yes it does not ask which servers, and picks the servers that are marked by default.
func (s *setupRun) pickServers(ctx context.Context, scan config.ImportScan, offers []admin.ImportOffer) (
	picks []admin.ImportPick, err error) {
	items := make([]checklistItem, len(offers))
	for i, o := range offers {
		items[i] = checklistItem{[]string{safetext.Line(string(o.Name)), strings.Join(o.Programs, ", "),
			truncateLine(o.Runs, 60)}, o.Note, o.Marked}
	}
	marked := []int{}
	if s.flags.yes {
		safetext.Fprintln(s.Out, checklistText(items))
		for i, item := range items {
			if item.Marked {
				marked = append(marked, i)
			}
		}
	} else if marked, err = s.askChecklist(ctx, "copies", items); err != nil {
		return nil, errSetupStopped
	}
	for _, i := range marked {
		picks = append(picks, admin.ImportPick{Index: offers[i].Index})
	}
	for _, n := range admin.UnresolvedPicks(scan, picks) {
		if err := s.askImportName(ctx, scan, picks, n); err != nil {
			return nil, err
		}
	}
	return picks, nil
}

// askImportName asks for another name of the server picks[n], until the name is valid and free. It stores the name in
// picks[n].As.
func (s *setupRun) askImportName(ctx context.Context, scan config.ImportScan, picks []admin.ImportPick, n int) error {
	d, ok := s.startDialogue(ctx)
	if !ok {
		return errSetupStopped
	}
	defer d.Close()
	c := scan.Candidates[picks[n].Index]
	free := admin.FreeImportName(scan, picks, picks[n].Index)
	for {
		answer, err := d.Ask(fmt.Sprintf("%q is taken. Name for the one of %s [%s]: ", c.Name, c.ProviderTitle, free))
		if err != nil {
			d.Say("")
			return errSetupStopped
		}
		picks[n].As = drawbridge.ServerID(strings.TrimSpace(answer))
		if picks[n].As == "" {
			picks[n].As = free
		}
		problem := picks[n].As.Validate()
		switch {
		case problem != nil:
			d.Say(problem.Error())
		case slices.Contains(admin.UnresolvedPicks(scan, picks[:n+1]), n):
			d.Say(fmt.Sprintf("%q is taken too", picks[n].As))
		default:
			return nil
		}
	}
}

// connectClients is the third step: it adds Drawbridge to the configuration of the clients that the person chooses.
func (s *setupRun) connectClients(ctx context.Context) error {
	s.heading(3, "put Drawbridge into your clients (drawbridge disconnect restores each file exactly)")
	ids, err := s.pickClients(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		o := clientConfigFlags{yes: s.flags.yes, replace: s.flags.replace, noList: true, force: s.flags.force,
			defaultYes: true}
		switch err := s.connectClient(ctx, id, o); {
		case errors.Is(err, errAlreadyPrinted): // the person said no
		case err != nil:
			return err
		default:
			s.changed = true
		}
	}
	for _, c := range s.adminService().ClientStates() {
		if c.Connected {
			s.connected, s.clientIDs = append(s.connected, c.Title), append(s.clientIDs, c.Client)
		}
	}
	return nil
}

// pickClients asks which clients to connect and returns their IDs. With --yes it returns the IDs that --connect names.
func (s *setupRun) pickClients(ctx context.Context) (ids []string, err error) {
	var items []checklistItem
	var offered []admin.ClientState
	set, err := s.readConfig(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range s.adminService().ClientStates() {
		direct, _ := s.adminService().DirectCopies(c.Client, set) // c.Problem names an unreadable file
		switch {
		case c.Problem != "" && c.Present:
			safetext.Fprintf(s.Out, "skipped: %s\n", c.Problem)
		case !c.Present:
		case c.Connected && len(direct) == 0:
			safetext.Fprintf(s.Out, "✓ %s is connected\n", c.Title)
		default:
			offered = append(offered, c)
			note := ""
			if c.Connected {
				note = directCopiesText(c.Title, direct)
			}
			items = append(items, checklistItem{[]string{c.Title, s.abbreviateHome(c.File)}, note, true})
		}
	}
	if s.flags.yes {
		if len(s.flags.connect) == 0 && len(items) > 0 {
			safetext.Fprintf(s.Out, "no client was changed (drawbridge connect CLIENT, or setup --connect CLIENT): %s\n%s\n",
				"these are here", checklistText(unmarked(items)))
		}
		return s.flags.connect, nil
	}
	if len(items) == 0 {
		if !slices.ContainsFunc(s.adminService().ClientStates(), func(c admin.ClientState) bool { return c.Present }) {
			fmt.Fprintln(s.Out, "no client was found on this machine")
		}
		return nil, nil
	}
	chosen, err := s.askChecklist(ctx, "connects", items)
	if err != nil {
		return nil, errSetupStopped
	}
	for _, i := range chosen {
		ids = append(ids, offered[i].Client)
	}
	return ids, nil
}

func unmarked(items []checklistItem) []checklistItem {
	items = slices.Clone(items)
	for i := range items {
		items[i].Marked = false
	}
	return items
}

// finish prints a first request to try, and the command that undoes the setup.
func (s *setupRun) finish(ctx context.Context) error {
	fmt.Fprintln(s.Out)
	if !s.changed {
		fmt.Fprintln(s.Out, "✓ nothing was changed")
	} else {
		fmt.Fprintln(s.Out, "✓ Drawbridge is set up")
	}
	trial, found := admin.SuggestTrial(s.cards)
	switch {
	case found && len(s.connected) > 0:
		safetext.Fprintf(s.Out, "Try it: restart %s and ask: %s\n", s.connected[0], trial.Ask)
	case found:
		safetext.Fprintf(s.Out, "Try it: drawbridge tools show %s; then drawbridge connect CLIENT\n", trial.Tool)
	default:
		fmt.Fprintln(s.Out, "No tool was found yet: drawbridge doctor names each problem with its fix")
	}
	if s.hasModel(ctx) {
		fmt.Fprintln(s.Out, "Talk to a model that uses the tools: drawbridge")
	} else {
		fmt.Fprintln(s.Out, agentNeedsKeyText)
	}
	if len(s.clientIDs) > 0 {
		safetext.Fprintf(s.Out, "Undo it: drawbridge disconnect %s\n", strings.Join(s.clientIDs, "; drawbridge disconnect "))
	}
	return nil
}

func joinServers(ids []drawbridge.ServerID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = string(id)
	}
	return strings.Join(words, ", ")
}
