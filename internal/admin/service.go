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

// Options configure a Service. With the zero value, the Service uses the configuration files that apply in the working
// directory.
type Options struct {
	// ConfigOptions selects the configuration files. Its member Approved is ignored; the Service reads approvals from
	// the store.
	ConfigOptions config.Options
	// Store is the location of the store, in the form that gateway.StoreLocation accepts; empty means the location in
	// the settings.
	Store string
	// CommandPrefix is the beginning of the commands that error texts and notes suggest to the person, such as
	// "drawbridge mcp". Empty means "/mcp".
	CommandPrefix string
	// Environ is the environment, in the form "name=value", whose PATH is used to find the servers' programs. Nil means
	// the environment of the process.
	Environ []string
	// Secrets stores the secrets that are moved out of configuration files. If it is nil, functions that move secrets
	// return an error.
	Secrets SecretStore
	// OpenVault returns the vault with the person's secrets; it may open the vault on the first call. If it is nil,
	// functions for secrets return an error.
	OpenVault func() (*secrets.Vault, error)
	// ReloadServers makes the running servers load a changed configuration, and returns a short description of the
	// result for the person. If it is nil, changes apply only at the next start.
	ReloadServers func(ctx context.Context) (string, error)
	// RelistServers lists these running servers again after a person has decided on their definitions. It returns a
	// short description of the result for the person. If it is nil, ReloadServers is called instead.
	RelistServers func(ctx context.Context, servers ...drawbridge.ServerID) (string, error)
	// Gateway is the configuration of the gateway that serves the clients. The functions for the audit, credentials,
	// backups and reports use it, for example to find the vault.
	Gateway gateway.Config
	// Hub sends requests to the hub, the process that runs the servers. Only Restore and WriteReport need it.
	Hub HubClient
	// AdminRecorder records a person's decisions in the audit. If it is nil, nothing is recorded.
	AdminRecorder gateway.AdminRecorder
}

// A Service contains the functions with which a person administers Drawbridge. Its methods may be called from several
// goroutines, and by several processes at the same time.
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

// A UserError reports a mistake in a person's input, such as an unknown name. Its text is a sentence for the person,
// who can correct the input.
type UserError string

// Error returns the text.
func (m UserError) Error() string { return string(m) }

func userErrorf(format string, args ...any) error { return UserError(fmt.Sprintf(format, args...)) }

// A ServerList is the configuration at the time of ReadServers, with the person's decisions on its rows. For a row that
// waits for approval, the member Reason names the command that approves it.
type ServerList struct {
	config.Configuration
	decisions store.RowApprovals
	programs  programFinder
}

// ReadServers reads the configuration files, and the person's decisions on their rows from the store. It does not start
// servers, and does not create a store if there is none. The error is that of config.Load or of the store.
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

// openStoreForProject opens the store for decisions on rows of project directories. If there is no store, it creates
// one if make is set, and otherwise returns nil. Unless make is set, it also returns nil if the configuration has no
// row of a project.
func (r *Service) openStoreForProject(ctx context.Context, set config.Configuration, make bool) (*store.DB, error) {
	if !make && !hasProjectRow(set) {
		return nil, nil
	}
	return r.openStore(ctx, set, make)
}

// openStore opens the store. If there is no store, it creates one if make is set, and otherwise returns nil. If another
// store was at the location before and is missing or replaced, the error is a *drawbridge.Fault.
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

// openRecords returns the result of ReadServers, and the open store of this configuration. If there is no store, the
// error is a *NoStoreError.
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

// setApprovalReason sets row.Reason if the row waits for approval. The text explains why, for example that the row has
// changed, and names the command that approves it.
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

// changesSinceDecision returns the changes of a row and its program since the person's last decision on the row, one
// line each. It returns nil if the decision is still valid.
func changesSinceDecision(last store.RowApproval, row config.Server) []string {
	if last.Hash == row.Hash && (!last.Approved || last.Program() == row.Program) {
		return nil
	}
	if lines := config.ApprovalChanges(last.Shown, row.ApprovalFacts()); len(lines) > 0 {
		return lines
	}
	return []string{"how it is written"} // values of different types may have the same text
}

// joinFirstLines joins the first three lines with "; ", and adds the number of the remaining lines.
func joinFirstLines(lines []string) string {
	const few = 3
	if over := len(lines) - few; over > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(lines[:few], "; "), over)
	}
	return strings.Join(lines, "; ")
}

// notFoundError returns the error for a name that is not configured. The error suggests a similar name, or lists
// configured names.
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

// rowsNamed returns all rows with this name. The first is the row that takes precedence; shadowed rows, which are not
// used, are last.
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

// A Change describes what a function of this package changed in the configuration of one server.
type Change struct {
	Server drawbridge.ServerID `json:"server"`
	Kind   ChangeKind          `json:"did"`
	// Scope and Path identify the file that was changed. That is the file with the server's row, or the file with the
	// list disabledServers. Scope is the kind of the file: "project", "user" or "explicit".
	Scope config.OriginKind `json:"scope,omitempty"`
	Path  string            `json:"path,omitempty"`
	// Phase is the phase of the server after the change, and Reason explains a phase other than drawbridge.Idle. For a
	// removed row they describe another row of the same name that is now used, or are empty.
	Phase  drawbridge.ServerPhase `json:"phase,omitempty"`
	Reason string                 `json:"reason,omitempty"`
	// SecretNames are the names under which secrets were stored that were moved out of the row. The row refers to them
	// by these names.
	SecretNames []string `json:"kept,omitempty"`
	// Notes are further messages for the person.
	Notes []string `json:"notes,omitempty"`
	// Live describes to the person what the running servers did after the change; empty if none are running.
	Live string `json:"live,omitempty"`
}

// A ChangeKind is the kind of a change.
type ChangeKind string

// The kinds of changes. A kind that begins with Already means that nothing was changed, because the server was already
// in this state.
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

// String returns a line that describes the change to a person.
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

// ReloadServers calls Options.ReloadServers, which makes the running servers load the current configuration. It returns
// a short description of the result for the person; "" if the option is nil.
func (r *Service) ReloadServers(ctx context.Context) (string, error) {
	if r.o.ReloadServers == nil {
		return "", nil
	}
	return r.o.ReloadServers(ctx)
}

// relistAfterDecision lists the running servers with these names again, so that a person's decision on their
// definitions takes effect. It returns a short description of the result, or of the error, for the person.
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

// reloadAfter makes the running servers load the changed configuration, and sets Live in the changes. If this fails, it
// only adds a note to the changes, because the changed files take effect at the next start.
func (r *Service) reloadAfter(ctx context.Context, changes ...*Change) {
	live, err := r.ReloadServers(ctx)
	for _, c := range changes {
		c.Live = live
		if err != nil {
			c.Notes = append(c.Notes, fmt.Sprintf("the running servers did not apply the change: %v", err))
		}
	}
}
