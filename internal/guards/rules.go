// Package guards contains the guards that decide about calls before they are sent: rules, own files, own tools, rates
// and quotas. It also contains the approval of calls by a person, and the replay of logged calls. Table lists the
// guards in their order.
//
// Guards fail closed: a call is refused if it cannot be evaluated, counted or approved, or if a path in it cannot be
// resolved. Each decision uses one version of the rules, even if they are replaced meanwhile. A caller learns nothing
// about the rule that denied a call. An approval is valid only for one call, exactly as the person saw it, and is
// consumed before the call is sent. Quotas are stored by principal, so a new connection or process does not reset them.
// A stored count that cannot be read does not permit a call. The memory for rates and repeated calls is bounded.
//
// The guards examine only the content of a call. They cannot detect paths that a program composes itself, or hard
// links.
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
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
)

// A RuleGuard applies the current rules. If there are no rules, it allows every call.
type RuleGuard struct {
	logger *slog.Logger
	rules  atomic.Pointer[ruleSet]
	// labels returns the label of the run of a caller; nil knows none.
	labels func(drawbridge.Caller) flow.Label
}

var _ deck.ExplainingGuard = (*RuleGuard)(nil)

// A ruleSet contains the rules, and the trust level and the relative directories of each server. It is immutable.
type ruleSet struct {
	policy *policy.Policy
	trust  map[drawbridge.ServerID]string
	dirs   map[drawbridge.ServerID][]string
}

// NewRuleGuard returns a guard without rules. The guard logs the calls that it refuses.
func NewRuleGuard(log *slog.Logger) *RuleGuard {
	w := &RuleGuard{logger: log}
	w.rules.Store(&ruleSet{})
	return w
}

// UseLabels makes expressions in rules see the labels of runs. It must be called before the guard is used.
func (w *RuleGuard) UseLabels(g *FlowGuard) {
	w.labels = func(caller drawbridge.Caller) flow.Label {
		label, _, _ := g.LabelOfRun(g.ctx, caller) // with an error the label is the lowest
		return label
	}
}

// CompileRules compiles rules. It returns nil for nil rules. The error is a *drawbridge.Fault with code InvalidInput
// that contains the file and the line of the mistake.
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

// Update replaces the rules and the data of servers. If p is nil, there are no rules. roots are the directories that
// Drawbridge announces to every server.
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

// ActiveRows returns one row for each server name. A row is a server's entry in a configuration file. If several rows
// have the same name, it returns a row whose server can be started, or else the first row. So a project's row cannot
// change the trust level of a user's server.
func ActiveRows(rows []config.Server) map[drawbridge.ServerID]config.Server {
	out := make(map[drawbridge.ServerID]config.Server, len(rows))
	for _, row := range rows {
		if _, taken := out[row.ID]; !taken || row.Phase == drawbridge.Idle {
			out[row.ID] = row
		}
	}
	return out
}

// RelativeDirs returns the directories to which a server may join relative paths in a call. These are its working
// directory, paths in the arguments of its command, and roots. Some of the returned paths may be files.
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
			for _, dir := range policy.CommandPaths(arg) { // "--mount=type=bind,src=/x", or a shell command line
				add(dir)
			}
			if strings.HasPrefix(arg, "-") {
				_, arg, _ = strings.Cut(arg, "=")
			}
			switch {
			case filepath.IsAbs(arg):
				add(arg)
			// The program joins a relative path to its working directory.
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

// TrustLevel returns the trust level of a server, as rules name it. The default is "untrusted".
func TrustLevel(row config.Server) string { return cmp.Or(row.Trust, untrusted) }

const untrusted = "untrusted"

// trustLevel returns the trust level of the server with an id; "untrusted" for an unknown server.
func (o *ruleSet) trustLevel(id drawbridge.ServerID) string {
	if level := o.trust[id]; level != "" {
		return level
	}
	return untrusted
}

// Decide returns the verdict of the rules on a call, and logs the call if it is not allowed.
func (w *RuleGuard) Decide(_ context.Context, q deck.Question) drawbridge.Verdict {
	o := w.rules.Load()
	if o.policy == nil {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	d := o.policy.Decide(w.request(o, q))
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

// ruleLabel returns the position in the file of the rule that decided, or the rule's number. If no rule but the default
// decided, it returns "".
func ruleLabel(d *policy.Decision) string {
	if d.At != "" || d.Rule == 0 {
		return d.At
	}
	return ruleNumberLabel(d.Rule)
}

func ruleNumberLabel(rule int) string { return "rule " + strconv.Itoa(rule) }

// decisionMessage returns the log message for a decision that is not to allow.
func decisionMessage(e drawbridge.Effect) string {
	if e == drawbridge.Ask {
		return "a rule requires approval of a call"
	}
	return "a rule refused a call"
}

// Explain returns the decision of the rules on a call, and the result of each rule. If there are no rules, it returns
// no steps.
func (w *RuleGuard) Explain(q deck.Question) (policy.Decision, []policy.TraceStep) {
	o := w.rules.Load()
	if o.policy == nil {
		return policy.Decision{Effect: drawbridge.Allow, Why: "no rules are configured"}, nil
	}
	return o.policy.Explain(w.request(o, q))
}

// request returns the request for package policy, with the label of the run if a rule looks at it.
func (w *RuleGuard) request(o *ruleSet, q deck.Question) policy.Request {
	r := o.policyQuestion(q)
	if w.labels != nil && o.policy.UsesRun() {
		label := w.labels(q.Caller)
		r.Label = &label
	}
	return r
}

// policyQuestion converts a question of the deck to a request for package policy.
func (o *ruleSet) policyQuestion(q deck.Question) policy.Request {
	dirs := o.dirs[q.Spec.Server]
	if q.Spec.Server == "" && q.Caller.Dir != "" {
		dirs = []string{q.Caller.Dir}
	}
	return policy.Request{
		Caller: q.Caller, Kind: q.Kind, Spec: q.Spec, Method: q.Method, Params: q.Params,
		Trust: o.trustLevel(q.Spec.Server),
		Dirs:  dirs,
	}
}

// Hides reports whether an item is hidden from the caller because the rules deny every call of it.
func (w *RuleGuard) Hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) bool {
	o := w.rules.Load()
	return o.policy != nil && o.policy.IsHidden(&caller, kind, &spec, o.trustLevel(spec.Server))
}

// HideReason returns the verdict of the rule that hides an item from the caller. If no rule hides the item, the verdict
// allows.
func (w *RuleGuard) HideReason(caller drawbridge.Caller, kind string, spec drawbridge.Spec) drawbridge.Verdict {
	o := w.rules.Load()
	if o.policy == nil {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	d := o.policy.HiddenDecision(&caller, kind, &spec, o.trustLevel(spec.Server))
	return drawbridge.Verdict{Effect: d.Effect, Rule: ruleLabel(&d), Reason: d.Why}
}

// CallerClass returns a key for a caller. The rules hide the same items from callers with the same key.
func (w *RuleGuard) CallerClass(caller drawbridge.Caller) string {
	if p := w.rules.Load().policy; p != nil {
		return p.CallerClass(caller)
	}
	return ""
}

// HidesAnything reports whether there are rules, which may hide items.
func (w *RuleGuard) HidesAnything() bool { return w.rules.Load().policy != nil }
