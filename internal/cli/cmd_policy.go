package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// policyCommands implements the command "policy" and its subcommands.
type policyCommands struct {
	// Out receives results, and Err receives the mistakes in rules.
	Out, Err io.Writer
	// In is the input that is read if the arguments of a call are "-".
	In io.Reader
	// Admin returns the service that checks and applies rules.
	Admin func() *admin.Service
	// WithGateway runs work with a gateway. AwaitNewServers starts the servers that were never listed and waits for
	// them.
	WithGateway     admin.GatewayRunner
	AwaitNewServers func(ctx context.Context, g *gateway.Gateway)
	// Caller returns the caller of the command line.
	Caller func(g *gateway.Gateway) drawbridge.Caller
}

// command returns the command "policy" with its subcommands.
func (d policyCommands) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Check the rules for calls, and test calls against them",
		Long: `Check the rules for calls, and test a call or the recorded calls against them. The rules are in
drawbridge.toml under [tools.policy]; docs/policy.md describes them.`,
		Example: `  drawbridge policy check
  drawbridge policy explain fs__write_file '{"path":"/etc/hosts"}'
  drawbridge policy explain shell --caller client:ci --json
  drawbridge policy replay --since 168h --file stricter.toml`,
	}
	cmd.AddCommand(d.checkCommand(), d.explainCommand(), d.replayCommand())
	return cmd
}

func (d policyCommands) checkCommand() *cobra.Command {
	var asJSON bool
	var file string
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check the rules of drawbridge.toml, or of a file like it",
		Long: `Check the rules of drawbridge.toml, or of a file like it. All mistakes are named with file and line,
and the exit code is 2: no server starts with such a file. Valid rules that are probably a
mistake, such as one that can never match, are reported too.`,
		Example: "  drawbridge policy check\n  drawbridge policy check --file stricter.toml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && file != "" {
				return admin.UserError("check takes one file")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				file = args[0]
			}
			c, err := d.Admin().CheckRules(file)
			if err != nil {
				return err
			}
			return d.printRuleCheck(c, asJSON)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the rules of that `FILE` instead of your own")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// printRuleCheck prints the result of a check. The error is an ExitError if there are mistakes.
func (d policyCommands) printRuleCheck(c admin.RuleCheck, asJSON bool) (err error) {
	if asJSON {
		err = PrintJSON(d.Out, c)
	}
	for _, m := range c.Mistakes {
		if !asJSON {
			safetext.Fprintln(d.Err, safetext.Line(m.String()))
		}
	}
	switch {
	case err != nil:
		return err
	case len(c.Mistakes) > 0:
		return ExitError(exitUsage)
	case asJSON:
		return nil
	}
	for _, w := range c.Warnings {
		safetext.Fprintln(d.Out, w)
	}
	_, err = safetext.Fprintf(d.Out, "no mistakes: %s, and where none matches: %s\n",
		formatCount(c.Rules, "rule"), c.Default)
	return err
}

func (d policyCommands) explainCommand() *cobra.Command {
	var asJSON bool
	var who admin.CallerChange
	cmd := &cobra.Command{
		Use:   "explain NAME [JSON | KEY=VALUE...]",
		Short: "Explain the decision on a call",
		Long: `Explain the decision on a call of a tool, a prompt or a resource, by any of its names or its URI,
with these arguments (one JSON object, or KEY=VALUE words): allow, ask or deny, the rule that decided,
and the result of each rule before it. Nothing is called. The caller is you, or the one that
--caller, --client, --kind and --scope describe; the principal of a client with a token of its own
is "client:NAME".

With --thread, the caller is the agent in a session. Then the verdict of the rules is followed by
that of information flow: the label of the run, the values that need an endorsement, and what the
run has read. docs/information-flow.md is the guide.`,
		Example: `  drawbridge policy explain fs__write_file path=/etc/hosts
  drawbridge policy explain fs__write_file '{"path":"/etc/hosts"}'
  drawbridge policy explain bank__pay iban=NL99EVIL0000000001 --thread 01M8JEA6YN`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return admin.UserError("explain takes a name, and arguments after it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := who.Validate(); err != nil {
				return err
			}
			return d.WithGateway(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				d.AwaitNewServers(ctx, g)
				var given json.RawMessage
				if len(args) > 1 {
					_, spec, _ := g.Deck().FindUnfiltered(args[0])
					var err error
					if given, err = parseCallArguments(d.In, spec, args[1:]); err != nil {
						return err
					}
				}
				e, err := d.Admin().ExplainCall(ctx, g, d.Caller(g), who, args[0], given)
				switch {
				case err != nil:
					return err
				case asJSON:
					return PrintJSON(d.Out, e)
				}
				return d.printExplanation(e)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&who.Principal, "caller", "", "the `PRINCIPAL` of an external caller")
	flags.StringVar(&who.Client, "client", "", "the name that the client sends")
	flags.StringVar(&who.Kind, "kind", "", "the kind of caller: `author`, agent, external, import or sandbox")
	flags.StringArrayVar(&who.Scopes, "scope", nil, "a `SCOPE` that the caller holds, instead of all; may be repeated")
	flags.StringVar(&who.Thread, "thread", "",
		"the ID of the `SESSION` of the agent that calls, or its beginning; /session shows it")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (d policyCommands) printExplanation(e gateway.Explanation) error {
	safetext.Fprintf(d.Out, "%s: %s %s\n%s", e.Effect, e.Kind, e.Name, e.Why)
	if e.At != "" {
		safetext.Fprintf(d.Out, " (%s)", e.At)
	}
	if e.Hidden {
		kind := e.Kind
		if kind == "template" {
			kind = "resource" // the caller reads a resource
		}
		safetext.Fprintf(d.Out, "; hidden from %s (not listed, calls say 'unknown %s')", e.Caller, kind)
	}
	fmt.Fprintln(d.Out)
	tw := NewTable(d.Out)
	for _, s := range e.Steps {
		matched := "matches"
		switch {
		case s.Err != "":
			matched = s.Err
		case s.Match == "no":
			matched = "does not match: " + s.DecidedBy
		}
		safetext.Fprintf(tw, "  rule %d\t%s\t%s\n", s.Rule, s.Effect, matched)
	}
	if err := tw.Flush(); err != nil || e.Flow == nil {
		return err
	}
	safetext.Fprintf(d.Out, "information flow: %s; the run is %s\n", e.Flow.Effect, e.Flow.Label)
	for _, line := range flow.ReasonLines(e.Flow.Why) {
		safetext.Fprintf(d.Out, "  %s\n", line)
	}
	for _, s := range e.Flow.Sources {
		safetext.Fprintf(d.Out, "  it has read %s\n", s)
	}
	return nil
}
