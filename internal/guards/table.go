package guards

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

// Dependencies are the values from which guards are created. The gateway sets all of them.
type Dependencies struct {
	Rules    *RuleGuard
	OwnFiles *OwnFileGuard
	OwnTools *OwnToolGuard
	Limiter  *CallLimiter
	Flow     *FlowGuard
	// Agent needs no Rules.
	Agent AgentGuard
	// ServerRate returns the rate limit of a server.
	ServerRate func(drawbridge.ServerID) ServerRate
}

// A Registration is one row of the table of guards.
type Registration struct {
	// Name identifies the guard. Decides describes, in one line, the calls that the guard refuses.
	Name, Decides string
	New           func(Dependencies) deck.Guard
}

// Table returns the guards in the order in which the deck asks them. To add a guard, write one file with its type and
// add one row to this table. If the guard needs a value, add it to Dependencies. The deck asks each
// [deck.CountingGuard] after all other guards, whatever the position of its row.
func Table() []Registration {
	return []Registration{
		{"rules", "calls that a person's rules deny, or want a person to approve",
			func(d Dependencies) deck.Guard { return d.Rules }},
		{"own-files", "calls with an argument that leads to a file of Drawbridge",
			func(d Dependencies) deck.Guard { return d.OwnFiles }},
		{"own-tools", "calls of Drawbridge's own tools by clients that may not, or with a path outside their directories",
			func(d Dependencies) deck.Guard { return d.OwnTools }},
		{"agent", "calls of Drawbridge's own agent that its session does not permit, or wants a person to approve",
			func(d Dependencies) deck.Guard { d.Agent.Rules = d.Rules; return d.Agent }},
		{FlowRule, "calls that write or send with values that are not trusted, or that send while private text is in reach",
			func(d Dependencies) deck.Guard { return d.Flow }},
		{"rate", "calls over a quota or a rate limit, and repeated identical calls",
			func(d Dependencies) deck.Guard { return d.Limiter.Guard(d.ServerRate) }},
	}
}

// All returns one guard for each row of Table, in the order of the table.
func All(d Dependencies) []deck.Guard {
	var all []deck.Guard
	for _, row := range Table() {
		all = append(all, row.New(d))
	}
	return all
}
