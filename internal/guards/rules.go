// Package guards is the guard that carries out a person's rules on the deck: package policy decides, this one says so
// to callers and to the log.
//
// It promises that a call is decided by the rules of one moment, and that who is denied hears no more than that.
package guards

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
)

// A RuleGuard has the rules that count now. Without any it allows everything.
type RuleGuard struct {
	logger *slog.Logger
	rules  atomic.Pointer[ruleSet]
}

var _ deck.ExplainingGuard = (*RuleGuard)(nil)

// An ruleSet is rules, and what rows say of servers: how far they are trusted, and where their relative paths may
// start. It is not changed after it was made.
type ruleSet struct {
	policy *policy.Policy
	trust  map[drawbridge.ServerID]string
	dirs   map[drawbridge.ServerID][]string
}

// NewRuleGuard makes a warden. It tells the log of calls that it refuses.
func NewRuleGuard(log *slog.Logger) *RuleGuard {
	w := &RuleGuard{logger: log}
	w.rules.Store(&ruleSet{})
	return w
}

// CompileRules checks rules; nil are none. The error is a *drawbridge.Fault InvalidInput that names the file and the
// line.
func CompileRules(rules *drawbridge.Rules) (*policy.Policy, error) {
	if rules == nil {
		return nil, nil
	}
	p, err := policy.New(*rules)
	if wrong, ok := err.(*policy.RuleError); ok {
		step := "read the rules"
		if wrong.Position != "" {
			step = "read " + wrong.Position
		}
		return nil, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: step, Err: wrong.Err,
			Next: "drawbridge policy check",
		}
	}
	return p, err
}

// Update puts rules in the place of those that count, nil for none, with what the rows say, and the directories that
// all servers are told of.
func (w *RuleGuard) Update(p *policy.Policy, rows []config.Server, roots []string) {
	o := &ruleSet{
		policy: p, trust: make(map[drawbridge.ServerID]string, len(rows)),
		dirs: make(map[drawbridge.ServerID][]string, len(rows)),
	}
	for id, row := range ActiveRows(rows) {
		o.trust[id], o.dirs[id] = TrustLevel(row), RelativeDirs(row, roots)
	}
	w.rules.Store(o)
}

// ActiveRows gives rows by their names: of several of one name that which may be mounted, or else the first. A row
// that a project brings must not say how far a person's own server is trusted.
func ActiveRows(rows []config.Server) map[drawbridge.ServerID]config.Server {
	out := make(map[drawbridge.ServerID]config.Server, len(rows))
	for _, row := range rows {
		if _, taken := out[row.ID]; !taken || row.Phase == drawbridge.Idle {
			out[row.ID] = row
		}
	}
	return out
}

// RelativeDirs are the directories that relative paths may start at in calls of a row's server: that which its program
// starts in, those that the arguments of its command name, and those that it is told of. What is no directory among
// them does no harm.
func RelativeDirs(row config.Server, roots []string) (all []string) {
	add := func(dir string) {
		if policy.IsFileURI(dir) {
			dir = policy.PathSpellings(dir, "")[0]
		}
		if dir != "" && !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	if row.URL == "" {
		add(row.Cwd)
		for _, arg := range row.Args {
			for _, dir := range policy.CommandPaths(arg) { // "--mount=type=bind,src=/x", or the line of a shell
				add(dir)
			}
			if strings.HasPrefix(arg, "-") {
				_, arg, _ = strings.Cut(arg, "=")
			}
			switch {
			case filepath.IsAbs(arg):
				add(arg)
			// it begins where the program does
			case arg != "" && row.Cwd != "" && !strings.HasPrefix(arg, "~") && !policy.IsFileURI(arg):
				add(filepath.Join(row.Cwd, arg))
			}
		}
	}
	for _, root := range roots {
		add(root)
	}
	return all
}

// RelativeDirs are those of a server by the rows that count now. They are not to be changed.
func (w *RuleGuard) RelativeDirs(id drawbridge.ServerID) []string { return w.rules.Load().dirs[id] }

// TrustLevel is the word by which rules know how far a row's server is trusted.
func TrustLevel(row config.Server) string { return cmp.Or(row.Trust, untrusted) }

const untrusted = "untrusted"

// trustLevel is how far the server is trusted.
func (o *ruleSet) trustLevel(id drawbridge.ServerID) string {
	if level := o.trust[id]; level != "" {
		return level
	}
	return untrusted
}

// Decide answers a question by the rules.
func (w *RuleGuard) Decide(_ context.Context, q deck.Question) drawbridge.Verdict {
	o := w.rules.Load()
	if o.policy == nil {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	d := o.policy.Decide(o.policyQuestion(q))
	v := drawbridge.Verdict{Effect: d.Effect, Hide: d.Hidden, Rule: ruleLabel(&d)}
	if d.Effect == drawbridge.Deny {
		v.Reason = policy.DeniedMessage
	}
	if d.Effect != drawbridge.Allow {
		w.logger.Warn(decisionMessage(d.Effect), "caller", q.Caller.Principal, "kind", q.Caller.Kind.String(),
			"method", q.Method,
			"server", q.Spec.Server, "card", q.Spec.Name, "why", d.Why, "at", d.At)
	}
	return v
}

// ruleLabel names the rule that decided: by where it is written, or by its number. None decided where it is empty.
func ruleLabel(d *policy.Decision) string {
	if d.At != "" || d.Rule == 0 {
		return d.At
	}
	return ruleNumberLabel(d.Rule)
}

func ruleNumberLabel(rule int) string { return "rule " + strconv.Itoa(rule) }

// decisionMessage is what the log is told of a verdict that does not let a call pass by itself.
func decisionMessage(e drawbridge.Effect) string {
	if e == drawbridge.Ask {
		return "a rule wants a person asked about a call"
	}
	return "a rule refused a call"
}

// Explain answers a question as Decide does, and says what each rule said. Without rules there is nothing to say.
func (w *RuleGuard) Explain(q deck.Question) (policy.Decision, []policy.TraceStep) {
	o := w.rules.Load()
	if o.policy == nil {
		return policy.Decision{Effect: drawbridge.Allow, Why: "there are no rules"}, nil
	}
	return o.policy.Explain(o.policyQuestion(q))
}

// policyQuestion is the deck's in the words of the rules.
func (o *ruleSet) policyQuestion(q deck.Question) policy.Request {
	return policy.Request{
		Caller: q.Caller, Kind: q.Kind, Spec: q.Spec, Method: q.Method, Params: q.Params,
		Trust: o.trustLevel(q.Spec.Server),
		Dirs:  o.dirs[q.Spec.Server],
	}
}

// Hides says what no call of the caller will be allowed to.
func (w *RuleGuard) Hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) bool {
	o := w.rules.Load()
	return o.policy != nil && o.policy.IsHidden(&caller, kind, &spec, o.trustLevel(spec.Server))
}

// HideReason says by which rule something is hidden.
func (w *RuleGuard) HideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) drawbridge.Verdict {
	o := w.rules.Load()
	if o.policy == nil {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	d := o.policy.HiddenDecision(&caller, kind, &spec, o.trustLevel(spec.Server))
	return drawbridge.Verdict{Effect: d.Effect, Rule: ruleLabel(&d), Reason: d.Why}
}

// CallerClass says what the caller is to the rules.
func (w *RuleGuard) CallerClass(caller drawbridge.Caller) string {
	if p := w.rules.Load().policy; p != nil {
		return p.CallerClass(caller)
	}
	return ""
}

// HidesAnything says whether there are rules.
func (w *RuleGuard) HidesAnything() bool { return w.rules.Load().policy != nil }
