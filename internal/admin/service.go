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

// Options configure a Service. The zero value is for a session that was started in the working directory.
type Options struct {
	// ConfigOptions selects the configuration files. Its Approved is ignored.
	ConfigOptions config.Options
	// Store is the location of the store, as for gateway.StoreLocation; empty means that of the configuration.
	Store string
	// CommandPrefix precedes the commands that texts name, such as "drawbridge mcp". Empty means "/mcp".
	CommandPrefix string
	// Environ is the environment that programs are looked for in, as "name=value"; nil means the process's.
	Environ []string
	// Secrets stores the secrets that are moved out of rows. Nil means that secrets cannot be moved.
	Secrets SecretStore
	// OpenVault opens the vault with the person's secrets, or returns the open one. Nil means that there is none.
	OpenVault func() (*secrets.Vault, error)
	// ReloadServers reloads the running servers after a change and returns the result in a few words. Nil means that no
	// server runs.
	ReloadServers func(ctx context.Context) (string, error)
	// RelistServers lists these servers again after a decision on their definitions, and returns the result in a few
	// words. Nil means ReloadServers.
	RelistServers func(ctx context.Context, servers ...drawbridge.ServerID) (string, error)
	// Gateway is the configuration that a gateway would be opened with. Only the functions of the audit need it: for
	// the files that processes left behind, and for the key of this machine.
	Gateway gateway.Config
	// Hub asks the hub of the store. Only Restore and Report need it.
	Hub HubClient
	// AdminRecorder records the decisions of a person in the audit. Nil records nothing.
	AdminRecorder gateway.AdminRecorder
}

// A Service carries out a person's commands. Several goroutines and several processes may call its methods.
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

// A UserError reports a mistake in a person's input, such as a wrong name. It is a sentence for that person.
type UserError string

// Error returns the sentence.
func (m UserError) Error() string { return string(m) }

func userErrorf(format string, args ...any) error { return UserError(fmt.Sprintf(format, args...)) }

// A ServerList is the configuration at one moment, with the person's decisions. The reason of a row that waits for
// approval names the next step.
type ServerList struct {
	config.Configuration
	decisions store.RowApprovals
	programs  programFinder
}

// ReadServers reads the configuration and the decisions on it. It starts no server and creates no store. The error is
// that of config.Load, or the store's.
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

// openStoreForProject opens the store. It returns nil if the store does not exist or the configuration has no row of a
// project, unless make is set.
func (r *Service) openStoreForProject(ctx context.Context, set config.Configuration, make bool) (*store.DB, error) {
	if !make && !hasProjectRow(set) {
		return nil, nil
	}
	return r.openStore(ctx, set, make)
}

// openStore opens the store. It returns nil if the store does not exist, unless make is set. The error is a
// *drawbridge.Fault if one was there before.
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

// openRecords reads the configuration and opens its store. The error is a *NoStoreError where no store exists.
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

// setApprovalReason sets the reason of a row that waits for approval, with the command that approves it.
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

// changesSinceDecision describes the changes of a row since the decision on it, a line each.
func changesSinceDecision(last store.RowApproval, row config.Server) []string {
	if last.Hash == row.Hash && (!last.Approved || last.Program() == row.Program) {
		return nil
	}
	if lines := config.ApprovalChanges(last.Shown, row.ApprovalFacts()); len(lines) > 0 {
		return lines
	}
	return []string{"how it is written"} // members of another type may look the same
}

// joinFirstLines joins the first three lines and counts the rest.
func joinFirstLines(lines []string) string {
	const few = 3
	if over := len(lines) - few; over > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(lines[:few], "; "), over)
	}
	return strings.Join(lines, "; ")
}

// notFoundError returns the error for a name that is not configured, with suggestions.
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

// rowsNamed returns all rows of a name: first the row that counts, then the others that are not shadowed, then the
// shadowed ones.
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
	// Scope and Path identify the file of the row, or of the list that names it. Scope is "project", "user" or "explicit".
	Scope config.OriginKind `json:"scope,omitempty"`
	Path  string            `json:"path,omitempty"`
	// Phase is the new phase of the row, and Reason its reason if it is not Idle. Both are empty for a row that is gone.
	Phase  drawbridge.ServerPhase `json:"phase,omitempty"`
	Reason string                 `json:"reason,omitempty"`
	// SecretNames are the names of the values that were moved out of the row, as in its references.
	SecretNames []string `json:"kept,omitempty"`
	// Notes are further texts for the person.
	Notes []string `json:"notes,omitempty"`
	// Live is the result of the change in the running servers.
	Live string `json:"live,omitempty"`
}

// A ChangeKind is the kind of a change.
type ChangeKind string

// The kinds of changes. The Already kinds report that nothing had to be changed.
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

// String returns one line for a person.
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

// ReloadServers makes the running servers load the present configuration. It returns the result in a few words, or an
// empty text if no server runs.
func (r *Service) ReloadServers(ctx context.Context) (string, error) {
	if r.o.ReloadServers == nil {
		return "", nil
	}
	return r.o.ReloadServers(ctx)
}

// relistAfterDecision makes the running servers apply a decision and returns the result in a few words.
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

// reloadAfter makes the running servers apply changes. Its failure is only a note: the files are changed, and count
// from the next start.
func (r *Service) reloadAfter(ctx context.Context, changes ...*Change) {
	live, err := r.ReloadServers(ctx)
	for _, c := range changes {
		c.Live = live
		if err != nil {
			c.Notes = append(c.Notes, fmt.Sprintf("the running servers did not apply the change: %v", err))
		}
	}
}
