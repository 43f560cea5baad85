package admin

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

// An ServerEntry is one configured row. But for Server it has no secrets in it, and nothing that a terminal should not
// be shown.
type ServerEntry struct {
	Name   drawbridge.ServerID    `json:"name"`
	Phase  drawbridge.ServerPhase `json:"phase"`
	Reason string                 `json:"reason,omitempty"`
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
	// Replaces is the file and line of the row in force whose place it takes once it is approved; empty where there is
	// none, and where it is in force.
	Replaces string `json:"replaces,omitempty"`
	// Program is the file of a project's stdio server that would be started, or was approved, with the SHA-256 of what
	// is in it. A list has none for what nobody decided about.
	Program config.ProgramFile `json:"program,omitzero"`
	// Findings are what a person should know of the row before they let it run.
	Findings []config.LaunchFinding `json:"findings,omitempty"`
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

// newEntry describes a row.
func (roll ServerList) newEntry(row config.Server, shadowed bool) ServerEntry {
	e := ServerEntry{
		Name: row.ID, Phase: row.Phase, Reason: row.Reason, Shadowed: shadowed, Transport: row.Transport(),
		Kind: row.Origin.Kind, Source: row.Origin.String(), From: row.Provider,
		ImportedFrom: safetext.Line(row.ImportedFrom),
		Program:      row.Program,
		Findings:     row.LaunchFindings(roll.Settings), Row: redactRow(row), Commands: row.CommandValues(),
		Environment: row.FromVariables, Unresolved: safetext.Lines(row.Unresolved), Server: row,
	}
	if row.Phase == drawbridge.NeedsApproval && !shadowed {
		e.Replaces = roll.replacedLocation(row)
	}
	if shadowed {
		e.Phase, e.Reason = drawbridge.Disabled, "shadowed by an earlier definition of the same name"
	}
	if last, ok := roll.decisions.Find(row); ok && row.Origin.Kind == config.OriginProject {
		e.DecidedAt, e.Changes = last.At, changesSinceDecision(last, row)
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

// replacedLocation gives the place of the row in force that a row comes before.
func (roll ServerList) replacedLocation(row config.Server) string {
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

// A ListResult is what is configured, in order.
type ListResult struct {
	Entries []ServerEntry
	// Disabled and Shadowed count what was left out.
	Disabled, Shadowed int
	Warnings           []config.Warning
	// Settings are those that the configuration says.
	Settings config.Settings
}

// ListServers gives the rows that are configured, and with all those too that are turned off or shadowed, which come
// last. The error is that of Read.
func (r *Service) ListServers(ctx context.Context, all bool) (ListResult, error) {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return ListResult{}, err
	}
	l := ListResult{Warnings: roll.Warnings, Settings: roll.Settings}
	for _, row := range roll.Servers {
		if row.Phase == drawbridge.Disabled && !all {
			l.Disabled++
			continue
		}
		l.Entries = append(l.Entries, roll.newEntry(row, false))
	}
	for _, row := range roll.Shadowed {
		if !all {
			l.Shadowed++
			continue
		}
		l.Entries = append(l.Entries, roll.newEntry(row, true))
	}
	return l, nil
}

// A ServerDetail is all that is known of a name.
type ServerDetail struct {
	ServerEntry
	// Others are further definitions of the name.
	Others []ServerEntry `json:"others,omitempty"`
}

// DescribeServer describes the row that counts for a name, and the others of that name. The error is a Mistake for one
// that is not configured, with the nearest that is.
func (r *Service) DescribeServer(ctx context.Context, id drawbridge.ServerID) (ServerDetail, error) {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return ServerDetail{}, err
	}
	first, ok := roll.Lookup(id)
	if !ok {
		return ServerDetail{}, roll.notFoundError(id)
	}
	d := ServerDetail{ServerEntry: roll.newEntry(roll.programs.withProgram(first), false)}
	for _, row := range roll.Servers {
		if row.ID == id && row.Origin != first.Origin {
			d.Others = append(d.Others, roll.newEntry(roll.programs.withProgram(row), false))
		}
	}
	for _, row := range roll.Shadowed {
		if row.ID == id {
			d.Others = append(d.Others, roll.newEntry(roll.programs.withProgram(row), true))
		}
	}
	return d, nil
}
