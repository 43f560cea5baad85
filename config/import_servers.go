package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/launch"
)

// ImportServers adds the candidates whose status is ImportNew to a file, as one change, and returns their names. Other
// candidates are ignored. If there is nothing to add, the file is not touched.
//
// If a candidate cannot be added, nothing is written and the error is that of AddServer. An example is a candidate
// whose name was added to the file after the scan.
func ImportServers(path string, found []ImportCandidate) ([]drawbridge.ServerID, error) {
	var ids []drawbridge.ServerID
	rows := map[drawbridge.ServerID]json.RawMessage{}
	for _, f := range found {
		if f.Status != ImportNew {
			continue
		}
		if err := validateRow(f.Name, f.Raw); err != nil {
			return nil, err
		}
		ids = append(ids, f.Name)
		rows[f.Name] = f.Raw
	}
	if len(ids) == 0 {
		return nil, nil
	}
	err := UpdateFile(path, func(data []byte) ([]byte, error) {
		for _, id := range ids {
			f := rowFile{configfile.FormatOf(path), data}
			_, there, err := f.rowPath(id)
			switch {
			case err != nil:
				return nil, configfile.FileFault("change "+path, err)
			case there:
				return nil, existsError(id, path)
			}
			if data, err = f.putRow(path, id, rows[id]); err != nil {
				return nil, err
			}
		}
		return data, nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// Entry returns Drawbridge's entry in the client's configuration: the server named ClientEntryName, otherwise the first
// server that starts Drawbridge. The second result is false if the entry or the file is missing. The error is a
// *drawbridge.Fault, for a missing home directory or a file that cannot be read.
func (c Client) Entry(o Options) (ClientEntry, bool, error) {
	l, err := newLoader(o)
	if err != nil {
		return ClientEntry{}, false, err
	}
	providers, err := providersByName([]string{c.ID})
	if err != nil {
		return ClientEntry{}, false, err
	}
	places := providers[0].Locations
	at := places[slices.IndexFunc(places,
		func(at clientconfig.FileLocation) bool { return at.Root != clientconfig.ProjectRoot })]
	src := sourceFile{path: c.Path(o), kind: OriginUser, provider: c.ID, dialect: at.Shape,
		readRows: true, dir: l.Project}
	l.openSource(&src)
	switch {
	case errors.Is(src.err, fs.ErrNotExist):
		return ClientEntry{}, false, nil
	case src.err != nil:
		src.namedByPerson = true // a problem in the file is an error
		return ClientEntry{}, false, l.reportUnreadable(src, src.err)
	}
	rows, _ := src.dialect.Rows(src.root, src.dir)
	var first *Server
	for _, row := range rows {
		server, _ := l.readServer(src, row)
		if server.ID == ClientEntryName && !row.Local || first == nil &&
			launch.StartsDrawbridge(server.Command, server.Args) {
			first = &server
		}
	}
	if first == nil {
		return ClientEntry{}, false, nil
	}
	return ClientEntry{first.Command, first.Args, first.Env}, true, nil
}
