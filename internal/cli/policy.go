package cli

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/policy"
	"github.com/spf13/cobra"
)

func (a *app) policyCommand() *cobra.Command {
	rules := func(file string) (*drawbridge.Rules, error) {
		s, err := config.LoadSettings(config.Options{Dir: a.Dir, LookupEnv: a.Env, Settings: file})
		return s.Rules, err
	}
	with := func(ctx context.Context, work func(*gateway.Gateway, drawbridge.Caller) error) error {
		return a.withDeck(ctx, func(ctx context.Context, g *gateway.Gateway) error {
			a.awaitNew(ctx, g)
			return work(g, person(g))
		})
	}
	return group(policy.Desk{Out: a.Out, Rules: rules, With: with}.Command())
}
