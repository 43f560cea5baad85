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
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// Options are what a roster can do without. The zero value is a session's, started in the working directory.
type Options struct {
	// ConfigOptions says where configuration is looked for. Its Approved is not looked at.
	ConfigOptions config.Options
	// Store is where the store is, as for gateway.StoreLocation; empty means what the configuration says.
	Store string
	// CommandPrefix is how a person calls the commands that sentences name: "drawbridge mcp". Empty means "/mcp".
	CommandPrefix string
	// Environ is the environment that programs are looked for in, as "name=value"; nil means the process's.
	Environ []string
	// Secrets keeps the secrets that are moved out of rows. Nil means that there is none, and none can be moved.
	Secrets SecretStore
	// ReloadServers has the running servers take a change over, and says in a few words what that came to. Nil means
	// that there are none.
	ReloadServers func(ctx context.Context) (string, error)
	// RelistServers has them take over what a person decided about what these servers say, as they say it now, and
	// says what that came to. Nil means Tell.
	RelistServers func(ctx context.Context, servers ...drawbridge.ServerID) (string, error)
	// Gateway is the configuration that a gateway would be opened with. Only the functions of the audit need it: for
	// the files that processes left behind, and for the key of this machine.
	Gateway gateway.Config
	// AdminRecorder has on record what a person decides. Nil means that nobody keeps it.
	AdminRecorder gateway.AdminRecorder
}

// A Service does what a person asks. Its methods may be called from several goroutines, and processes.
type Service struct{ o Options }

// New makes a roster.
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

// A UserError is an error in what the person said: another word would do. It is a sentence for them.
type UserError string

// Error gives the sentence.
func (m UserError) Error() string { return string(m) }

func userErrorf(format string, args ...any) error { return UserError(fmt.Sprintf(format, args...)) }

// A ServerList is all that is configured at one moment, with what the person decided about it. The reason of a row
// that waits for approval says what to do.
type ServerList struct {
	config.Configuration
	decisions store.RowApprovals
	programs  programFinder
}

// ReadServers reads what is configured. Nothing is started, and no store is made where there is none. The error is
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

// openStoreForProject opens the store. Where there is none, it is nil unless it is to be made; and so it is where
// nothing needs it.
func (r *Service) openStoreForProject(ctx context.Context, set config.Configuration, make bool) (*store.DB, error) {
	if !make && !hasProjectRow(set) {
		return nil, nil
	}
	return r.openStore(ctx, set, make)
}

// openStore opens the store. Where there is none, it is nil unless it is to be made. The error is a *drawbridge.Fault
// where one was there before.
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

// setApprovalReason says of a row that waits for approval why it does, and what to do.
func (r *Service) setApprovalReason(row *config.Server, decisions store.RowApprovals) {
	if row.Phase != drawbridge.NeedsApproval {
		return
	}
	approve := fmt.Sprintf("%s approve %s", r.o.CommandPrefix, row.ID)
	last, decided := decisions.Find(*row)
	switch {
	case !decided:
		row.Reason = fmt.Sprintf("it comes from a project directory, and nobody has approved it (%s)", approve)
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

// changesSinceDecision says what became of a row since a decision about it.
func changesSinceDecision(last store.RowApproval, row config.Server) []string {
	if last.Hash == row.Hash && (!last.Approved || last.Program() == row.Program) {
		return nil
	}
	if lines := config.ApprovalChanges(last.Shown, row.ApprovalFacts()); len(lines) > 0 {
		return lines
	}
	return []string{"how it is written"} // members of another type may look the same
}

// joinFirstLines joins the first few lines.
func joinFirstLines(lines []string) string {
	const few = 3
	if over := len(lines) - few; over > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(lines[:few], "; "), over)
	}
	return strings.Join(lines, "; ")
}

// notFoundError is for a name that nothing is configured by.
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

// rowsNamed gives all rows of a name: those with a standing first, of them the one that counts.
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

// A Change is what became of one server.
type Change struct {
	Server drawbridge.ServerID `json:"server"`
	Kind   ChangeKind          `json:"did"`
	// Scope and Path say which file has the row, or the list that names it: Scope is "project", "user" or "explicit".
	Scope config.OriginKind `json:"scope,omitempty"`
	Path  string            `json:"path,omitempty"`
	// Phase is the row's from now on, of which Reason says why where that is not Idle; empty where there is none any
	// more.
	Phase  drawbridge.ServerPhase `json:"phase,omitempty"`
	Reason string                 `json:"reason,omitempty"`
	// SecretNames names the values that were moved out of the row, as its references say them.
	SecretNames []string `json:"kept,omitempty"`
	// Notes say what else the person should know.
	Notes []string `json:"notes,omitempty"`
	// Live says what the running servers made of it.
	Live string `json:"live,omitempty"`
}

// A ChangeKind is what was done.
type ChangeKind string

// The deeds. Where all was so before, nothing was changed.
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

// String gives one line for a person.
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

// ReloadServers has the running servers take the configuration over as it is now, and says what that came to; empty
// where there are none. The error is theirs.
func (r *Service) ReloadServers(ctx context.Context) (string, error) {
	if r.o.ReloadServers == nil {
		return "", nil
	}
	return r.o.ReloadServers(ctx)
}

// relistAfterDecision has the running servers take a decision over, and says what came of it.
func (r *Service) relistAfterDecision(ctx context.Context, servers ...drawbridge.ServerID) string {
	tell := r.o.RelistServers
	if tell == nil {
		tell = func(ctx context.Context, _ ...drawbridge.ServerID) (string, error) { return r.ReloadServers(ctx) }
	}
	live, err := tell(ctx, servers...)
	if err != nil {
		return fmt.Sprintf("the running servers did not take it over: %v", err)
	}
	return live
}

// reloadAfter has the running servers take changes over. That it was not done is no error: the files are changed, and
// count from the next start.
func (r *Service) reloadAfter(ctx context.Context, changes ...*Change) {
	live, err := r.ReloadServers(ctx)
	for _, c := range changes {
		c.Live = live
		if err != nil {
			c.Notes = append(c.Notes, fmt.Sprintf("the running servers did not take it over: %v", err))
		}
	}
}
