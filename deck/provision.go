package deck

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Context contains the file system, shell and directory that built-in tools use; see [Catalogue.Build]. With the zero
// value, tools use the disk, the shell of this machine and the working directory of the process.
type Context struct {
	// Dir is the base directory of relative paths, for callers without a directory. It is an absolute path; empty means
	// the working directory of the process.
	Dir string
	// FS is the file system for tools that read and write files, for example the file system of an editor; nil means
	// the disk.
	FS FileSystem
	// Shell starts the commands of tools that execute commands; nil means the shell of this machine.
	Shell Shell
	// Handles are backends that some tools need, by key; see [Handle]. A tool whose handle is missing returns the error
	// that it is not connected.
	Handles map[string]any
}

// WorkingDir returns the base directory of a caller's relative paths: the caller's directory, or else c.Dir, or else
// the working directory of the process.
func (c Context) WorkingDir(caller drawbridge.Caller) (string, error) {
	if dir := cmp.Or(caller.Dir, c.Dir); dir != "" {
		return dir, nil
	}
	return os.Getwd()
}

// ResolvePath returns the absolute path for a path of a caller. "~" is the home directory, and a relative path is
// relative to the caller's working directory. Symbolic links are not resolved.
func (c Context) ResolvePath(caller drawbridge.Caller, path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		if home, err := os.UserHomeDir(); err == nil {
			path = home + rest
		}
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	dir, err := c.WorkingDir(caller)
	return filepath.Join(dir, path), err
}

// A FileSystem reads and writes files by absolute path.
type FileSystem interface {
	// Open opens a file or a directory. It must not block when it opens a FIFO or a device.
	Open(path string) (fs.File, error)
	// WriteFile replaces the content of a file atomically. If the file does not exist, it creates the file and its
	// directories. An existing file keeps its mode and owner.
	WriteFile(path string, data []byte) error
}

// Handle returns the backend with this key in ctx.Handles, or the zero value if there is none. If the backend is not of
// type T, Handle returns a Backend fault.
func Handle[T any](ctx Context, key string) (handle T, err error) {
	value, ok := ctx.Handles[key]
	if !ok || value == nil {
		return handle, nil
	}
	if handle, ok = value.(T); !ok {
		return handle, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.ServerError, Step: fmt.Sprintf("handle %q", key),
			Err: fmt.Errorf("it is of type %T, and must be of type %v", value, reflect.TypeFor[T]()),
		}
	}
	return handle, nil
}

// A Provisioned contains the tools that were created for the cards of a profile.
type Provisioned struct{ tools []drawbridge.Card }

// Provision creates the tools of all cards that a profile selects from a catalogue. It returns an UnknownCapability
// fault for an unknown profile, or the BuildFailed fault of the first tool that cannot be created.
func Provision(c *Catalogue, p Profile, ctx Context) (*Provisioned, error) {
	cards, err := c.CardsForDeckProfile(p)
	if err != nil {
		return nil, err
	}
	built := &Provisioned{}
	for _, card := range cards {
		tool, err := buildCard(card, ctx)
		if err != nil {
			return nil, errors.Join(err, built.Close())
		}
		built.tools = append(built.tools, tool)
	}
	return built, nil
}

// Tools returns the tools in the order of the catalogue. The caller may change the slice.
func (p *Provisioned) Tools() []drawbridge.Card { return slices.Clone(p.tools) }

// Box returns the tools by name. The caller may change the map.
func (p *Provisioned) Box() map[drawbridge.CardName]drawbridge.Card {
	box := make(map[drawbridge.CardName]drawbridge.Card, len(p.tools))
	for _, tool := range p.tools {
		box[tool.Spec().Name] = tool
	}
	return box
}

// Close closes the tools that implement [io.Closer], and returns their errors.
func (p *Provisioned) Close() error {
	var errs []error
	for _, tool := range p.tools {
		if c, ok := tool.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
