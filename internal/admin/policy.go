package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
)

// A RuleCheck is the result of checking the rules in a file.
type RuleCheck struct {
	Rules   int    `json:"rules"`
	Default string `json:"default_effect"`
	// Warnings describe valid rules that are probably a mistake. It is empty if the file has mistakes.
	Warnings []string `json:"warnings"`
	// Mistakes are all mistakes in the file, sorted by line. Servers do not start with such a file.
	Mistakes []config.Mistake `json:"mistakes"`
}

// CheckRules checks the rules in a settings file, such as drawbridge.toml; an empty name means the person's own file.
// The error is that of config.LoadRules.
func (r *Service) CheckRules(file string) (RuleCheck, error) {
	c := RuleCheck{Default: drawbridge.Allow.String(), Warnings: []string{}, Mistakes: []config.Mistake{}}
	f, err := config.LoadRules(r.rulesFileOptions(file))
	if err != nil {
		return c, err
	}
	c.Mistakes = append(c.Mistakes, f.Mistakes...)
	if f.Rules != nil {
		c.Rules, c.Default = len(f.Rules.Rules), f.Rules.Default.String()
		for _, m := range policy.Mistakes(*f.Rules) {
			c.Mistakes = append(c.Mistakes, ruleMistake(m))
		}
	}
	if len(c.Mistakes) > 0 {
		slices.SortStableFunc(c.Mistakes, func(a, b config.Mistake) int { return cmp.Compare(a.Line, b.Line) })
		return c, nil
	}
	warnings, err := gateway.CheckRules(f.Rules)
	if err != nil {
		return c, err
	}
	c.Warnings = append(c.Warnings, warnings...)
	if f.Inactive != "" {
		c.Warnings = append(c.Warnings, f.Inactive)
	}
	return c, nil
}

// rulesFileOptions returns the options to read a settings file; an empty name means the person's own file.
func (r *Service) rulesFileOptions(file string) config.Options {
	return config.Options{Dir: r.o.ConfigOptions.Dir, LookupEnv: r.o.ConfigOptions.LookupEnv, SettingsFile: file}
}

// ruleMistake converts an error in a rule, whose position is "file:line", to a mistake.
func ruleMistake(m *policy.RuleError) config.Mistake {
	out := config.Mistake{File: m.Position, Text: m.Err.Error()}
	if i := strings.LastIndexByte(m.Position, ':'); i >= 0 {
		if line, err := strconv.Atoi(m.Position[i+1:]); err == nil {
			out.File, out.Line = m.Position[:i], line
		}
	}
	return out
}

// ReplayRules applies the rules of a settings file to the calls recorded since a time; an empty name means the person's
// own file. The error is that of config.LoadSettings, of run, or of gateway.Gateway.Replay.
func (r *Service) ReplayRules(ctx context.Context, run GatewayRunner, file string, since time.Time) (
	report gateway.ReplayReport, err error) {
	s, err := config.LoadSettings(r.rulesFileOptions(file))
	if err != nil {
		return report, err
	}
	err = run(ctx, func(ctx context.Context, g *gateway.Gateway) (err error) {
		report, err = g.Replay(ctx, s.Rules, since)
		return err
	})
	return report, err
}

// A GatewayRunner opens a gateway, calls work with it, and closes it. The servers of the gateway start when they are
// needed.
type GatewayRunner func(ctx context.Context, work func(context.Context, *gateway.Gateway) error) error

// A CallerChange describes a caller by its differences from the owner. The zero value means the owner.
type CallerChange struct {
	// Principal is another principal; the caller is then an external caller.
	Principal string
	// Client is the name that the client declares.
	Client string
	// Kind is the name of a drawbridge.CallerKind.
	Kind string
	// Scopes replace all scopes of the owner; nil does not replace them.
	Scopes []string
}

// Validate returns a UserError for an unknown kind.
func (c CallerChange) Validate() error {
	if c.Kind != "" && parseCallerKind(c.Kind) == drawbridge.Nobody {
		return UserError(`--kind is "author", "agent", "external", "import" or "sandbox"`)
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

// Apply returns the owner with the changes applied.
func (c CallerChange) Apply(owner drawbridge.Caller) drawbridge.Caller {
	if c.Principal != "" {
		owner.Principal, owner.Kind = c.Principal, drawbridge.External
	}
	if c.Kind != "" {
		owner.Kind = parseCallerKind(c.Kind)
	}
	if c.Client != "" {
		owner.Client, _ = json.Marshal(map[string]string{"name": c.Client})
	}
	if c.Scopes != nil {
		owner.Scopes = nil
		for _, scope := range c.Scopes {
			owner.Scopes = append(owner.Scopes, drawbridge.Scope(scope))
		}
	}
	return owner
}
