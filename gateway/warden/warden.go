// Package warden is the guard that carries out a person's rules on the deck: package policy decides, this one says so to
// callers and to the log.
//
// It promises that a call is decided by the rules of one moment, and that who is denied hears no more than that.
package warden

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
	"github.com/drawbridge-mcp/drawbridge/policy"
)

// A Warden has the rules that count now. Without any it allows everything.
type Warden struct {
	log *slog.Logger
	now atomic.Pointer[order]
}

var _ deck.Teller = (*Warden)(nil)

// An order is rules, and what rows say of servers: how far they are trusted, and where their relative paths may start. It is not changed
// after it was made.
type order struct {
	policy *policy.Policy
	trust  map[drawbridge.ServerID]string
	dirs   map[drawbridge.ServerID][]string
}

// New makes a warden. It tells the log of calls that it refuses.
func New(log *slog.Logger) *Warden {
	w := &Warden{log: log}
	w.now.Store(&order{})
	return w
}

// Compile checks rules; nil are none. The error is a *drawbridge.Fault InvalidInput that names the file and the line.
func Compile(rules *drawbridge.Rules) (*policy.Policy, error) {
	if rules == nil {
		return nil, nil
	}
	p, err := policy.New(*rules)
	if wrong, ok := err.(*policy.RuleError); ok {
		step := "read the rules"
		if wrong.At != "" {
			step = "read " + wrong.At
		}
		return nil, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: step, Err: wrong.Err, Next: "drawbridge policy check",
		}
	}
	return p, err
}

// Take puts rules in the place of those that count, nil for none, with what the rows say, and the directories that all servers are told of.
func (w *Warden) Take(p *policy.Policy, rows []config.Server, roots []string) {
	o := &order{
		policy: p, trust: make(map[drawbridge.ServerID]string, len(rows)), dirs: make(map[drawbridge.ServerID][]string, len(rows)),
	}
	for id, row := range InForce(rows) {
		o.trust[id], o.dirs[id] = Trust(row), Dirs(row, roots)
	}
	w.now.Store(o)
}

// InForce gives rows by their names: of several of one name that which may be mounted, or else the first. A row that a project brings must
// not say how far a person's own server is trusted.
func InForce(rows []config.Server) map[drawbridge.ServerID]config.Server {
	out := make(map[drawbridge.ServerID]config.Server, len(rows))
	for _, row := range rows {
		if _, taken := out[row.ID]; !taken || row.Phase == drawbridge.Idle {
			out[row.ID] = row
		}
	}
	return out
}

// Dirs are the directories that relative paths may start at in calls of a row's server: that which its program starts in, those that the
// arguments of its command name, and those that it is told of. What is no directory among them does no harm.
func Dirs(row config.Server, roots []string) (all []string) {
	add := func(dir string) {
		if policy.IsFileURI(dir) {
			dir = policy.Spellings(dir, "")[0]
		}
		if dir != "" && !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	if row.URL == "" {
		add(row.Cwd)
		for _, arg := range row.Args {
			for _, dir := range policy.PathsIn(arg) { // "--mount=type=bind,src=/x", or the line of a shell
				add(dir)
			}
			if strings.HasPrefix(arg, "-") {
				_, arg, _ = strings.Cut(arg, "=")
			}
			switch {
			case filepath.IsAbs(arg):
				add(arg)
			case arg != "" && row.Cwd != "" && !strings.HasPrefix(arg, "~") && !policy.IsFileURI(arg): // it begins where the program does
				add(filepath.Join(row.Cwd, arg))
			}
		}
	}
	for _, root := range roots {
		add(root)
	}
	return all
}

// Dirs are those of a server by the rows that count now. They are not to be changed.
func (w *Warden) Dirs(id drawbridge.ServerID) []string { return w.now.Load().dirs[id] }

// Trust is the word by which rules know how far a row's server is trusted.
func Trust(row config.Server) string { return cmp.Or(row.Trust, untrusted) }

const untrusted = "untrusted"

// of is how far the server is trusted.
func (o *order) of(id drawbridge.ServerID) string {
	if level := o.trust[id]; level != "" {
		return level
	}
	return untrusted
}

// Decide answers a question by the rules.
func (w *Warden) Decide(_ context.Context, q deck.Question) drawbridge.Verdict {
	o := w.now.Load()
	if o.policy == nil {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	d := o.policy.Decide(o.question(q))
	v := drawbridge.Verdict{Effect: d.Effect, Hide: d.Hidden, Rule: ruleOf(&d)}
	if d.Effect == drawbridge.Deny {
		v.Reason = policy.Denied
	}
	if d.Effect != drawbridge.Allow {
		w.log.Warn(said(d.Effect), "caller", q.Caller.Principal, "kind", q.Caller.Kind.String(), "method", q.Method,
			"server", q.Spec.Server, "card", q.Spec.Name, "why", d.Why, "at", d.At)
	}
	return v
}

// ruleOf names the rule that decided: by where it is written, or by its number. None decided where it is empty.
func ruleOf(d *policy.Decision) string {
	if d.At != "" || d.Rule == 0 {
		return d.At
	}
	return numbered(d.Rule)
}

func numbered(rule int) string { return "rule " + strconv.Itoa(rule) }

// said is what the log is told of a verdict that does not let a call pass by itself.
func said(e drawbridge.Effect) string {
	if e == drawbridge.Ask {
		return "a rule wants a person asked about a call"
	}
	return "a rule refused a call"
}

// Explain answers a question as Decide does, and says what each rule said. Without rules there is nothing to say.
func (w *Warden) Explain(q deck.Question) (policy.Decision, []policy.Step) {
	o := w.now.Load()
	if o.policy == nil {
		return policy.Decision{Effect: drawbridge.Allow, Why: "there are no rules"}, nil
	}
	return o.policy.Explain(o.question(q))
}

// question is the deck's in the words of the rules.
func (o *order) question(q deck.Question) policy.Question {
	return policy.Question{
		Caller: q.Caller, Kind: q.Kind, Spec: q.Spec, Method: q.Method, Params: q.Params, Trust: o.of(q.Spec.Server),
		Dirs: o.dirs[q.Spec.Server],
	}
}

// Hides says what no call of the caller will be allowed to.
func (w *Warden) Hides(caller drawbridge.Caller, kind string, spec drawbridge.Spec) bool {
	o := w.now.Load()
	return o.policy != nil && o.policy.Hides(&caller, kind, &spec, o.of(spec.Server))
}

// Why says by which rule something is hidden.
func (w *Warden) Why(caller drawbridge.Caller, kind string, spec drawbridge.Spec) drawbridge.Verdict {
	o := w.now.Load()
	if o.policy == nil {
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	}
	d := o.policy.Hidden(&caller, kind, &spec, o.of(spec.Server))
	return drawbridge.Verdict{Effect: d.Effect, Rule: ruleOf(&d), Reason: d.Why}
}

// Class says what the caller is to the rules.
func (w *Warden) Class(caller drawbridge.Caller) string {
	if p := w.now.Load().policy; p != nil {
		return p.Class(caller)
	}
	return ""
}

// Active says whether there are rules.
func (w *Warden) Active() bool { return w.now.Load().policy != nil }
