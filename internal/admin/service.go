package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// Options configure a Service. The zero value is for the configuration of the working directory.
type Options struct {
	// ConfigOptions selects the configuration files. Its member Approved is ignored.
	ConfigOptions config.Options
	// Store is the location of the store, as for gateway.StoreLocation; empty means the configured location.
	Store string
	// CommandPrefix is the first part of the commands that texts name, such as "drawbridge mcp". Empty means "/mcp".
	CommandPrefix string
	// Environ is the environment in which programs are searched, in the form "name=value"; nil means the environment of
	// the process.
	Environ []string
	// Secrets stores the secrets that are moved out of rows. If it is nil, secrets cannot be moved.
	Secrets SecretStore
	// OpenVault opens the vault with the person's secrets, or returns the open vault. If it is nil, there is no vault.
	OpenVault func() (*secrets.Vault, error)
	// ReloadServers reloads the running servers after a change, and returns a short description of the result. If it is
	// nil, no server is running.
	ReloadServers func(ctx context.Context) (string, error)
	// RelistServers lists these servers again after a decision on their definitions, and returns a short description of
	// the result. If it is nil, ReloadServers is used.
	RelistServers func(ctx context.Context, servers ...drawbridge.ServerID) (string, error)
	// Gateway is the configuration with which a gateway would be opened. The functions for the audit, credentials, backups
	// and reports use it.
	Gateway gateway.Config
	// Hub sends requests to the hub of the store. Only Restore and WriteReport need it.
	Hub HubClient
	// AdminRecorder records a person's decisions in the audit. If it is nil, nothing is recorded.
	AdminRecorder gateway.AdminRecorder
}

// A Service runs a person's commands. Its methods may be called from several goroutines and several processes.
type Service struct{ o Options }

// New returns a Service with these options.
func New(o Options) *Service {
	o.CommandPrefix = cmp.Or(o.CommandPrefix, "/mcp")
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.ConfigOptions.LookupEnv == nil {
		o.ConfigOptions.LookupEnv = os.LookupEnv
	}
	return &Service{o}
}

// A UserError reports a mistake in a person's input, such as a wrong name. Its text is a sentence for the person.
type UserError string

// Error returns the text.
func (m UserError) Error() string { return string(m) }

func userErrorf(format string, args ...any) error { return UserError(fmt.Sprintf(format, args...)) }

// A ServerList is the configuration at one time, with the person's decisions. The reason of a row that waits for
// approval names the next step.
type ServerList struct {
	config.Configuration
	decisions store.RowApprovals
	programs  programFinder
}

// ReadServers reads the configuration and the decisions on its rows. It does not start servers and does not create a
// store. The error is that of config.Load or of the store.
func (r *Service) ReadServers(ctx context.Context) (ServerList, error) {
	places := r.o.ConfigOptions
	places.Approved = nil
	set, err := config.Load(places)
	if err != nil {
		return ServerList{Configuration: set}, err
	}
	db, err := r.openStoreForProject(ctx, set, false)
	if err != nil {
		return ServerList{Configuration: set}, err
	}
	roll := ServerList{Configuration: set, programs: r.newProgramFinder(nil)}
	if db != nil {
		roll.decisions, err = db.RowApprovals(ctx, gateway.CurrentApprover())
		if err := errors.Join(err, db.Close()); err != nil {
			return roll, err
		}
		roll.programs = r.newProgramFinder(roll.decisions)
		places.Approved = roll.programs.isApproved
		if roll.Configuration, err = config.Load(places); err != nil {
			return roll, err
		}
	}
	for _, rows := range [][]config.Server{roll.Servers, roll.Shadowed} {
		for i := range rows {
			roll.programs.attachProgram(&rows[i])
			r.setApprovalReason(&rows[i], roll.decisions)
		}
	}
	return roll, nil
}

// openStoreForProject opens the store. Unless make is set, it returns nil if the store does not exist or if the
// configuration has no row of a project.
func (r *Service) openStoreForProject(ctx context.Context, set config.Configuration, make bool) (*store.DB, error) {
	if !make && !hasProjectRow(set) {
		return nil, nil
	}
	return r.openStore(ctx, set, make)
}

// openStore opens the store. Unless make is set, it returns nil if the store does not exist. If a store that existed
// before is missing or was replaced, the error is a *drawbridge.Fault.
func (r *Service) openStore(ctx context.Context, set config.Configuration, make bool) (*store.DB, error) {
	location, err := gateway.StoreLocation(r.o.Store, set.Settings, r.o.ConfigOptions.LookupEnv)
	if err != nil {
		return nil, err
	}
	if err := gateway.CheckStore(ctx, r.o.Store, set.Settings, r.o.ConfigOptions.LookupEnv, nil); err != nil {
		return nil, err
	}
	if _, err := os.Stat(location); !make && errors.Is(err, fs.ErrNotExist) && !strings.Contains(location, "://") {
		return nil, nil
	}
	return store.Open(ctx, location, store.Options{})
}

// openRecords reads the configuration and opens its store. If there is no store, the error is a *NoStoreError.
func (r *Service) openRecords(ctx context.Context) (ServerList, *store.DB, error) {
	set, err := r.ReadServers(ctx)
	if err != nil {
		return set, nil, err
	}
	db, err := r.openExistingStore(ctx, set.Configuration)
	return set, db, err
}

func hasProjectRow(set config.Configuration) bool {
	for _, rows := range [][]config.Server{set.Servers, set.Shadowed} {
		for _, row := range rows {
			if row.Origin.Kind == config.OriginProject {
				return true
			}
		}
	}
	return false
}

// setApprovalReason sets the reason of a row that waits for approval. The reason names the command that approves the
// row.
func (r *Service) setApprovalReason(row *config.Server, decisions store.RowApprovals) {
	if row.Phase != drawbridge.NeedsApproval {
		return
	}
	approve := fmt.Sprintf("%s approve %s", r.o.CommandPrefix, row.ID)
	last, decided := decisions.Find(*row)
	switch {
	case !decided:
		row.Reason = fmt.Sprintf("it comes from a project directory and is not approved yet (%s)", approve)
	case last.Approved && last.Hash == row.Hash:
		row.Reason = fmt.Sprintf("its program changed since you approved it: %s (%s)",
			joinFirstLines(changesSinceDecision(last, *row)), approve)
	case last.Approved:
		row.Reason = fmt.Sprintf("it changed since you approved it: %s (%s)",
			joinFirstLines(changesSinceDecision(last, *row)), approve)
	case last.Hash == row.Hash:
		row.Reason = fmt.Sprintf("you rejected it (%s takes that back)", approve)
	default:
		row.Reason = fmt.Sprintf("it changed since you rejected it: %s (%s)",
			joinFirstLines(changesSinceDecision(last, *row)), approve)
	}
}

// changesSinceDecision returns the changes of a row since the decision on it, one line each.
func changesSinceDecision(last store.RowApproval, row config.Server) []string {
	if last.Hash == row.Hash && (!last.Approved || last.Program() == row.Program) {
		return nil
	}
	if lines := config.ApprovalChanges(last.Shown, row.ApprovalFacts()); len(lines) > 0 {
		return lines
	}
	return []string{"how it is written"} // values of different types may have the same text
}

// joinFirstLines joins the first three lines and adds the number of the other lines.
func joinFirstLines(lines []string) string {
	const few = 3
	if over := len(lines) - few; over > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(lines[:few], "; "), over)
	}
	return strings.Join(lines, "; ")
}

// notFoundError returns the error for a name that is not configured. The error suggests configured names.
func (roll ServerList) notFoundError(id drawbridge.ServerID) error {
	text := fmt.Sprintf("Server %q not found.", id)
	if near := roll.Suggest(id); near != "" && near != id {
		return userErrorf("%s Did you mean %q?", text, near)
	}
	var known []string
	for _, row := range roll.Servers {
		known = append(known, string(row.ID))
	}
	const most = 12
	if over := len(known) - most; over > 0 {
		known = append(known[:most], fmt.Sprintf("%d more", over))
	}
	if len(known) > 0 {
		text += " Configured: " + strings.Join(known, ", ") + "."
	}
	return UserError(text)
}

// rowsNamed returns all rows with a name. The first is the row that takes precedence; shadowed rows are last.
func (roll ServerList) rowsNamed(id drawbridge.ServerID) (rows []config.Server) {
	first, ok := roll.Lookup(id)
	if !ok {
		return nil
	}
	rows = append(rows, first)
	for _, all := range [][]config.Server{roll.Servers, roll.Shadowed} {
		for _, row := range all {
			if row.ID == id && row.Origin != first.Origin {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// A Change is the result of a command on one server.
type Change struct {
	Server drawbridge.ServerID `json:"server"`
	Kind   ChangeKind          `json:"did"`
	// Scope and Path identify the changed file: the file of the row, or the file whose list disables the row. Scope is
	// "project", "user" or "explicit".
	Scope config.OriginKind `json:"scope,omitempty"`
	Path  string            `json:"path,omitempty"`
	// Phase is the new phase of the row. Reason is the reason if the phase is not Idle. Both are empty for a removed row.
	Phase  drawbridge.ServerPhase `json:"phase,omitempty"`
	Reason string                 `json:"reason,omitempty"`
	// SecretNames are the names of the values that were moved out of the row, as in the row's references.
	SecretNames []string `json:"kept,omitempty"`
	// Notes are further messages for the person.
	Notes []string `json:"notes,omitempty"`
	// Live describes the result of the change in the running servers.
	Live string `json:"live,omitempty"`
}

// A ChangeKind is the kind of a change.
type ChangeKind string

// The kinds of changes. The kinds that begin with Already mean that nothing had to be changed.
const (
	Added           ChangeKind = "added"
	Removed         ChangeKind = "removed"
	Moved           ChangeKind = "moved"
	Enabled         ChangeKind = "enabled"
	Disabled        ChangeKind = "disabled"
	Approved        ChangeKind = "approved"
	Rejected        ChangeKind = "rejected"
	AlreadyEnabled  ChangeKind = "already enabled"
	AlreadyDisabled ChangeKind = "already disabled"
	AlreadyApproved ChangeKind = "already approved"
	AlreadyRejected ChangeKind = "already rejected"
)

// String returns a line for a person.
func (c Change) String() string {
	var text string
	switch c.Kind {
	case Added:
		text = fmt.Sprintf("✓ Added server %q to %s config (%s)", c.Server, c.Scope, c.Path)
	case Removed:
		text = fmt.Sprintf("✓ Removed server %q from %s config (%s)", c.Server, c.Scope, c.Path)
	case Moved:
		if len(c.SecretNames) == 0 {
			return fmt.Sprintf("Server %q has no secret in plain text that could be moved.", c.Server)
		}
		text = fmt.Sprintf("✓ Moved out of server %q (%s): %s", c.Server, c.Path, strings.Join(c.SecretNames, ", "))
	case AlreadyEnabled, AlreadyDisabled, AlreadyApproved, AlreadyRejected:
		return fmt.Sprintf("Server %q is %s.", c.Server, c.Kind)
	default:
		text = fmt.Sprintf("✓ %s server %q", strings.ToUpper(string(c.Kind[:1]))+string(c.Kind[1:]), c.Server)
	}
	if c.Live != "" {
		text += "; " + c.Live
	}
	return text
}

// ReloadServers makes the running servers load the current configuration. It returns a short description of the result,
// or "" if no server is running.
func (r *Service) ReloadServers(ctx context.Context) (string, error) {
	if r.o.ReloadServers == nil {
		return "", nil
	}
	return r.o.ReloadServers(ctx)
}

// relistAfterDecision makes the running servers apply a decision, and returns a short description of the result.
func (r *Service) relistAfterDecision(ctx context.Context, servers ...drawbridge.ServerID) string {
	tell := r.o.RelistServers
	if tell == nil {
		tell = func(ctx context.Context, _ ...drawbridge.ServerID) (string, error) { return r.ReloadServers(ctx) }
	}
	live, err := tell(ctx, servers...)
	if err != nil {
		return fmt.Sprintf("the running servers did not apply the change: %v", err)
	}
	return live
}

// reloadAfter makes the running servers apply changes. If this fails, it adds a note to the changes, because the files
// are changed and are used at the next start.
func (r *Service) reloadAfter(ctx context.Context, changes ...*Change) {
	live, err := r.ReloadServers(ctx)
	for _, c := range changes {
		c.Live = live
		if err != nil {
			c.Notes = append(c.Notes, fmt.Sprintf("the running servers did not apply the change: %v", err))
		}
	}
}
