package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config/dialect"
	"github.com/drawbridge-mcp/drawbridge/config/disk"
	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// A RowError is an error for a person: it says why a row of a file cannot be changed as they asked. Scripts may know
// its sentences: they stay as they are.
type RowError string

// Error gives the sentence.
func (e RowError) Error() string { return string(e) }

func exists(id drawbridge.ServerID, path string) error {
	return RowError(fmt.Sprintf("Server %q already exists in %s", id, path))
}

func notFound(id drawbridge.ServerID, path string) error {
	return RowError(fmt.Sprintf("Server %q not found in %s", id, path))
}

// AddRow puts a new server into a native file: mcp.json with servers or mcpServers, as an object or an array, or
// drawbridge.toml. A file without servers gets them, as {"mcpServers": {…}} or [[mcp.servers]]. Row is an object
// without the name.
//
// The error is a drawbridge.BadName, a RowError ("Invalid server config: …; …", "Server … already exists in …"), or one
// of Update.
func AddRow(path string, id drawbridge.ServerID, row json.RawMessage) error {
	if err := checkRow(id, row); err != nil {
		return err
	}
	return Update(path, func(data []byte) ([]byte, error) {
		f := rowFile{doc.FormatOf(path), data}
		switch _, found, err := f.find(id); {
		case err != nil:
			return nil, disk.Broken("change "+path, err)
		case found:
			return nil, exists(id, path)
		}
		return f.put(path, id, row)
	})
}

// PutRow adds a server as AddRow does, or replaces the one that has the name, where it stands.
func PutRow(path string, id drawbridge.ServerID, row json.RawMessage) error {
	if err := checkRow(id, row); err != nil {
		return err
	}
	return Update(path, func(data []byte) ([]byte, error) {
		return rowFile{doc.FormatOf(path), data}.put(path, id, row)
	})
}

// RemoveRow takes a server out of a native file, also where both servers and mcpServers have it: the one that is left
// would count from then on. A name need not be valid for that. The error is a RowError ("Server … not found in …"), or
// one of Update.
func RemoveRow(path string, id drawbridge.ServerID) error {
	return changeRow(path, id, func(f rowFile, at []string) ([]byte, error) {
		found, err := true, error(nil)
		for found && err == nil {
			if f.data, err = doc.Remove(f.format, f.data, at); err == nil {
				at, found, err = f.find(id)
			}
		}
		return f.data, err
	})
}

// SetEnabled says in a server's row whether it is on. A row that does not say so is on, and is not changed for that.
// The errors are those of RemoveRow.
func SetEnabled(path string, id drawbridge.ServerID, on bool) error {
	return changeRow(path, id, func(f rowFile, at []string) ([]byte, error) {
		at = append(slices.Clone(at), "enabled")
		if _, said, err := doc.Get(f.format, f.data, at); on && !said {
			return f.data, err
		}
		return doc.Set(f.format, f.data, at, json.RawMessage(fmt.Sprint(on)))
	})
}

// SetDisabled puts a name on the list disabledServers of a native JSON file, or takes it off: a server that is defined
// elsewhere is kept off by it. The list is sorted; an empty one is left out. The error is one of Update.
func SetDisabled(path string, id drawbridge.ServerID, off bool) error {
	at := []string{"disabledServers"}
	return Update(path, func(data []byte) ([]byte, error) {
		if doc.FormatOf(path) != doc.JSON {
			return nil, disk.Broken("change "+path, fmt.Errorf("%s is read from JSON files only", at[0]))
		}
		raw, found, err := doc.Get(doc.JSON, data, at)
		var names []string
		if err == nil && found {
			err = json.Unmarshal(raw, &names)
		}
		if err != nil {
			return nil, disk.Broken("change "+path, fmt.Errorf("%q must be a list of names", at[0]))
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name == string(id) })
		if off {
			names = append(names, string(id))
		}
		slices.Sort(names)
		if len(names) == 0 {
			return changed(path)(doc.Remove(doc.JSON, data, at))
		}
		list, err := json.Marshal(slices.Compact(names))
		if err != nil {
			return nil, err
		}
		return changed(path)(doc.Set(doc.JSON, data, at, list))
	})
}

// A Replacement is a text within a row, by the names of the members that lead to it, and what takes its place.
type Replacement struct {
	At      []string
	Was, Is string
}

// ReplaceTexts puts texts in the places of others within a server's row, all of them or none. The error is a RowError where
// the row is not there, or does not say by now what it is said to; else one of Update.
func ReplaceTexts(path string, id drawbridge.ServerID, all []Replacement) error {
	stale := error(nil)
	err := changeRow(path, id, func(f rowFile, at []string) ([]byte, error) {
		for _, r := range all {
			place := append(slices.Clone(at), r.At...)
			said, _, err := doc.Get(f.format, f.data, place)
			var was string
			if err == nil && (json.Unmarshal(said, &was) != nil || was != r.Was) {
				stale = RowError(fmt.Sprintf("Server %q says something else by now in %s", id, path))
				err = stale
			}
			if err != nil {
				return nil, err
			}
			if f.data, err = doc.Set(f.format, f.data, place, doc.Node{Kind: doc.Text, Text: r.Is}.AppendJSON(nil, false)); err != nil {
				return nil, err
			}
		}
		return f.data, nil
	})
	return cmp.Or(stale, err)
}

// changeRow edits the row of a server that is there.
func changeRow(path string, id drawbridge.ServerID, edit func(f rowFile, at []string) ([]byte, error)) error {
	return Update(path, func(data []byte) ([]byte, error) {
		f := rowFile{doc.FormatOf(path), data}
		at, found, err := f.find(id)
		switch {
		case err != nil:
			return nil, disk.Broken("change "+path, err)
		case !found:
			return nil, notFound(id, path)
		}
		return changed(path)(edit(f, at))
	})
}

// changed names the step in the error of an edit.
func changed(path string) func([]byte, error) ([]byte, error) {
	return func(data []byte, err error) ([]byte, error) {
		if err != nil {
			return nil, disk.Broken("change "+path, err)
		}
		return data, nil
	}
}

// checkRow says why a row may not be written.
func checkRow(id drawbridge.ServerID, row json.RawMessage) error {
	if err := id.Valid(); err != nil {
		return err
	}
	if problems := rowProblems(id, row); len(problems) > 0 {
		return RowError("Invalid server config: " + strings.Join(problems, "; "))
	}
	return nil
}

// rowProblems reads a row as it will be read from its file. Variables that are not set where it is written may be where
// it is read.
func rowProblems(id drawbridge.ServerID, written json.RawMessage) (problems []string) {
	value, err := doc.ParseJSON(written)
	if err != nil {
		return []string{fmt.Sprintf("Server %q: %s", id, err)}
	}
	r := &rowReader{lookup: func(string) (string, bool) { return "", false }}
	r.read(dialect.Row{Name: string(id), Value: value})
	if r.fault != "" && r.fault != r.server.check() {
		problems = append(problems, r.fault)
	}
	if strings.Contains(r.server.URL, "${") {
		r.server.URL = "https://unresolved.invalid"
	}
	if a := r.server.Auth; a != nil {
		for _, m := range authMembers {
			if m.to != nil && strings.Contains(*m.to(a), "${") {
				*m.to(a) = "https://unresolved.invalid"
			}
		}
	}
	if why := r.server.check(); why != "" {
		problems = append(problems, why)
	}
	return problems
}

// A rowFile is a native file as its rows are found.
type rowFile struct {
	format doc.Format
	data   []byte
}

// lists are where rows may be held, in the order in which they count; key names the rows of an array.
func (f rowFile) lists() (lists [][]string, key string) {
	if f.format == doc.TOML {
		return [][]string{{"mcp", "servers"}}, "id"
	}
	return [][]string{{"servers"}, {"mcpServers"}}, "name"
}

// step is how a list leads to a server: held as an array it has an element, else a member.
func (f rowFile) step(list json.RawMessage, id drawbridge.ServerID) string {
	_, key := f.lists()
	if strings.HasPrefix(string(list), "[") {
		return doc.Element(key, string(id))
	}
	return string(id)
}

// find gives the path of a server's row.
func (f rowFile) find(id drawbridge.ServerID) (path []string, found bool, err error) {
	lists, _ := f.lists()
	for _, list := range lists {
		raw, held, err := doc.Get(f.format, f.data, list)
		if err != nil {
			return nil, false, err
		}
		if !held {
			continue
		}
		path := append(slices.Clone(list), f.step(raw, id))
		if _, found, err := doc.Get(f.format, f.data, path); found || err != nil {
			return path, found, err
		}
	}
	return nil, false, nil
}

// place is where a new row belongs: the first list that the file has, else a new one.
func (f rowFile) place(id drawbridge.ServerID) []string {
	lists, key := f.lists()
	for _, list := range lists {
		raw, held, _ := doc.Get(f.format, f.data, list)
		if held && string(raw) != "null" {
			return append(slices.Clone(list), f.step(raw, id))
		}
	}
	if f.format == doc.TOML {
		return append(slices.Clone(lists[0]), doc.Element(key, string(id)))
	}
	return []string{"mcpServers", string(id)}
}

// put writes a row in its place, or in a new one.
func (f rowFile) put(path string, id drawbridge.ServerID, row json.RawMessage) ([]byte, error) {
	at, found, err := f.find(id)
	if err != nil {
		return nil, disk.Broken("change "+path, err)
	}
	if !found {
		at = f.place(id)
	}
	_, key := f.lists()
	if row, err = doc.Remove(doc.JSON, row, []string{key}); err != nil {
		return nil, disk.Broken("change "+path, err)
	}
	if at[len(at)-1] != string(id) { // an element of an array says its name
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
	return changed(path)(doc.Set(f.format, f.data, at, row))
}
