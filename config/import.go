package config

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config/dialect"
	"github.com/drawbridge-mcp/drawbridge/config/disk"
	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/config/spawn"
)

// TakeOver adds the definitions of found that are New to a native file, all of them as one change, and gives their
// names; the others are left where they are. Where there is nothing to add the file is not touched.
//
// The error is that of AddRow about the first that cannot be added, such as one whose name somebody has added since the
// scan. Nothing is written then.
func TakeOver(path string, found []Found) ([]drawbridge.ServerID, error) {
	var ids []drawbridge.ServerID
	rows := map[drawbridge.ServerID]json.RawMessage{}
	for _, f := range found {
		if f.Status != New {
			continue
		}
		if err := checkRow(f.Name, f.Row); err != nil {
			return nil, err
		}
		ids = append(ids, f.Name)
		rows[f.Name] = f.Row
	}
	if len(ids) == 0 {
		return nil, nil
	}
	err := Update(path, func(data []byte) ([]byte, error) {
		for _, id := range ids {
			f := rowFile{doc.FormatOf(path), data}
			_, there, err := f.find(id)
			switch {
			case err != nil:
				return nil, disk.Broken("change "+path, err)
			case there:
				return nil, exists(id, path)
			}
			if data, err = f.put(path, id, rows[id]); err != nil {
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

// Entry gives what the client's configuration says of Drawbridge: the server ClientEntry, else the first that starts
// Drawbridge. It says false where there is none, or no file. The error is a *drawbridge.Fault: there is no home, or a
// file that cannot be read.
func (c Client) Entry(o Options) (Entry, bool, error) {
	l, err := newLoader(o)
	if err != nil {
		return Entry{}, false, err
	}
	providers, err := chosen([]string{c.ID})
	if err != nil {
		return Entry{}, false, err
	}
	places := providers[0].Places
	at := places[slices.IndexFunc(places, func(at dialect.Place) bool { return at.Root != dialect.Project })]
	src := source{path: c.Path(o), kind: User, provider: c.ID, shape: at.Shape, rows: true, dir: l.Project}
	l.open(&src)
	switch {
	case errors.Is(src.err, fs.ErrNotExist):
		return Entry{}, false, nil
	case src.err != nil:
		src.named = true // what is wrong is an error
		return Entry{}, false, l.unreadable(src, src.err)
	}
	rows, _ := src.shape.Rows(src.root, src.dir)
	var first *Server
	for _, row := range rows {
		server, _ := l.row(src, row)
		if server.ID == ClientEntry && !row.Local || first == nil && spawn.StartsDrawbridge(server.Command, server.Args) {
			first = &server
		}
	}
	if first == nil {
		return Entry{}, false, nil
	}
	return Entry{first.Command, first.Args, first.Env}, true, nil
}
