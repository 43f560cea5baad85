package roster

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// native is the Provider of the files that are ours to change.
const native = "native"

// Remove takes a server out of the file that has it: of the scope's, config.Project or config.User, or where scope is
// empty of the one whose row counts. The error is a Mistake where there is none, or where it is in a file of another
// program; else the file cannot be changed.
func (r *Roster) Remove(ctx context.Context, id drawbridge.ServerID, scope config.OriginKind) (Change, error) {
	if scope != "" && scope != config.Project && scope != config.User {
		return Change{}, Mistake("Invalid --scope value. Use project or user.")
	}
	if id == "" {
		return Change{}, mistake("Server name required. Usage: %s remove <name> [--scope project|user]", r.o.Word)
	}
	roll, err := r.Read(ctx)
	if err != nil {
		return Change{}, err
	}
	row, err := r.removable(roll, id, scope)
	if err != nil {
		return Change{}, err
	}
	if err := config.RemoveRow(row.Origin.Path, id); err != nil {
		return Change{}, err
	}
	c := Change{Server: id, Did: Removed, Scope: row.Origin.Kind, Path: row.Origin.Path}
	if scope != "" {
		c.Scope = scope
	}
	if err := r.settle(ctx, &c); err != nil {
		c.Notes = append(c.Notes, err.Error())
	}
	r.tell(ctx, &c)
	return c, nil
}

// removable finds the row to remove.
func (r *Roster) removable(roll Roll, id drawbridge.ServerID, scope config.OriginKind) (config.Server, error) {
	rows := roll.named(id)
	for _, row := range rows {
		if row.Provider == native && r.within(row, scope) {
			return row, nil
		}
	}
	if err := r.broken(id, scope); err != nil {
		return config.Server{}, err
	}
	switch {
	case scope != "":
		return config.Server{}, mistake("Server %q not found in %s config.", id, scope)
	case len(rows) > 0:
		return config.Server{}, mistake("Server %q is in a file of %s (%s): remove it there, or turn it off with %s disable %s",
			id, title(rows[0].Provider), rows[0].Origin.Path, r.o.Word, id)
	}
	return config.Server{}, roll.notFound(id)
}

// within says whether a row is in a scope's files; empty means any.
func (r *Roster) within(row config.Server, scope config.OriginKind) bool {
	if scope == "" || row.Origin.Kind == scope {
		return true
	}
	path, _, err := r.file(scope)
	return err == nil && sameFile(path, row.Origin.Path)
}

// broken says why a server was not found that may well be there: a file that cannot be read was left out.
func (r *Roster) broken(id drawbridge.ServerID, scope config.OriginKind) error {
	for _, one := range []config.OriginKind{config.Project, config.User} {
		path, _, err := r.file(one)
		if scope != "" && scope != one || err != nil {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			continue
		}
		err = config.RemoveRow(path, id)
		if _, missing := errors.AsType[config.RowError](err); err != nil && !missing {
			return err
		}
	}
	return nil
}

// title is what people call the program whose files have a row.
func title(provider string) string {
	for _, p := range config.Providers() {
		if p.Name == provider {
			return p.Title
		}
	}
	return provider
}

// Disable turns a server off: in its row, where that is in a file of ours, else, and where several definitions of the name
// could take each other's place, in the list disabledServers of the person's own mcp.json. The error is a Mistake for a
// name that is not configured; else the file cannot be changed.
func (r *Roster) Disable(ctx context.Context, id drawbridge.ServerID) (Change, error) {
	roll, err := r.Read(ctx)
	if err != nil {
		return Change{}, err
	}
	rows := roll.named(id)
	if len(rows) == 0 {
		return Change{}, roll.notFound(id)
	}
	row := rows[0]
	c := Change{Server: id, Did: Disabled, Scope: row.Origin.Kind, Path: row.Origin.Path}
	if row.Phase == drawbridge.Disabled {
		c.Did, c.Phase, c.Reason = AlreadyDisabled, row.Phase, row.Reason
		return c, nil
	}
	could := 0
	for _, one := range rows {
		if one.Phase == drawbridge.Idle {
			could++
		}
	}
	if row.Provider == native && could < 2 {
		err = config.SetEnabled(row.Origin.Path, id, false)
	} else if c.Path, err = config.UserFile(r.o.Places); err == nil {
		c.Scope = config.User
		err = config.SetDisabled(c.Path, id, true)
	}
	if err != nil {
		return Change{}, err
	}
	if err := r.settle(ctx, &c); err != nil {
		c.Notes = append(c.Notes, err.Error())
	}
	r.tell(ctx, &c)
	return c, nil
}

// most is how many files may turn one server off.
const most = 8

// Enable turns a server on again, where it was turned off. One that a project brings may still need approval: the change
// says so. The error is a Mistake for a name that is not configured, and for a server that another program's file turns
// off; else the file cannot be changed.
func (r *Roster) Enable(ctx context.Context, id drawbridge.ServerID) (Change, error) {
	c := Change{Server: id, Did: AlreadyEnabled}
	for range most {
		roll, err := r.Read(ctx)
		if err != nil {
			return Change{}, err
		}
		row, off := roll.disabled(id)
		if row.ID == "" {
			return Change{}, roll.notFound(id)
		}
		c.Phase, c.Reason = row.Phase, row.Reason
		if !off {
			break
		}
		c.Did, c.Scope, c.Path = Enabled, row.Origin.Kind, row.Origin.Path
		if err := r.turnOn(row); err != nil {
			return Change{}, err
		}
	}
	if c.Did == AlreadyEnabled {
		return c, nil
	}
	if err := r.settle(ctx, &c); err != nil {
		c.Notes = append(c.Notes, err.Error())
	}
	r.tell(ctx, &c)
	return c, nil
}

// disabled finds the row of a name that is to be turned on, and says whether it is off: it is not where a row of the name
// is in force, or none of them is off.
func (roll Roll) disabled(id drawbridge.ServerID) (row config.Server, off bool) {
	rows := roll.named(id)
	if len(rows) == 0 {
		return config.Server{}, false
	}
	if rows[0].Phase != drawbridge.Idle {
		for _, row := range rows {
			if row.Phase == drawbridge.Disabled {
				return row, true
			}
		}
	}
	return rows[0], false
}

// turnOn takes away one thing that turns a row off.
func (r *Roster) turnOn(row config.Server) error {
	switch {
	case row.DisabledBy != "":
		return config.SetDisabled(row.DisabledBy, row.ID, false)
	case row.Provider == native:
		return config.SetEnabled(row.Origin.Path, row.ID, true)
	}
	return mistake(`Server %q is turned off by "enabled" in a file of %s (%s): change it there.`, row.ID, title(row.Provider), row.Origin)
}

// An Off says why a server that is configured cannot be started now, and what to do first.
type Off string

// Error gives the sentence.
func (o Off) Error() string { return string(o) }

// Startable says why a server cannot be started now, to a person who asked for it, or nil: a Mistake for a name that is not
// configured, else an Off.
func (r *Roster) Startable(roll Roll, id drawbridge.ServerID) error {
	row, ok := roll.Lookup(id)
	switch {
	case !ok:
		return roll.notFound(id)
	case row.Phase == drawbridge.Idle:
		return nil
	case row.Phase == drawbridge.Disabled:
		return Off(fmt.Sprintf("Server %q is disabled. Run %s enable %s first.", id, r.o.Word, id))
	case row.Phase == drawbridge.NeedsApproval:
		return Off(fmt.Sprintf("Server %q needs approval: %s", id, row.Reason))
	}
	return Off(fmt.Sprintf("Server %q is %s: %s", id, row.Phase, row.Reason))
}
