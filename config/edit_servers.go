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

// A ServerEditError is the reason why a row of a file cannot be changed as requested. Scripts may depend on its
// sentences, so they do not change.
type ServerEditError string

// Error returns the sentence.
func (e ServerEditError) Error() string { return string(e) }

func existsError(id drawbridge.ServerID, path string) error {
	return ServerEditError(fmt.Sprintf("Server %q already exists in %s", id, path))
}

func notFoundError(id drawbridge.ServerID, path string) error {
	return ServerEditError(fmt.Sprintf("Server %q not found in %s", id, path))
}

// AddServer puts a new server into a native file: mcp.json with servers or mcpServers, as an object or an array, or
// drawbridge.toml. A file without servers gets them, as {"mcpServers": {…}} or [[mcp.servers]]. Row is an object
// without the name.
//
// The error is a drawbridge.NameError, a ServerEditError ("Invalid server config: …; …", "Server … already exists in
// …"), or one of Update.
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

// PutServer adds a server as AddServer does, or replaces the one of that name in place.
func PutServer(path string, id drawbridge.ServerID, row json.RawMessage) error {
	if err := validateRow(id, row); err != nil {
		return err
	}
	return UpdateFile(path, func(data []byte) ([]byte, error) {
		return rowFile{configfile.FormatOf(path), data}.putRow(path, id, row)
	})
}

// RemoveServer removes a server from a native file, from both servers and mcpServers, because a remaining row would
// become the one in force. The name need not be valid. The error is a ServerEditError ("Server … not
// found in …"), or one of Update.
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

// SetServerEnabled enables or disables a server in its row. A row without "enabled" is enabled; enabling it
// changes nothing. The errors are those of RemoveServer.
func SetServerEnabled(path string, id drawbridge.ServerID, on bool) error {
	return editRow(path, id, func(f rowFile, at []string) ([]byte, error) {
		at = append(slices.Clone(at), "enabled")
		if _, said, err := configfile.Get(f.format, f.data, at); on && !said {
			return f.data, err
		}
		return configfile.Set(f.format, f.data, at, json.RawMessage(fmt.Sprint(on)))
	})
}

// SetServerDisabled adds a name to the list disabledServers of a native JSON file, or removes it. The list disables a
// server that is defined elsewhere. It is sorted; an empty list is removed. The error is one of UpdateFile.
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

// A TextReplacement replaces a string within a row. Path holds the member names that lead to it.
type TextReplacement struct {
	Path     []string
	Old, New string
}

// ReplaceServerTexts replaces strings within a server's row, all of them or none. The error is a ServerEditError if the
// row does not exist or no longer has the expected strings; else one of UpdateFile.
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

// editRow edits the row of an existing server.
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

// wrapEditError names the step in the error of an edit.
func wrapEditError(path string) func([]byte, error) ([]byte, error) {
	return func(data []byte, err error) ([]byte, error) {
		if err != nil {
			return nil, configfile.FileFault("change "+path, err)
		}
		return data, nil
	}
}

// validateRow returns an error if a row must not be written.
func validateRow(id drawbridge.ServerID, row json.RawMessage) error {
	if err := id.Validate(); err != nil {
		return err
	}
	if problems := rowProblems(id, row); len(problems) > 0 {
		return ServerEditError("Invalid server config: " + strings.Join(problems, "; "))
	}
	return nil
}

// rowProblems reads a row as Load would read it from its file. Variables that are unset now may be set later.
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

// A rowFile is a native file with the locations of its rows.
type rowFile struct {
	format configfile.Format
	data   []byte
}

// serverLists are the members that may hold rows, in order of precedence; key names the rows of an array.
func (f rowFile) serverLists() (lists [][]string, key string) {
	if f.format == configfile.TOML {
		return [][]string{{"mcp", "servers"}}, "id"
	}
	return [][]string{{"servers"}, {"mcpServers"}}, "name"
}

// pathStep returns the path step from a list to a server: an element of an array, else a member.
func (f rowFile) pathStep(list json.RawMessage, id drawbridge.ServerID) string {
	_, key := f.serverLists()
	if strings.HasPrefix(string(list), "[") {
		return configfile.ElementStep(key, string(id))
	}
	return string(id)
}

// rowPath returns the path of a server's row.
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

// newRowPath returns the path for a new row: in the first list of the file, else in a new one.
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
