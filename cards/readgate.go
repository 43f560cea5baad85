package cards

import (
	"io/fs"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

// The refusals of a read gate, in the words that models are trained on.
const (
	notReadText  = ToolError("File has not been read yet. Read it first before writing to it.")
	modifiedText = ToolError("File has been modified since read, either by the user or by a linter. " +
		"Read it again before attempting to write it.")
)

// A ReadGate remembers which files each run has read, so that no run overwrites what it has not seen.
type ReadGate struct {
	seen *stateTable[map[string]fileStamp]
}

// maxGateFiles is the number of files that are remembered of a run.
const maxGateFiles = 10_000

// A fileStamp tells whether a file was changed.
type fileStamp struct {
	modified time.Time // rounded down to milliseconds
	size     int64
}

// NewReadGate returns a gate that has seen nothing.
func NewReadGate() *ReadGate { return &ReadGate{newStateTable[map[string]fileStamp]()} }

// note remembers a file as it is now, after it was read or written; nil info forgets it.
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

// check returns the refusal for a write to an existing file; nil if the run has read the file as it is now. info is nil
// if the file could not be examined. A person at the command line may write what they have not read.
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

// A fileBackend is what the cards for files share.
type fileBackend struct {
	context deck.Context
	files   deck.FileSystem
	gate    *ReadGate
	trail   *deck.ReadTrail
	undo    UndoLog
	// protected reports the files that searches skip; nil skips none.
	protected ProtectedFiles
}

// ProtectedFiles reports whether an absolute path, without links, is a file that only the person at the command line may
// read.
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

// noteRead records that a caller has read a file.
func (b fileBackend) noteRead(caller drawbridge.Caller, path string, info fs.FileInfo) {
	b.gate.note(caller, path, info)
	b.trail.Add(deck.RunOf(caller), deck.Source{Kind: "file", Name: path})
}
