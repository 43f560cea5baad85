package gateway

import (
	"context"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// A ReplayReport is the result of Replay: it compares the recorded verdicts of calls with the verdicts of other rules.
type ReplayReport struct {
	Since time.Time `json:"since"`
	// Same is the number of calls whose new verdict equals the recorded verdict.
	Same int `json:"same"`
	// Changed are the calls whose new verdict differs from the recorded verdict. Unclear are the calls whose record
	// does not contain enough data for a new verdict. Both are in the order in which the calls were made.
	Changed []ReplayedCall `json:"changed"`
	Unclear []ReplayedCall `json:"unclear"`
	// Unknown is the number of calls of a name that did not exist, or was hidden from the caller: no rule was evaluated
	// for them. Barred is the number of calls that were refused for another reason than the rules, such as a limit or a
	// held definition.
	Unknown int `json:"unknown"`
	Barred  int `json:"barred"`
}

// A ReplayedCall is a recorded call with its recorded verdict and its new verdict.
type ReplayedCall struct {
	ID     string       `json:"id"`
	At     time.Time    `json:"at"`
	Caller audit.Caller `json:"caller"`
	Method string       `json:"method"`
	Card   string       `json:"card,omitempty"`
	Server string       `json:"server,omitempty"`
	// Before is the recorded verdict of the rules and Now the new verdict: "allow", "ask" or "deny". Now is empty if it
	// cannot be determined. BeforeRule is the recorded rule, if any.
	Before     string `json:"before"`
	BeforeRule string `json:"before_rule,omitempty"`
	Now        string `json:"now,omitempty"`
	// Hidden reports whether the new rules hide the called name from the caller. Rule is the number of the rule that
	// decides, counted from 1, and RuleAt is its file and line. They are 0 and empty if no rule decides.
	Hidden bool   `json:"hidden,omitempty"`
	Rule   int    `json:"rule,omitempty"`
	RuleAt string `json:"rule_at,omitempty"`
	// Why is the reason for the new verdict, or names the missing data if there is no new verdict.
	Why string `json:"why"`
}

// Replay applies rules to the calls that were recorded since a time and reports which verdicts would change; nil rules
// allow every call. It does not call any tool. It uses the current trust of servers and the current scopes of clients,
// not those at the time of the call. The error is a *drawbridge.Fault with the code InvalidInput for invalid rules, or
// an error of the store.
func (g *Gateway) Replay(ctx context.Context, rules *drawbridge.Rules, since time.Time) (ReplayReport, error) {
	out := ReplayReport{Since: since, Changed: []ReplayedCall{}, Unclear: []ReplayedCall{}}
	p, err := guards.CompileRules(rules)
	if err != nil {
		return out, err
	}
	if err := RecoverAudit(ctx, g.config, g.shared.db); err != nil {
		return out, err
	}
	bench, err := g.newReplayer(ctx)
	if err != nil {
		return out, err
	}
	bench.Policy = p
	for stored, err := range g.shared.db.AuditRecords(ctx, since) {
		if err != nil {
			return out, err
		}
		r, err := audit.DecodeRecord(stored.Body)
		if err != nil {
			return out, &ledger.ChainError{Stream: stored.Stream, Seq: stored.Seq, Damage: ledger.DamageTorn}
		}
		if r.Kind == audit.Call && !r.At.Before(since) {
			out.add(r, bench.Judge(r))
		}
	}
	return out, nil
}

// newReplayer returns a replayer with the current trust of servers and the current scopes of clients.
func (g *Gateway) newReplayer(ctx context.Context) (guards.Replayer, error) {
	clients, err := g.shared.db.Clients(ctx)
	if err != nil {
		return guards.Replayer{}, err
	}
	held := map[string][]drawbridge.Scope{g.owner.Principal: g.owner.Scopes}
	for _, c := range clients {
		held["client:"+c.Name] = c.Scopes
	}
	parts := len(g.Config().Settings.Clients) > 0
	trust, dirs := map[drawbridge.ServerID]string{}, map[drawbridge.ServerID][]string{}
	set := g.Config()
	for id, row := range guards.ActiveRows(set.Servers) {
		trust[id], dirs[id] = guards.TrustLevel(row), guards.RelativeDirs(row, set.Settings.RootURIs())
	}
	return guards.Replayer{
		Lookup: g.deck.FindUnfiltered,
		TrustLevel: func(id drawbridge.ServerID) (string, bool) {
			word, ok := trust[id]
			return word, ok
		},
		RelativeDirs: func(id drawbridge.ServerID) []string { return dirs[id] },
		Scopes: func(who audit.Caller) ([]drawbridge.Scope, bool) {
			if parts && who.Principal == g.owner.Principal && who.Kind == drawbridge.External.String() {
				return nil, false // the scopes depend on the name that the client declared
			}
			scopes, ok := held[who.Principal]
			return scopes, ok && (who.Kind == drawbridge.Author.String() || who.Kind == drawbridge.External.String())
		},
	}, nil
}

// add adds a recorded call with its new verdict to the report.
func (out *ReplayReport) add(r audit.Record, v guards.ReplayVerdict) {
	call := ReplayedCall{
		ID: r.ID, At: r.At, Caller: r.Caller, Method: r.Method, Card: r.Card, Server: r.Server,
		Before: v.Before, BeforeRule: v.Rule, Why: v.Why,
	}
	switch v.Outcome {
	case guards.OutcomeSame:
		out.Same++
	case guards.OutcomeChanged:
		call.Now, call.Hidden, call.Rule, call.RuleAt, call.Why = v.Now.Effect.String(), v.Now.Hidden, v.Now.Rule,
			v.Now.At, v.Now.Why
		out.Changed = append(out.Changed, call)
	case guards.OutcomeUnclear:
		out.Unclear = append(out.Unclear, call)
	case guards.OutcomeUnknownName:
		out.Unknown++
	case guards.OutcomeOtherGuard:
		out.Barred++
	}
}
