package admin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Decision is a person's decision on a row of a project directory.
type Decision string

// The decisions. A row without a decision has the empty Decision.
const (
	DecisionApproved Decision = "approved"
	DecisionRejected Decision = "rejected"
	// DecisionOutdated is a decision that is no longer valid, because the row or its program has changed.
	DecisionOutdated Decision = "outdated"
)

// A ServerEntry describes one row. All fields except Server contain no secrets and are safe to print on a terminal.
type ServerEntry struct {
	Name   drawbridge.ServerID    `json:"name"`
	Phase  drawbridge.ServerPhase `json:"phase"`
	Reason string                 `json:"reason,omitempty"`
	// Shadowed reports whether another row with the same name takes precedence.
	Shadowed  bool   `json:"shadowed,omitempty"`
	Transport string `json:"transport"`
	// Kind is the origin of the row: "user", "project" or "explicit". Source is the file and line of the row.
	Kind   config.OriginKind `json:"kind"`
	Source string            `json:"source"`
	// From is the program that owns the file; "native" means Drawbridge. ImportedFrom is the program from which the row
	// was copied.
	From         string `json:"from"`
	ImportedFrom string `json:"imported_from,omitempty"`
	// Decision is the person's decision, and DecidedAt is its time. Changes are the changes of the row since then, one
	// line each.
	Decision  Decision  `json:"decision,omitempty"`
	DecidedAt time.Time `json:"decided_at,omitzero"`
	Changes   []string  `json:"changes,omitempty"`
	// Replaces is the file and line of the row in force that this row will replace after its approval; empty if there is
	// none.
	Replaces string `json:"replaces,omitempty"`
	// Program is the file that would be started for a project's stdio server, or the file that was approved. It has the
	// SHA-256 of the file. In a list it is empty for a row without a decision.
	Program config.ProgramFile `json:"program,omitzero"`
	// Findings are warnings that a person should read before an approval of the row.
	Findings []config.LaunchFinding `json:"findings,omitempty"`
	// Row is the row as written. Variables are not expanded, and values that may be secrets are replaced with
	// "[redacted]".
	Row json.RawMessage `json:"row,omitempty"`
	// Commands are the names of the values that a command produces. Environment are the names of the values that come from
	// a variable of the same name. Unresolved are the variables that are not set.
	Commands    []string `json:"commands,omitempty"`
	Environment []string `json:"from_environment,omitempty"`
	Unresolved  []string `json:"unresolved,omitempty"`

	// Server is the complete row, with all secrets.
	Server config.Server `json:"-"`
}

// newEntry returns the entry of a row.
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

// replacedLocation returns the file and line of the row in force that a row would replace; empty if there is none.
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

// A ListResult contains the configured servers, in order.
type ListResult struct {
	Entries []ServerEntry
	// Disabled and Shadowed are the numbers of omitted rows.
	Disabled, Shadowed int
	Warnings           []config.Warning
	// Settings are the settings of the configuration.
	Settings config.Settings
}

// ListServers returns the configured rows. If all is set, it includes disabled rows and, at the end, shadowed rows. The
// error is that of ReadServers.
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

// A ServerDetail contains all rows with one name.
type ServerDetail struct {
	ServerEntry
	// Others are the further rows with the name.
	Others []ServerEntry `json:"others,omitempty"`
}

// DescribeServer returns the row with this name that takes precedence, and the other rows with the name. The error is a
// UserError for a name that is not configured; it suggests a similar name.
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
