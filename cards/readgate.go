package cards

import (
	"io/fs"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

// The errors of a ReadGate, in a wording that models know from their training.
const (
	notReadText  = ToolError("File has not been read yet. Read it first before writing to it.")
	modifiedText = ToolError("File has been modified since read, either by the user or by a linter. " +
		"Read it again before attempting to write it.")
)

// A ReadGate stores which files each run has read. A run may overwrite a file only if it has read the current content.
type ReadGate struct {
	seen *stateTable[map[string]fileStamp]
}

// maxGateFiles is the maximum number of files stored for a run.
const maxGateFiles = 10_000

// A fileStamp is the state of a file by which changes are detected.
type fileStamp struct {
	modified time.Time // rounded down to milliseconds
	size     int64
}

// NewReadGate returns an empty gate.
func NewReadGate() *ReadGate { return &ReadGate{newStateTable[map[string]fileStamp]()} }

// note stores the current state of a file after it was read or written. If info is nil, note removes the file from the
// gate.
func (g *ReadGate) note(caller drawbridge.Caller, path string, info fs.FileInfo) {
	if g == nil {
		return
	}
	g.seen.use(caller, "", func(files *map[string]fileStamp) {
		if *files == nil || len(*files) >= maxGateFiles {
			*files = map[string]fileStamp{}
		}
		if info == nil {
			delete(*files, path)
			return
		}
		(*files)[path] = stampOf(info)
	})
}

// check returns an error for a write to an existing file, unless the run has read the current content. If info is nil,
// it removes the file from the gate and returns nil. A person at the command line may write files without reading them.
func (g *ReadGate) check(caller drawbridge.Caller, path string, info fs.FileInfo) (err error) {
	if g == nil || caller.Kind == drawbridge.Author {
		return nil
	}
	g.seen.use(caller, "", func(files *map[string]fileStamp) {
		stamp, ok := (*files)[path]
		switch {
		case info == nil:
			delete(*files, path)
		case !ok:
			err = notReadText
		case stamp != stampOf(info):
			err = modifiedText
		}
	})
	return err
}

func stampOf(info fs.FileInfo) fileStamp {
	return fileStamp{info.ModTime().Truncate(time.Millisecond), info.Size()}
}

// A fileBackend contains the data that the cards for files share.
type fileBackend struct {
	context deck.Context
	files   deck.FileSystem
	gate    *ReadGate
	trail   *deck.ReadTrail
	undo    UndoLog
	// protected reports whether searches must skip a file; nil skips no file.
	protected ProtectedFiles
}

// ProtectedFiles reports whether only the person at the command line may read a file. The path is absolute and contains
// no links.
type ProtectedFiles func(path string) bool

func newFileBackend(c deck.Context) (b fileBackend, err error) {
	b.context, b.files = c, fileSystemOf(c)
	if b.gate, err = deck.Handle[*ReadGate](c, ReadGateKey); err != nil {
		return b, err
	}
	if b.trail, err = deck.Handle[*deck.ReadTrail](c, ReadTrailKey); err != nil {
		return b, err
	}
	if b.undo, err = deck.Handle[UndoLog](c, UndoKey); err != nil {
		return b, err
	}
	b.protected, err = deck.Handle[ProtectedFiles](c, ProtectedFilesKey)
	return b, err
}

// noteRead stores that a caller has read a file, in the gate and in the trail.
func (b fileBackend) noteRead(caller drawbridge.Caller, path string, info fs.FileInfo) {
	b.gate.note(caller, path, info)
	b.trail.Add(deck.RunOf(caller), deck.Source{Kind: "file", Name: path})
}
