package cards

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// maxEditSize is the maximum size in bytes of a file that a card writes.
const maxEditSize = 16 << 20

// fileSystemOf returns the file system of a context, or the disk if the context has none.
func fileSystemOf(c deck.Context) deck.FileSystem {
	if c.FS != nil {
		return c.FS
	}
	return disk{}
}

// disk is the file system of this machine.
type disk struct{}

// Open opens a regular file or a directory. For other files, such as a FIFO, it returns an error without blocking.
func (disk) Open(path string) (fs.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openWithoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// WriteFile creates or replaces a file, and creates missing directories. If path is a link, WriteFile replaces the
// target of the link.
func (disk) WriteFile(path string, data []byte) error {
	path, err := configfile.ResolveLinks(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	switch {
	case err == nil: // a new file: the system has set its mode
		if err := f.Close(); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "write", Path: path, Err: errors.New("it is not a regular file")}
	}
	if err := configfile.ReplaceFile(path, data, info.Mode().Perm()); err != nil {
		return err
	}
	return keepOwner(path, info)
}

// fileError returns a text for the model about a failed step on a file. step is a verb, such as "read".
func fileError(step, path string, err error) ToolError {
	return ToolError("Could not " + step + " " + path + ": " + configfile.WithoutPath(err) + ".")
}
