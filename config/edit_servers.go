package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A ServerEditError describes why a row of a file cannot be changed as requested. Scripts may depend on the texts, so
// the texts must not change.
type ServerEditError string

// Error returns the description.
func (e ServerEditError) Error() string { return string(e) }

func existsError(id drawbridge.ServerID, path string) error {
	return ServerEditError(fmt.Sprintf("Server %q already exists in %s", id, path))
}

func notFoundError(id drawbridge.ServerID, path string) error {
	return ServerEditError(fmt.Sprintf("Server %q not found in %s", id, path))
}

// AddServer adds a new server to one of Drawbridge's files: drawbridge.toml, or an mcp.json with servers or
// mcpServers as an object or an array. If the file has no list of servers, AddServer adds {"mcpServers": {…}} or
// [[mcp.servers]]. row is a JSON object without the name.
//
// The error is a drawbridge.NameError, a ServerEditError ("Invalid server config: …; …", "Server … already exists
// in …"), or an error of UpdateFile.
func AddServer(path string, id drawbridge.ServerID, row json.RawMessage) error {
	if err := validateRow(id, row); err != nil {
		return err
	}
	return UpdateFile(path, func(data []byte) ([]byte, error) {
		f := rowFile{configfile.FormatOf(path), data}
		switch _, found, err := f.rowPath(id); {
		case err != nil:
			return nil, configfile.FileFault("change "+path, err)
		case found:
			return nil, existsError(id, path)
		}
		return f.putRow(path, id, row)
	})
}

// PutServer adds a server like AddServer; if the file already has a server of that name, PutServer replaces its row in
// place.
func PutServer(path string, id drawbridge.ServerID, row json.RawMessage) error {
	if err := validateRow(id, row); err != nil {
		return err
	}
	return UpdateFile(path, func(data []byte) ([]byte, error) {
		return rowFile{configfile.FormatOf(path), data}.putRow(path, id, row)
	})
}

// RemoveServer removes a server from one of Drawbridge's files. It removes the server from both servers and mcpServers,
// because otherwise the remaining row would take effect. The name need not be valid. The error is a ServerEditError
// ("Server … not found in …"), or an error of UpdateFile.
func RemoveServer(path string, id drawbridge.ServerID) error {
	return editRow(path, id, func(f rowFile, at []string) ([]byte, error) {
		found, err := true, error(nil)
		for found && err == nil {
			if f.data, err = configfile.Remove(f.format, f.data, at); err == nil {
				at, found, err = f.rowPath(id)
			}
		}
		return f.data, err
	})
}

// SetServerEnabled enables or disables a server in its row. Enabling a row without the member "enabled" changes
// nothing, because such a row is enabled. The errors are those of RemoveServer.
func SetServerEnabled(path string, id drawbridge.ServerID, on bool) error {
	return editRow(path, id, func(f rowFile, at []string) ([]byte, error) {
		at = append(slices.Clone(at), "enabled")
		if _, said, err := configfile.Get(f.format, f.data, at); on && !said {
			return f.data, err
		}
		return configfile.Set(f.format, f.data, at, json.RawMessage(fmt.Sprint(on)))
	})
}

// SetServerDisabled adds a server's name to the list disabledServers of a JSON file, or removes the name if off is
// false. The list disables servers that are defined in other files. The list is sorted; an empty list is removed. The
// error is an error of UpdateFile; it also reports a file in another format.
func SetServerDisabled(path string, id drawbridge.ServerID, off bool) error {
	at := []string{"disabledServers"}
	return UpdateFile(path, func(data []byte) ([]byte, error) {
		if configfile.FormatOf(path) != configfile.JSON {
			return nil, configfile.FileFault("change "+path, fmt.Errorf("%s is read from JSON files only", at[0]))
		}
		raw, found, err := configfile.Get(configfile.JSON, data, at)
		var names []string
		if err == nil && found {
			err = json.Unmarshal(raw, &names)
		}
		if err != nil {
			return nil, configfile.FileFault("change "+path, fmt.Errorf("%q must be a list of names", at[0]))
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name == string(id) })
		if off {
			names = append(names, string(id))
		}
		slices.Sort(names)
		if len(names) == 0 {
			return wrapEditError(path)(configfile.Remove(configfile.JSON, data, at))
		}
		list, err := json.Marshal(slices.Compact(names))
		if err != nil {
			return nil, err
		}
		return wrapEditError(path)(configfile.Set(configfile.JSON, data, at, list))
	})
}

// A TextReplacement replaces the string Old by New within a row. Path is the list of member names that leads to the
// string.
type TextReplacement struct {
	Path     []string
	Old, New string
}

// ReplaceServerTexts replaces strings in a server's row: either all of them or none. The error is a ServerEditError if
// the row does not exist, or if a string differs from the expected Old. Other errors are those of UpdateFile.
func ReplaceServerTexts(path string, id drawbridge.ServerID, all []TextReplacement) error {
	stale := error(nil)
	err := editRow(path, id, func(f rowFile, at []string) ([]byte, error) {
		for _, r := range all {
			place := append(slices.Clone(at), r.Path...)
			said, _, err := configfile.Get(f.format, f.data, place)
			var was string
			if err == nil && (json.Unmarshal(said, &was) != nil || was != r.Old) {
				stale = ServerEditError(fmt.Sprintf("Server %q says something else by now in %s", id, path))
				err = stale
			}
			if err != nil {
				return nil, err
			}
			if f.data, err = configfile.Set(f.format, f.data, place, configfile.Node{Kind: configfile.Text,
				Text: r.New}.AppendJSON(nil, false)); err != nil {
				return nil, err
			}
		}
		return f.data, nil
	})
	return cmp.Or(stale, err)
}

// editRow calls edit with the path of an existing server's row, and writes the returned content to the file.
func editRow(path string, id drawbridge.ServerID, edit func(f rowFile, at []string) ([]byte, error)) error {
	return UpdateFile(path, func(data []byte) ([]byte, error) {
		f := rowFile{configfile.FormatOf(path), data}
		at, found, err := f.rowPath(id)
		switch {
		case err != nil:
			return nil, configfile.FileFault("change "+path, err)
		case !found:
			return nil, notFoundError(id, path)
		}
		return wrapEditError(path)(edit(f, at))
	})
}

// wrapEditError returns a function that adds the step "change PATH" to the error of an edit.
func wrapEditError(path string) func([]byte, error) ([]byte, error) {
	return func(data []byte, err error) ([]byte, error) {
		if err != nil {
			return nil, configfile.FileFault("change "+path, err)
		}
		return data, nil
	}
}

// validateRow returns an error if the name or the row is invalid, so that the row must not be written.
func validateRow(id drawbridge.ServerID, row json.RawMessage) error {
	if err := id.Validate(); err != nil {
		return err
	}
	if problems := rowProblems(id, row); len(problems) > 0 {
		return ServerEditError("Invalid server config: " + strings.Join(problems, "; "))
	}
	return nil
}

// rowProblems returns the problems for which Load would refuse the row. Problems that only come from unset variables
// are ignored, since the variables may be set later.
func rowProblems(id drawbridge.ServerID, written json.RawMessage) (problems []string) {
	value, err := configfile.ParseJSON(written)
	if err != nil {
		return []string{fmt.Sprintf("Server %q: %s", id, err)}
	}
	r := &rowReader{lookup: func(string) (string, bool) { return "", false }}
	r.read(clientconfig.ServerRow{Name: string(id), Value: value})
	if r.refusedBecause != "" && r.refusedBecause != r.server.invalidReason() {
		problems = append(problems, r.refusedBecause)
	}
	if strings.Contains(r.server.URL, "${") {
		r.server.URL = "https://unresolved.invalid"
	}
	if a := r.server.Auth; a != nil {
		for _, m := range authMemberTable {
			if m.target != nil && strings.Contains(*m.target(a), "${") {
				*m.target(a) = "https://unresolved.invalid"
			}
		}
	}
	if why := r.server.invalidReason(); why != "" {
		problems = append(problems, why)
	}
	return problems
}

// A rowFile is the content of one of Drawbridge's files; its methods locate and change rows.
type rowFile struct {
	format configfile.Format
	data   []byte
}

// serverLists returns the paths of the members that may contain rows, in order of precedence. If such a member is an
// array, key is the member of a row that contains the row's name.
func (f rowFile) serverLists() (lists [][]string, key string) {
	if f.format == configfile.TOML {
		return [][]string{{"mcp", "servers"}}, "id"
	}
	return [][]string{{"servers"}, {"mcpServers"}}, "name"
}

// pathStep returns the last step of the path to a server's row. list is the JSON of the member that contains the rows.
// If list is an array, the step selects the element that has the server's name; otherwise the step is the name.
func (f rowFile) pathStep(list json.RawMessage, id drawbridge.ServerID) string {
	_, key := f.serverLists()
	if strings.HasPrefix(string(list), "[") {
		return configfile.ElementStep(key, string(id))
	}
	return string(id)
}

// rowPath returns the path of a server's row. found is false if the file has no such row.
func (f rowFile) rowPath(id drawbridge.ServerID) (path []string, found bool, err error) {
	lists, _ := f.serverLists()
	for _, list := range lists {
		raw, held, err := configfile.Get(f.format, f.data, list)
		if err != nil {
			return nil, false, err
		}
		if !held {
			continue
		}
		path := append(slices.Clone(list), f.pathStep(raw, id))
		if _, found, err := configfile.Get(f.format, f.data, path); found || err != nil {
			return path, found, err
		}
	}
	return nil, false, nil
}

// newRowPath returns the path for a new row: in the first list that the file has, otherwise in a new list.
func (f rowFile) newRowPath(id drawbridge.ServerID) []string {
	lists, key := f.serverLists()
	for _, list := range lists {
		raw, held, _ := configfile.Get(f.format, f.data, list)
		if held && string(raw) != "null" {
			return append(slices.Clone(list), f.pathStep(raw, id))
		}
	}
	if f.format == configfile.TOML {
		return append(slices.Clone(lists[0]), configfile.ElementStep(key, string(id)))
	}
	return []string{"mcpServers", string(id)}
}

// putRow replaces an existing row or adds a new one.
func (f rowFile) putRow(path string, id drawbridge.ServerID, row json.RawMessage) ([]byte, error) {
	at, found, err := f.rowPath(id)
	if err != nil {
		return nil, configfile.FileFault("change "+path, err)
	}
	if !found {
		at = f.newRowPath(id)
	}
	_, key := f.serverLists()
	if row, err = configfile.Remove(configfile.JSON, row, []string{key}); err != nil {
		return nil, configfile.FileFault("change "+path, err)
	}
	if at[len(at)-1] != string(id) { // an element of an array contains its name
		name, err := json.Marshal(id)
		if err != nil {
			return nil, err
		}
		members := strings.TrimPrefix(strings.TrimSpace(string(row)), "{")
		between := ","
		if strings.TrimSpace(members) == "}" {
			between = ""
		}
		row = json.RawMessage(fmt.Sprintf("{%q:%s%s%s", key, name, between, members))
	}
	return wrapEditError(path)(configfile.Set(f.format, f.data, at, row))
}
