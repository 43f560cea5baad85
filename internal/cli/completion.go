package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// A completer returns the possible words for one argument of a command. The arguments in front of it are in before. A
// completer starts no server.
type completer func(ctx context.Context, before []string) ([]string, error)

// addCompletions sets the completion function of each command that takes names as arguments.
func (a *app) addCompletions(root *cobra.Command) {
	servers, tools, held := a.completeServers, a.completeTools, a.completeHeldTools
	for path, words := range map[string][]completer{
		"mcp get": {servers}, "mcp test": {servers}, "mcp remove": {servers}, "mcp enable": {servers},
		"mcp disable": {servers}, "mcp auth": {servers}, "mcp reauth": {servers}, "mcp unauth": {servers},
		"mcp reconnect": {servers}, "mcp resources": {servers}, "mcp prompts": {servers},
		"mcp notifications": {servers},
		"mcp approve":       {servers}, "mcp reject": {servers}, "logs": {servers}, "secret move": {servers},
		"lock write": {servers}, "lock verify": {servers},
		"shield held": {servers, held}, "shield accept": {servers, held}, "shield reject": {servers, held},
		"shield trust": {servers}, "shield unlock": {servers},
		"tools show": {tools}, "tools call": {tools}, "policy explain": {tools},
		"client remove": {a.completeClients}, "models": {a.completeModelProviders},
		"addon approve": {a.completeAddons}, "addon reject": {a.completeAddons},
		"ask show": {a.completePendingCalls}, "ask allow": {a.completePendingCalls},
		"ask deny": {a.completePendingCalls}, "ask revoke": {a.completeGrants},
		"workspace show": {a.completePages}, "workspace tree": {a.completePages}, "workspace history": {a.completePages},
		"workspace why": {a.completePages},
		"review accept": {a.completeCandidates}, "review reject": {a.completeCandidates}, "review done": {a.completeFlagged},
		"review endorsements revoke": {a.completeEndorsements},
	} {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil {
			panic("complete " + path + ": " + err.Error())
		}
		cmd.ValidArgsFunction = completionOf(words)
	}
}

// completionOf returns a completion function for cobra: words[i] completes argument i of a command. Further arguments
// have no completion.
func completionOf(words []completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, before []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(before) >= len(words) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := words[len(before)](cmd.Context(), before)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return safetext.Lines(found), cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) completeAddons(ctx context.Context, _ []string) (ids []string, err error) {
	all, err := a.adminService().Addons(ctx)
	for _, f := range all {
		if f.FromProject {
			ids = append(ids, f.ID)
		}
	}
	return ids, err
}

// completeModelProviders returns the providers of language models: those of the settings and the built-in ones.
func (a *app) completeModelProviders(ctx context.Context, _ []string) ([]string, error) {
	models, _, err := a.openChatModels(ctx)
	if err != nil {
		return nil, err
	}
	return models.ProviderNames(), models.Close()
}

func (a *app) completeServers(ctx context.Context, _ []string) (names []string, err error) {
	roll, err := a.adminService().ReadServers(ctx)
	for _, row := range roll.Servers {
		names = append(names, string(row.ID))
	}
	return names, err
}

// completeTools returns the tools of the last listing of each server.
func (a *app) completeTools(ctx context.Context, _ []string) (names []string, err error) {
	g, err := a.openOnDemandGateway(ctx)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	for _, spec := range g.Deck().Cards(commandLineCaller(g)) {
		names = append(names, string(spec.Name))
	}
	return names, nil
}

// completeHeldTools returns the held tools of the server that the first argument names.
func (a *app) completeHeldTools(ctx context.Context, before []string) (names []string, err error) {
	held, err := a.adminService().HeldTools(ctx, drawbridge.ServerID(before[0]))
	for _, h := range held {
		names = append(names, h.Label())
	}
	return names, err
}

func (a *app) completeClients(ctx context.Context, _ []string) (names []string, err error) {
	clients, err := a.adminService().Clients(ctx)
	for _, c := range clients {
		names = append(names, c.Name)
	}
	return names, err
}

func (a *app) completePendingCalls(ctx context.Context, _ []string) (ids []string, err error) {
	queue, err := a.adminService().OpenApprovals(ctx, false)
	if err != nil {
		return nil, err
	}
	calls, err := queue.Pending(ctx)
	for _, c := range calls {
		ids = append(ids, c.ID)
	}
	return ids, errors.Join(err, queue.Close())
}

func (a *app) completeGrants(ctx context.Context, _ []string) (ids []string, err error) {
	queue, err := a.adminService().OpenApprovals(ctx, false)
	if err != nil {
		return nil, err
	}
	grants, err := queue.Grants(ctx)
	for _, g := range grants {
		ids = append(ids, g.ID)
	}
	return ids, errors.Join(err, queue.Close())
}

func (a *app) completeEndorsements(ctx context.Context, _ []string) (ids []string, err error) {
	all, err := a.adminService().Endorsements(ctx)
	for _, e := range all {
		ids = append(ids, e.ID)
	}
	return ids, err
}
