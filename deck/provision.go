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

// A Context is what cards are built with. The zero value works: the cards then use the disk and the working
// directory of the process.
type Context struct {
	// Dir is the directory in which relative paths start, for callers without a directory of their own. It is absolute;
	// empty means the working directory of the process.
	Dir string
	// FS replaces the disk for the cards that read and write files, for example by an editor; nil is the disk.
	FS FileSystem
	// Shell replaces the shell of this machine for the cards that execute; nil is that shell.
	Shell Shell
	// Handles are the backends that single cards use, by key. A card whose handle is absent answers that it is not
	// connected. A handle of the wrong type is a Backend fault.
	Handles map[string]any
}

// WorkingDir returns the directory in which a caller's relative paths start.
func (c Context) WorkingDir(caller drawbridge.Caller) (string, error) {
	if dir := cmp.Or(caller.Dir, c.Dir); dir != "" {
		return dir, nil
	}
	return os.Getwd()
}

// ResolvePath returns the absolute path that a caller means. "~" is the home directory, and a relative path starts in
// the caller's working directory. Links are not followed.
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
	// Open opens a file or a directory. It must not block for a FIFO or a device.
	Open(path string) (fs.File, error)
	// WriteFile replaces the content of a file in one step, and creates it with its directories if it does not exist. An
	// existing file keeps its mode and owner.
	WriteFile(path string, data []byte) error
}

// Handle returns the handle with a key. Without one it returns the zero value. The error is a Backend fault for a
// handle of another type.
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

// A Provisioned deck has the built cards of a profile.
type Provisioned struct{ tools []drawbridge.Card }

// Provision builds the cards of a catalogue that a profile selects, each once. The error is an UnknownCapability fault
// for an unknown profile, or the BuildFailed fault of the first card that cannot be built.
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

// Tools returns the built cards in the order of the catalogue. The slice is the caller's own.
func (p *Provisioned) Tools() []drawbridge.Card { return slices.Clone(p.tools) }

// Box returns the built cards by name. The map is the caller's own.
func (p *Provisioned) Box() map[drawbridge.CardName]drawbridge.Card {
	box := make(map[drawbridge.CardName]drawbridge.Card, len(p.tools))
	for _, tool := range p.tools {
		box[tool.Spec().Name] = tool
	}
	return box
}

// Close ends what the cards have started.
func (p *Provisioned) Close() error {
	var errs []error
	for _, tool := range p.tools {
		if c, ok := tool.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
