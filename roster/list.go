package roster

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Decision is what a person said of a row that a project brings.
type Decision string

// The decisions. What was never decided has none.
const (
	DecisionApproved Decision = "approved"
	DecisionRejected Decision = "rejected"
	// DecisionOutdated is one about the row as it was: it counts no more.
	DecisionOutdated Decision = "outdated"
)

// An Entry is one configured row. But for Server it has no secrets in it, and nothing that a terminal should not be shown.
type Entry struct {
	Name   drawbridge.ServerID `json:"name"`
	Phase  drawbridge.Phase    `json:"phase"`
	Reason string              `json:"reason,omitempty"`
	// Shadowed says that another definition of the name counts before it.
	Shadowed  bool   `json:"shadowed,omitempty"`
	Transport string `json:"transport"`
	// Kind is whose file has it: "user", "project" or "explicit". Source is its file and line.
	Kind   config.OriginKind `json:"kind"`
	Source string            `json:"source"`
	// From is the program whose file it is, ImportedFrom the one that it was taken over from; "native" is Drawbridge.
	From         string `json:"from"`
	ImportedFrom string `json:"imported_from,omitempty"`
	// Decision is the person's, DecidedAt when they took it. Changes say what became of the row since, a line each.
	Decision  Decision  `json:"decision,omitempty"`
	DecidedAt time.Time `json:"decided_at,omitzero"`
	Changes   []string  `json:"changes,omitempty"`
	// Replaces is the file and line of the row in force whose place it takes once it is approved; empty where there is none,
	// and where it is in force.
	Replaces string `json:"replaces,omitempty"`
	// Program is the file of a project's stdio server that would be started, or was approved, with the SHA-256 of what is in it. A
	// list has none for what nobody decided about.
	Program config.Program `json:"program,omitzero"`
	// Findings are what a person should know of the row before they let it run.
	Findings []config.Finding `json:"findings,omitempty"`
	// Row is the row as it is written, variables not put in, with "[redacted]" where a secret may be.
	Row json.RawMessage `json:"row,omitempty"`
	// Commands names values that a command has a part in, Environment those that are variables by name, Unresolved the
	// variables that are not set.
	Commands    []string `json:"commands,omitempty"`
	Environment []string `json:"from_environment,omitempty"`
	Unresolved  []string `json:"unresolved,omitempty"`

	// Server is the row itself, with all secrets.
	Server config.Server `json:"-"`
}

// entry describes a row.
func (roll Roll) entry(row config.Server, shadowed bool) Entry {
	e := Entry{
		Name: row.ID, Phase: row.Phase, Reason: row.Reason, Shadowed: shadowed, Transport: row.Transport(),
		Kind: row.Origin.Kind, Source: row.Origin.String(), From: row.Provider, ImportedFrom: safetext.Line(row.ImportedFrom),
		Program:  row.Program,
		Findings: row.Findings(roll.Settings), Row: redacted(row), Commands: row.Commands(), Environment: row.FromEnv, Unresolved: safetext.Lines(row.Unresolved), Server: row,
	}
	if row.Phase == drawbridge.NeedsApproval && !shadowed {
		e.Replaces = roll.replacedBy(row)
	}
	if shadowed {
		e.Phase, e.Reason = drawbridge.Disabled, "shadowed by an earlier definition of the same name"
	}
	if last, ok := roll.decisions.Of(row); ok && row.Origin.Kind == config.Project {
		e.DecidedAt, e.Changes = last.At, changes(last, row)
		switch {
		case last.Hash != row.Hash, last.Approved && len(e.Changes) > 0:
			e.Decision = DecisionOutdated
		case last.Approved:
			e.Decision = DecisionApproved
		default:
			e.Decision = DecisionRejected
		}
	}
	return e
}

// replacedBy gives the place of the row in force that a row comes before.
func (roll Roll) replacedBy(row config.Server) string {
	before := false
	for _, other := range roll.Servers {
		if other.Origin == row.Origin && other.ID == row.ID {
			before = true
		} else if before && other.ID == row.ID && other.Phase == drawbridge.Idle {
			return other.Origin.String()
		}
	}
	return ""
}

// A List is what is configured, in order.
type List struct {
	Entries []Entry
	// Disabled and Shadowed count what was left out.
	Disabled, Shadowed int
	Warnings           []config.Warning
	// Settings are those that the configuration says.
	Settings config.Settings
}

// List gives the rows that are configured, and with all those too that are turned off or shadowed, which come last. The
// error is that of Read.
func (r *Roster) List(ctx context.Context, all bool) (List, error) {
	roll, err := r.Read(ctx)
	if err != nil {
		return List{}, err
	}
	l := List{Warnings: roll.Warnings, Settings: roll.Settings}
	for _, row := range roll.Servers {
		if row.Phase == drawbridge.Disabled && !all {
			l.Disabled++
			continue
		}
		l.Entries = append(l.Entries, roll.entry(row, false))
	}
	for _, row := range roll.Shadowed {
		if !all {
			l.Shadowed++
			continue
		}
		l.Entries = append(l.Entries, roll.entry(row, true))
	}
	return l, nil
}

// A Detail is all that is known of a name.
type Detail struct {
	Entry
	// Others are further definitions of the name.
	Others []Entry `json:"others,omitempty"`
}

// Get describes the row that counts for a name, and the others of that name. The error is a Mistake for one that is not
// configured, with the nearest that is.
func (r *Roster) Get(ctx context.Context, id drawbridge.ServerID) (Detail, error) {
	roll, err := r.Read(ctx)
	if err != nil {
		return Detail{}, err
	}
	first, ok := roll.Lookup(id)
	if !ok {
		return Detail{}, roll.notFound(id)
	}
	d := Detail{Entry: roll.entry(roll.finder.shown(first), false)}
	for _, row := range roll.Servers {
		if row.ID == id && row.Origin != first.Origin {
			d.Others = append(d.Others, roll.entry(roll.finder.shown(row), false))
		}
	}
	for _, row := range roll.Shadowed {
		if row.ID == id {
			d.Others = append(d.Others, roll.entry(roll.finder.shown(row), true))
		}
	}
	return d, nil
}
