package admin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Decision is a person's decision on the configuration row of a server in a project directory. Drawbridge starts such
// a server only after an approval.
type Decision string

// The decisions. A row without a decision has the empty Decision.
const (
	DecisionApproved Decision = "approved"
	DecisionRejected Decision = "rejected"
	// DecisionOutdated is a decision that is no longer valid, because the row, or the file of the program that it
	// starts, has changed since.
	DecisionOutdated Decision = "outdated"
)

// A ServerEntry describes the row of one server in a configuration file. All fields except Server contain no secrets
// and are safe to print on a terminal.
type ServerEntry struct {
	Name   drawbridge.ServerID    `json:"name"`
	Phase  drawbridge.ServerPhase `json:"phase"`
	Reason string                 `json:"reason,omitempty"`
	// Shadowed reports whether this row is not used because another row with the same name takes precedence.
	Shadowed  bool   `json:"shadowed,omitempty"`
	Transport string `json:"transport"`
	// Kind is the kind of the file that contains the row: "user", "project" or "explicit". Source is the file and line
	// of the row.
	Kind   config.OriginKind `json:"kind"`
	Source string            `json:"source"`
	// From is the ID of the program that owns the file; "native" means Drawbridge. ImportedFrom is the program from
	// whose file the row was copied; empty if it was not copied.
	From         string `json:"from"`
	ImportedFrom string `json:"imported_from,omitempty"`
	// Decision is the person's decision on the row, and DecidedAt is its time. Changes describe the changes of the row
	// since the decision, one line each.
	Decision  Decision  `json:"decision,omitempty"`
	DecidedAt time.Time `json:"decided_at,omitzero"`
	Changes   []string  `json:"changes,omitempty"`
	// Replaces is set for a row that waits for approval, if another row with the same name is used until then. It is
	// the file and line of that other row.
	Replaces string `json:"replaces,omitempty"`
	// Program is the program file of a project's stdio server, with its path and SHA-256. It is the approved file if
	// that is unchanged, and otherwise the file that the command now resolves to. In the result of ListServers it is
	// empty for a row without a decision.
	Program config.ProgramFile `json:"program,omitzero"`
	// Findings are warnings about the command line and other values of the row. A person should read them before
	// approving the row.
	Findings []config.LaunchFinding `json:"findings,omitempty"`
	// Row is the text of the row in the file. Variables are not expanded, and values that may be secrets are replaced
	// with "[redacted]".
	Row json.RawMessage `json:"row,omitempty"`
	// Commands are the names of the values in the row that are the output of a command. Environment are the names of
	// the values that are read from an environment variable, each with the variable. Unresolved are the variables in
	// the row that are not set.
	Commands    []string `json:"commands,omitempty"`
	Environment []string `json:"from_environment,omitempty"`
	Unresolved  []string `json:"unresolved,omitempty"`

	// Server is the complete row, including secrets.
	Server config.Server `json:"-"`
}

// newEntry returns the description of a row. shadowed reports whether the row is not used because another row takes
// precedence.
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

// replacedLocation returns the file and line of the row with the same name that is used until the given row is
// approved; empty if there is none.
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

// A ListResult is the result of ListServers. Entries are in configuration order.
type ListResult struct {
	Entries []ServerEntry
	// Disabled and Shadowed are the numbers of disabled and shadowed rows that Entries does not contain.
	Disabled, Shadowed int
	Warnings           []config.Warning
	// Settings are the settings in drawbridge.toml.
	Settings config.Settings
	// Sources are the paths of the files that were read.
	Sources []string
}

// ListServers returns the rows of the configured servers. If all is set, the result includes disabled rows and, at the
// end, shadowed rows. The error is that of ReadServers.
func (r *Service) ListServers(ctx context.Context, all bool) (ListResult, error) {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return ListResult{}, err
	}
	l := ListResult{Warnings: roll.Warnings, Settings: roll.Settings, Sources: roll.Sources}
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

// A ServerDetail describes all rows with one name. The embedded ServerEntry is the row that takes precedence.
type ServerDetail struct {
	ServerEntry
	// Others are the other rows with the name; shadowed rows are last.
	Others []ServerEntry `json:"others,omitempty"`
}

// DescribeServer returns descriptions of all rows with this name. For a name that is not configured, the error is a
// UserError that suggests a similar name.
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
