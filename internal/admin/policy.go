package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A RuleCheck is the result of CheckRules. Rules is the number of rules in the file, and Default is the effect for
// calls to which no rule applies.
type RuleCheck struct {
	Rules   int    `json:"rules"`
	Default string `json:"default_effect"`
	// Warnings describe rules that are valid but probably have an unwanted effect. It is empty if Mistakes is not
	// empty.
	Warnings []string `json:"warnings"`
	// Mistakes are the errors in the file, sorted by line. Drawbridge does not start servers while the file has errors.
	Mistakes []config.Mistake `json:"mistakes"`
}

// CheckRules checks the rules for calls in a settings file, such as drawbridge.toml. If file is empty, it checks the
// person's own settings file. The error is that of config.LoadRules, for a file that cannot be read.
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

// rulesFileOptions returns the options for reading the settings file at the path file. If file is empty, they select
// the person's own settings file.
func (r *Service) rulesFileOptions(file string) config.Options {
	return config.Options{Dir: r.o.ConfigOptions.Dir, LookupEnv: r.o.ConfigOptions.LookupEnv, SettingsFile: file}
}

// ruleMistake converts an error in a rule to a config.Mistake. It splits the position, which has the form "file:line".
func ruleMistake(m *policy.RuleError) config.Mistake {
	out := config.Mistake{File: m.Position, Text: m.Err.Error()}
	if i := strings.LastIndexByte(m.Position, ':'); i >= 0 {
		if line, err := strconv.Atoi(m.Position[i+1:]); err == nil {
			out.File, out.Line = m.Position[:i], line
		}
	}
	return out
}

// ReplayRules reports how the rules of a settings file would have decided on the calls that the audit has recorded
// since a time. No call is repeated. If file is empty, the rules are from the person's own settings file. The error is
// that of config.LoadSettings, of run, or of gateway.Gateway.Replay.
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

// A GatewayRunner is a function that opens a gateway, calls work with it, and closes it when work returns. The gateway
// starts a server only when work needs the server.
type GatewayRunner func(ctx context.Context, work func(context.Context, *gateway.Gateway) error) error

// A CallerChange describes a caller for a test of the rules, by its differences from the owner of this process. The
// zero value means the owner.
type CallerChange struct {
	// Principal is the principal of the caller; empty means the owner. If it is set and Kind is empty, the caller is an
	// external caller.
	Principal string
	// Client is the name that the caller's client declares; empty means the owner's client.
	Client string
	// Kind is the name of a drawbridge.CallerKind, such as "external"; empty does not change the kind.
	Kind string
	// Thread is the ID of the session of the agent that calls; empty for other callers.
	Thread string
	// Scopes are all scopes of the caller; nil means the scopes of the owner.
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

// Apply returns the caller that c describes; owner is the caller to which it applies the differences.
func (c CallerChange) Apply(owner drawbridge.Caller) drawbridge.Caller {
	if c.Principal != "" {
		owner.Principal, owner.Kind = c.Principal, drawbridge.External
	}
	if c.Kind != "" {
		owner.Kind = parseCallerKind(c.Kind)
	}
	if c.Thread != "" {
		owner.Kind, owner.Thread, owner.Run = drawbridge.Agent, c.Thread, c.Thread
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

// ExplainCall explains the verdict on a call that who would make; owner is the caller of this process. The session of
// who may be given by the beginning of its ID; values that the person typed in it are trusted. The error is that of
// gateway.Gateway.Explain, a *drawbridge.Fault with the code NotFound for an unknown session, or a UserError if several
// IDs begin so.
func (r *Service) ExplainCall(ctx context.Context, g *gateway.Gateway, owner drawbridge.Caller, who CallerChange,
	name string, arguments json.RawMessage) (e gateway.Explanation, err error) {
	if who.Thread == "" {
		return g.Explain(who.Apply(owner), name, arguments)
	}
	root, _ := gateway.SessionsRoot(r.o.ConfigOptions.LookupEnv)
	found, err := agent.FindSessions(root, who.Thread)
	if err != nil {
		return e, err
	}
	if len(found) > 1 {
		return e, userErrorf("explain the call: %d sessions have an ID that begins with %s (write more of the ID)",
			len(found), safetext.Line(who.Thread))
	}
	var typed []string
	if len(found) == 1 {
		who.Thread = found[0]
		for _, p := range agent.ListPrompts(root, who.Thread) {
			typed = append(typed, p.Typed...)
		}
	}
	e, err = g.ExplainInSession(ctx, who.Apply(owner), typed, name, arguments)
	if err == nil && len(found) == 0 && e.Flow == nil { // not a session of a Go program either
		return e, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.NotFound, Step: "explain the call",
			Err:  fmt.Errorf("no session has an ID that begins with %s", safetext.Line(who.Thread)),
			Next: "/session in a session shows its ID"}
	}
	return e, err
}
