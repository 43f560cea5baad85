package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// policyCommands runs the commands on rules.
type policyCommands struct {
	Out io.Writer
	// In is read for the arguments "-".
	In io.Reader
	// ConfigOptions locates drawbridge.toml.
	ConfigOptions config.Options
	// WithGateway runs work with a gateway; Await waits for servers that were never listed.
	WithGateway     func(ctx context.Context, work func(context.Context, *gateway.Gateway) error) error
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

// ruleCheckJSON is the JSON document of "policy check --json".
type ruleCheckJSON struct {
	Rules    int      `json:"rules"`
	Default  string   `json:"default_effect"`
	Warnings []string `json:"warnings"`
}

func (d policyCommands) checkCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check the rules of drawbridge.toml, or of a file like it",
		Long: `Check the rules of drawbridge.toml, or of a file like it. A mistake is named with its file and line,
and the exit code is 2: no server starts with such a file. Valid rules that are probably a
mistake, such as one that can never match, are reported too.`,
		Args: maxOneRuleFile,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := d.checkRules(args)
			switch {
			case err != nil:
				return err
			case asJSON:
				return PrintJSON(d.Out, c)
			}
			for _, w := range c.Warnings {
				safetext.Fprintln(d.Out, w)
			}
			_, err = safetext.Fprintf(d.Out, "no mistakes: %s, and where none matches: %s\n",
				formatCount(c.Rules, "rule"), c.Default)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// checkRules reads and checks the rules of a file, or of the person's drawbridge.toml if none is named.
func (d policyCommands) checkRules(file []string) (ruleCheckJSON, error) {
	places := d.ConfigOptions
	if len(file) > 0 {
		places.SettingsFile = file[0]
	}
	s, err := config.LoadSettings(places)
	if err != nil {
		return ruleCheckJSON{}, err
	}
	warnings, err := gateway.CheckRules(s.Rules)
	if err != nil {
		return ruleCheckJSON{}, err
	}
	c := ruleCheckJSON{Default: drawbridge.Allow.String(), Warnings: append([]string{}, warnings...)}
	if s.InactiveRules != "" {
		c.Warnings = append(c.Warnings, s.InactiveRules)
	}
	if s.Rules != nil {
		c.Rules, c.Default = len(s.Rules.Rules), s.Rules.Default.String()
	}
	return c, nil
}

func (d policyCommands) explainCommand() *cobra.Command {
	var asJSON bool
	var who callerFlags
	cmd := &cobra.Command{
		Use:   "explain NAME [JSON | KEY=VALUE...]",
		Short: "Explain the decision on a call",
		Long: `Explain the decision on a call of a tool, a prompt or a resource, by any of its names or its URI,
with these arguments (one JSON object, or KEY=VALUE words): allow, ask or deny, the rule that decided,
and the result of each rule before it. Nothing is called. The caller is you, or the one that --caller, --client, --kind and
--scope describe; the principal of a client with a token of its own is "client:NAME".`,
		Example: `  drawbridge policy explain fs__write_file path=/etc/hosts
  drawbridge policy explain fs__write_file '{"path":"/etc/hosts"}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return admin.UserError("explain takes a name, and arguments after it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := who.validate(); err != nil {
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
				e, err := g.Explain(who.applyTo(d.Caller(g)), args[0], given)
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
	flags.StringVar(&who.principal, "caller", "", "the `PRINCIPAL` of an external caller")
	flags.StringVar(&who.client, "client", "", "the name that the client sends")
	flags.StringVar(&who.kind, "kind", "", "the kind of caller: `author`, agent, external, import or sandbox")
	flags.StringArrayVar(&who.scopes, "scope", nil, "a `SCOPE` that the caller holds, instead of all; may be repeated")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func maxOneRuleFile(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return admin.UserError("check takes one file")
	}
	return nil
}

func (d policyCommands) printExplanation(e gateway.Explanation) error {
	safetext.Fprintf(d.Out, "%s: %s %s", e.Effect, e.Kind, e.Name)
	if e.Hidden {
		safetext.Fprintf(d.Out, " (hidden from %s)", e.Caller)
	}
	safetext.Fprintf(d.Out, "\n%s", e.Why)
	if e.At != "" {
		safetext.Fprintf(d.Out, " (%s)", e.At)
	}
	fmt.Fprintln(d.Out)
	tw := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', 0)
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
	return tw.Flush()
}

// callerFlags describe a caller. The zero value is the owner.
type callerFlags struct {
	principal, client, kind string
	scopes                  []string
}

func (s callerFlags) validate() error {
	if s.kind != "" && parseCallerKind(s.kind) == drawbridge.Nobody {
		return admin.UserError(`--kind is "author", "agent", "external", "import" or "sandbox"`)
	}
	return nil
}

func parseCallerKind(word string) drawbridge.CallerKind {
	for k := drawbridge.Author; k <= drawbridge.Sandbox; k++ {
		if k.String() == word {
			return k
		}
	}
	return drawbridge.Nobody
}

// applyTo returns the owner, changed by the flags.
func (s callerFlags) applyTo(c drawbridge.Caller) drawbridge.Caller {
	if s.principal != "" {
		c.Principal, c.Kind = s.principal, drawbridge.External
	}
	if s.kind != "" {
		c.Kind = parseCallerKind(s.kind)
	}
	if s.client != "" {
		c.Client, _ = json.Marshal(map[string]string{"name": s.client})
	}
	if s.scopes != nil {
		c.Scopes = nil
		for _, scope := range s.scopes {
			c.Scopes = append(c.Scopes, drawbridge.Scope(scope))
		}
	}
	return c
}
