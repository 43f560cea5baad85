package roster

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
	"github.com/drawbridge-mcp/drawbridge/store"
)

// Options are what a roster can do without. The zero value is a session's, started in the working directory.
type Options struct {
	// Places says where configuration is looked for. Its Approved is not looked at.
	Places config.Options
	// Store is where the store is, as for gateway.StoreLocation; empty means what the configuration says.
	Store string
	// Word is how a person calls the commands that sentences name: "drawbridge mcp". Empty means "/mcp".
	Word string
	// Environ is the environment that programs are looked for in, as "name=value"; nil means the process's.
	Environ []string
	// Keeper keeps the secrets that are moved out of rows. Nil means that there is none, and none can be moved.
	Keeper Keeper
	// Tell has the running servers take a change over, and says in a few words what that came to. Nil means that there are
	// none.
	Tell func(ctx context.Context) (string, error)
	// Decided has them take over what a person decided about what these servers say, as they say it now, and says what that came
	// to. Nil means Tell.
	Decided func(ctx context.Context, servers ...drawbridge.ServerID) (string, error)
	// Clerk has on record what a person decides. Nil means that nobody keeps it.
	Clerk gateway.Clerk
}

// A Roster does what a person asks. Its methods may be called from several goroutines, and processes.
type Roster struct{ o Options }

// New makes a roster.
func New(o Options) *Roster {
	o.Word = cmp.Or(o.Word, "/mcp")
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Places.LookupEnv == nil {
		o.Places.LookupEnv = os.LookupEnv
	}
	return &Roster{o}
}

// A Mistake is an error in what the person said: another word would do. It is a sentence for them.
type Mistake string

// Error gives the sentence.
func (m Mistake) Error() string { return string(m) }

func mistake(format string, args ...any) error { return Mistake(fmt.Sprintf(format, args...)) }

// A Roll is all that is configured at one moment, with what the person decided about it. The reason of a row that waits
// for approval says what to do.
type Roll struct {
	config.Set
	decisions store.Approvals
	finder    finder
}

// Read reads what is configured. Nothing is started, and no store is made where there is none. The error is that of
// config.Load, or the store's.
func (r *Roster) Read(ctx context.Context) (Roll, error) {
	places := r.o.Places
	places.Approved = nil
	set, err := config.Load(places)
	if err != nil {
		return Roll{Set: set}, err
	}
	db, err := r.open(ctx, set, false)
	if err != nil {
		return Roll{Set: set}, err
	}
	roll := Roll{Set: set, finder: r.finder(nil)}
	if db != nil {
		roll.decisions, err = db.Approvals(ctx)
		if err := errors.Join(err, db.Close()); err != nil {
			return roll, err
		}
		roll.finder = r.finder(roll.decisions)
		places.Approved = roll.finder.allows
		if roll.Set, err = config.Load(places); err != nil {
			return roll, err
		}
	}
	for _, rows := range [][]config.Server{roll.Servers, roll.Shadowed} {
		for i := range rows {
			roll.finder.settled(&rows[i])
			r.explain(&rows[i], roll.decisions)
		}
	}
	return roll, nil
}

// open opens the store. Where there is none, it is nil unless it is to be made; and so it is where nothing needs it.
func (r *Roster) open(ctx context.Context, set config.Set, make bool) (*store.DB, error) {
	if !make && !hasProject(set) {
		return nil, nil
	}
	return r.opened(ctx, set, make)
}

// opened opens the store. Where there is none, it is nil unless it is to be made.
func (r *Roster) opened(ctx context.Context, set config.Set, make bool) (*store.DB, error) {
	location, err := gateway.StoreLocation(r.o.Store, set.Settings, r.o.Places.LookupEnv)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(location); !make && errors.Is(err, fs.ErrNotExist) && !strings.Contains(location, "://") {
		return nil, nil
	}
	return store.Open(ctx, location, store.Options{})
}

func hasProject(set config.Set) bool {
	for _, rows := range [][]config.Server{set.Servers, set.Shadowed} {
		for _, row := range rows {
			if row.Origin.Kind == config.Project {
				return true
			}
		}
	}
	return false
}

// explain says of a row that waits for approval why it does, and what to do.
func (r *Roster) explain(row *config.Server, decisions store.Approvals) {
	if row.Phase != drawbridge.NeedsApproval {
		return
	}
	approve := fmt.Sprintf("%s approve %s", r.o.Word, row.ID)
	last, decided := decisions.Of(*row)
	switch {
	case !decided:
		row.Reason = fmt.Sprintf("it comes from a project directory, and nobody has approved it (%s)", approve)
	case last.Approved && last.Hash == row.Hash:
		row.Reason = fmt.Sprintf("its program changed since you approved it: %s (%s)", some(changes(last, *row)), approve)
	case last.Approved:
		row.Reason = fmt.Sprintf("it changed since you approved it: %s (%s)", some(changes(last, *row)), approve)
	case last.Hash == row.Hash:
		row.Reason = fmt.Sprintf("you rejected it (%s takes that back)", approve)
	default:
		row.Reason = fmt.Sprintf("it changed since you rejected it: %s (%s)", some(changes(last, *row)), approve)
	}
}

// changes says what became of a row since a decision about it.
func changes(last store.Approval, row config.Server) []string {
	if last.Hash == row.Hash && (!last.Approved || last.Program() == row.Program) {
		return nil
	}
	if lines := config.Changes(last.Facts, row.Facts()); len(lines) > 0 {
		return lines
	}
	return []string{"how it is written"} // members of another type may look the same
}

// some joins the first few lines.
func some(lines []string) string {
	const few = 3
	if over := len(lines) - few; over > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(lines[:few], "; "), over)
	}
	return strings.Join(lines, "; ")
}

// notFound is for a name that nothing is configured by.
func (roll Roll) notFound(id drawbridge.ServerID) error {
	text := fmt.Sprintf("Server %q not found.", id)
	if near := roll.Near(id); near != "" && near != id {
		return mistake("%s Did you mean %q?", text, near)
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
	return Mistake(text)
}

// named gives all rows of a name: those with a standing first, of them the one that counts.
func (roll Roll) named(id drawbridge.ServerID) (rows []config.Server) {
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
	Did    Deed                `json:"did"`
	// Scope and Path say which file has the row, or the list that names it: Scope is "project", "user" or "explicit".
	Scope config.OriginKind `json:"scope,omitempty"`
	Path  string            `json:"path,omitempty"`
	// Phase is the row's from now on, of which Reason says why where that is not Idle; empty where there is none any more.
	Phase  drawbridge.Phase `json:"phase,omitempty"`
	Reason string           `json:"reason,omitempty"`
	// Kept names the values that were moved out of the row, as its references say them.
	Kept []string `json:"kept,omitempty"`
	// Notes say what else the person should know.
	Notes []string `json:"notes,omitempty"`
	// Live says what the running servers made of it.
	Live string `json:"live,omitempty"`
}

// A Deed is what was done.
type Deed string

// The deeds. Where all was so before, nothing was changed.
const (
	Added           Deed = "added"
	Removed         Deed = "removed"
	Moved           Deed = "moved"
	Enabled         Deed = "enabled"
	Disabled        Deed = "disabled"
	Approved        Deed = "approved"
	Rejected        Deed = "rejected"
	AlreadyEnabled  Deed = "already enabled"
	AlreadyDisabled Deed = "already disabled"
	AlreadyApproved Deed = "already approved"
	AlreadyRejected Deed = "already rejected"
)

// String gives one line for a person.
func (c Change) String() string {
	var text string
	switch c.Did {
	case Added:
		text = fmt.Sprintf("✓ Added server %q to %s config (%s)", c.Server, c.Scope, c.Path)
	case Removed:
		text = fmt.Sprintf("✓ Removed server %q from %s config (%s)", c.Server, c.Scope, c.Path)
	case Moved:
		if len(c.Kept) == 0 {
			return fmt.Sprintf("Server %q has no secret in plain text that could be moved.", c.Server)
		}
		text = fmt.Sprintf("✓ Moved out of server %q (%s): %s", c.Server, c.Path, strings.Join(c.Kept, ", "))
	case AlreadyEnabled, AlreadyDisabled, AlreadyApproved, AlreadyRejected:
		return fmt.Sprintf("Server %q is %s.", c.Server, c.Did)
	default:
		text = fmt.Sprintf("✓ %s server %q", strings.ToUpper(string(c.Did[:1]))+string(c.Did[1:]), c.Server)
	}
	if c.Live != "" {
		text += "; " + c.Live
	}
	return text
}

// Reload has the running servers take the configuration over as it is now, and says what that came to; empty where there
// are none. The error is theirs.
func (r *Roster) Reload(ctx context.Context) (string, error) {
	if r.o.Tell == nil {
		return "", nil
	}
	return r.o.Tell(ctx)
}

// decided has the running servers take a decision over, and says what came of it.
func (r *Roster) decided(ctx context.Context, servers ...drawbridge.ServerID) string {
	tell := r.o.Decided
	if tell == nil {
		tell = func(ctx context.Context, _ ...drawbridge.ServerID) (string, error) { return r.Reload(ctx) }
	}
	live, err := tell(ctx, servers...)
	if err != nil {
		return fmt.Sprintf("the running servers did not take it over: %v", err)
	}
	return live
}

// tell has the running servers take changes over. That it was not done is no error: the files are changed, and count from
// the next start.
func (r *Roster) tell(ctx context.Context, changes ...*Change) {
	live, err := r.Reload(ctx)
	for _, c := range changes {
		c.Live = live
		if err != nil {
			c.Notes = append(c.Notes, fmt.Sprintf("the running servers did not take it over: %v", err))
		}
	}
}
