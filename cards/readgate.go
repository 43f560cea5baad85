package cards

import (
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
)

// The errors of a ReadGate, in a wording that models know from their training.
const (
	notReadText  = ToolError("File has not been read yet. Read it first before writing to it.")
	modifiedText = ToolError("File has been modified since read, either by the user or by a linter. " +
		"Read it again before attempting to write it.")
)

// A ReadGate stores which files each run of an agent has read. A run may change a file only if it has read the current
// content.
type ReadGate struct {
	seen *stateTable[map[string]fileStamp]
}

// maxGateFiles is the maximum number of files stored for a run. When it is reached, all are deleted, and the run must
// read the files again before it may change them.
const maxGateFiles = 10_000

// A fileStamp contains the modification time and the size of a file. A file with another fileStamp has changed.
type fileStamp struct {
	modified time.Time // rounded down to milliseconds
	size     int64
}

// NewReadGate returns an empty gate.
func NewReadGate() *ReadGate { return &ReadGate{newStateTable[map[string]fileStamp]()} }

// note stores the current state of a file after it was read or written. If info is nil, note deletes that state, so
// that the run must read the file again.
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

// check returns an error if the run must not write a file, because it has not read the file's current content. info is
// the current state of the file; if it is nil, check deletes the stored state and returns nil. A person at the command
// line may write files without reading them.
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

// noteRead stores that a caller has read a file, in the ReadGate and in the ReadTrail.
func (b fileBackend) noteRead(ctx context.Context, caller drawbridge.Caller, path string, info fs.FileInfo) {
	b.gate.note(caller, path, info)
	if info.Mode().IsRegular() {
		b.noteSource(ctx, caller, path)
		return
	}
	b.trail.Add(deck.RunOf(caller), deck.Source{Kind: "file", Name: path, Call: audit.CallID(ctx)})
}

// maxDigested is the maximum size in bytes of a file whose digest is stored with a read of it.
const maxDigested = 16 << 20

// noteSource stores a regular file that a caller has read in the ReadTrail. The digest is that of the whole file, also
// if the caller has read a part.
func (b fileBackend) noteSource(ctx context.Context, caller drawbridge.Caller, path string) {
	if b.trail == nil {
		return
	}
	b.trail.Add(deck.RunOf(caller), deck.Source{Kind: "file", Name: path, Digest: b.digest(path), Call: audit.CallID(ctx)})
}

// digest returns the digest of a file. It is the zero value for a directory, for a file of more than maxDigested bytes,
// and for a file that cannot be read.
func (b fileBackend) digest(path string) (d deck.Digest) {
	f, err := b.files.Open(path)
	if err != nil {
		return d
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxDigested {
		return d
	}
	sum := sha256.New()
	if n, err := io.Copy(sum, io.LimitReader(f, maxDigested+1)); err != nil || n > maxDigested {
		return d
	}
	sum.Sum(d[:0])
	return d
}
