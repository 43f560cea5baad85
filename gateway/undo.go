package gateway

import (
	"cmp"
	"path/filepath"

	"github.com/oklog/ulid/v2"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/undo"
)

// undoSuffix is the end of the name of the directory that stores earlier contents of files.
const undoSuffix = "-undo"

// OpenUndoLog returns the undo log that belongs to a store; nil for a store in memory. The undo log stores the earlier
// contents of files that tools changed. The arguments are those of StoreLocation.
func OpenUndoLog(flag string, s config.Settings, lookup func(string) (string, bool)) (*undo.Log, error) {
	p, err := placeOfStore(flag, s, lookup)
	switch {
	case err != nil || p.idFile == "":
		return nil, err
	case isFileStore(p.location):
		return undo.Open(p.location+undoSuffix, 0), nil
	}
	return undo.Open(filepath.Join(p.stateDir, "files"+undoSuffix), 0), nil
}

// An undoLog stores the changes that tools make to files in an undo.Log.
type undoLog struct{ log *undo.Log }

var _ cards.UndoLog = undoLog{}

// Before implements [cards.UndoLog]: it stores the content of a file before a change. Changes are undone by run. Each
// call from the command line is a separate run, so that a person can undo the last command only.
func (u undoLog) Before(c cards.FileChange) (done func(after []byte) error, err error) {
	if c.Caller.Kind == drawbridge.Author {
		c.Run = "call:" + ulid.Make().String()
	}
	client := cmp.Or(rawjson.GetString(c.Caller.Client, "name"), c.Caller.Kind.String())
	return u.log.Before(undo.Change{Run: c.Run, Tool: c.Tool, Path: c.Path, Caller: c.Caller.Principal, Client: client,
		Dir: c.Caller.Dir})
}
