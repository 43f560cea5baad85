package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// nativeProvider is the value of config.Server.Provider for rows in Drawbridge's own configuration files. The functions
// of this package change only these files, and not files of other programs.
const nativeProvider = "native"

// RemoveServer removes a server from the configuration file of a scope: config.OriginProject or config.OriginUser. If
// scope is empty, it removes the server's row that takes precedence among Drawbridge's own files. The error is a
// UserError if there is no such row, or if the server is in a file of another program. Any other error means that the
// file cannot be changed.
func (r *Service) RemoveServer(ctx context.Context, id drawbridge.ServerID, scope config.OriginKind) (Change, error) {
	if scope != "" && scope != config.OriginProject && scope != config.OriginUser {
		return Change{}, UserError("Invalid --scope value. Use project or user.")
	}
	if id == "" {
		return Change{}, userErrorf("Server name required. Usage: %s remove <name> [--scope project|user]",
			r.o.CommandPrefix)
	}
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return Change{}, err
	}
	row, err := r.removableRow(roll, id, scope)
	if err != nil {
		return Change{}, err
	}
	if err := config.RemoveServer(row.Origin.Path, id); err != nil {
		return Change{}, err
	}
	c := Change{Server: id, Kind: Removed, Scope: row.Origin.Kind, Path: row.Origin.Path}
	if scope != "" {
		c.Scope = scope
	}
	if err := r.fillChangeState(ctx, &c); err != nil {
		c.Notes = append(c.Notes, err.Error())
	}
	r.reloadAfter(ctx, &c)
	if err := r.forgetLearnedOutputs(ctx, row); err != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("what was learned from its results is still stored: %v", err))
	}
	return c, nil
}

// forgetLearnedOutputs deletes what was learned from the results of a removed row, unless another row has the same
// configuration.
func (r *Service) forgetLearnedOutputs(ctx context.Context, row config.Server) error {
	roll, err := r.ReadServers(ctx)
	if err != nil || slices.Contains(config.ServerHashes(roll.Servers), row.Hash) {
		return err
	}
	db, err := r.openStore(ctx, roll.Configuration, false)
	if err != nil || db == nil {
		return err
	}
	return errors.Join(db.ForgetLearnedOutputs(ctx, []string{row.Hash}), db.Close())
}

// removableRow returns the row that RemoveServer removes, or the error of RemoveServer.
func (r *Service) removableRow(roll ServerList, id drawbridge.ServerID, scope config.OriginKind) (
	config.Server, error) {
	rows := roll.rowsNamed(id)
	for _, row := range rows {
		if row.Provider == nativeProvider && r.isInScope(row, scope) {
			return row, nil
		}
	}
	if err := r.unreadableFileError(id, scope); err != nil {
		return config.Server{}, err
	}
	switch {
	case scope != "":
		return config.Server{}, userErrorf("Server %q not found in %s config.", id, scope)
	case len(rows) > 0:
		return config.Server{},
			userErrorf("Server %q is in a file of %s (%s): remove it there, or turn it off with %s disable %s",
				id, programTitle(rows[0].Provider), rows[0].Origin.Path, r.o.CommandPrefix, id)
	}
	return config.Server{}, roll.notFoundError(id)
}

// isInScope reports whether a row is in the configuration file of the scope. Every row is in the empty scope.
func (r *Service) isInScope(row config.Server, scope config.OriginKind) bool {
	if scope == "" || row.Origin.Kind == scope {
		return true
	}
	path, _, err := r.configFile(scope)
	return err == nil && sameFile(path, row.Origin.Path)
}

// unreadableFileError returns an error if a configuration file of the scope, which may contain the server, cannot be
// read. It is called when the server was not found.
func (r *Service) unreadableFileError(id drawbridge.ServerID, scope config.OriginKind) error {
	for _, one := range []config.OriginKind{config.OriginProject, config.OriginUser} {
		path, _, err := r.configFile(one)
		if scope != "" && scope != one || err != nil {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			continue
		}
		err = config.RemoveServer(path, id)
		if _, missing := errors.AsType[config.ServerEditError](err); err != nil && !missing {
			return err
		}
	}
	return nil
}

// programTitle returns the name that people know for the program with this provider ID.
func programTitle(provider string) string {
	for _, p := range config.Providers() {
		if p.Name == provider {
			return p.Title
		}
	}
	return provider
}

// DisableServer disables a server, so that it is not started. It sets "enabled" to false in the server's row in
// Drawbridge's file. In two cases it adds the name to disabledServers in the user's mcp.json instead: the row is in
// another program's file, or another row of the same name would then be used. The error is a UserError for a name that
// is not configured. Any other error means that the file cannot be changed.
func (r *Service) DisableServer(ctx context.Context, id drawbridge.ServerID) (Change, error) {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return Change{}, err
	}
	rows := roll.rowsNamed(id)
	if len(rows) == 0 {
		return Change{}, roll.notFoundError(id)
	}
	row := rows[0]
	c := Change{Server: id, Kind: Disabled, Scope: row.Origin.Kind, Path: row.Origin.Path}
	if row.Phase == drawbridge.Disabled {
		c.Kind, c.Phase, c.Reason = AlreadyDisabled, row.Phase, row.Reason
		return c, nil
	}
	could := 0
	for _, one := range rows {
		if one.Phase == drawbridge.Idle {
			could++
		}
	}
	if row.Provider == nativeProvider && could < 2 {
		err = config.SetServerEnabled(row.Origin.Path, id, false)
	} else if c.Path, err = config.UserFile(r.o.ConfigOptions); err == nil {
		c.Scope = config.OriginUser
		err = config.SetServerDisabled(c.Path, id, true)
	}
	if err != nil {
		return Change{}, err
	}
	if err := r.fillChangeState(ctx, &c); err != nil {
		c.Notes = append(c.Notes, err.Error())
	}
	r.reloadAfter(ctx, &c)
	return c, nil
}

// maxDisablingFiles is the maximum number of settings that EnableServer removes for one server.
const maxDisablingFiles = 8

// EnableServer removes all settings that disable a server. A server of a project directory may still need an approval;
// then Change.Phase is drawbridge.NeedsApproval. The error is a UserError for a name that is not configured, and for a
// server that another program's file disables. Any other error means that the file cannot be changed.
func (r *Service) EnableServer(ctx context.Context, id drawbridge.ServerID) (Change, error) {
	c := Change{Server: id, Kind: AlreadyEnabled}
	for range maxDisablingFiles {
		roll, err := r.ReadServers(ctx)
		if err != nil {
			return Change{}, err
		}
		row, off := roll.disabledRow(id)
		if row.ID == "" {
			return Change{}, roll.notFoundError(id)
		}
		c.Phase, c.Reason = row.Phase, row.Reason
		if !off {
			break
		}
		c.Kind, c.Scope, c.Path = Enabled, row.Origin.Kind, row.Origin.Path
		if err := r.enableRow(row); err != nil {
			return Change{}, err
		}
	}
	if c.Kind == AlreadyEnabled {
		return c, nil
	}
	if err := r.fillChangeState(ctx, &c); err != nil {
		c.Notes = append(c.Notes, err.Error())
	}
	r.reloadAfter(ctx, &c)
	return c, nil
}

// disabledRow returns the first disabled row with this name and true. If the row that takes precedence can be started,
// or no row is disabled, it returns the row that takes precedence and false. If no row has the name, it returns the
// zero value.
func (roll ServerList) disabledRow(id drawbridge.ServerID) (row config.Server, off bool) {
	rows := roll.rowsNamed(id)
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

// enableRow removes one setting that disables a row: an element of disabledServers or the member "enabled" of the row.
// It returns a UserError if the setting is in a file of another program.
func (r *Service) enableRow(row config.Server) error {
	switch {
	case row.DisabledBy != "":
		return config.SetServerDisabled(row.DisabledBy, row.ID, false)
	case row.Provider == nativeProvider:
		return config.SetServerEnabled(row.Origin.Path, row.ID, true)
	}
	return userErrorf(`Server %q is turned off by "enabled" in a file of %s (%s): change it there.`, row.ID,
		programTitle(row.Provider), row.Origin)
}

// An UnavailableError is a text for the person that describes why a server cannot be used now: it cannot be started, or
// the person did not sign in.
type UnavailableError string

// Error returns the description.
func (o UnavailableError) Error() string { return string(o) }

// CheckStartable returns nil if a server can be started now. The error is a UserError for a name that is not
// configured, and otherwise an UnavailableError.
func (r *Service) CheckStartable(roll ServerList, id drawbridge.ServerID) error {
	row, ok := roll.Lookup(id)
	switch {
	case !ok:
		return roll.notFoundError(id)
	case row.Phase == drawbridge.Idle:
		return nil
	case row.Phase == drawbridge.Disabled:
		return UnavailableError(fmt.Sprintf("Server %q is disabled. Run %s enable %s first.", id,
			r.o.CommandPrefix, id))
	case row.Phase == drawbridge.NeedsApproval:
		return UnavailableError(fmt.Sprintf("Server %q needs approval: %s", id, row.Reason))
	}
	return UnavailableError(fmt.Sprintf("Server %q is %s: %s", id, row.Phase, row.Reason))
}
