package facts

import (
	"fmt"
	"os"
	"sync"
)

// MaxProgram is how large a program may be that is approved. A file may say that it is of any size and have nothing in it: to
// read what a stranger's row names must come to an end.
const MaxProgram = 1 << 30

// A TooLargeError is for a program that nobody reads to its end: it can neither be approved nor be what was approved.
type TooLargeError struct {
	Path string
	Size int64
}

// Error names the file, and says how large it may be.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("its program %s is too large to be approved: it has %d MiB, and %d are allowed", e.Path, e.Size>>20, MaxProgram>>20)
}

// Programs reads the programs of many rows, the same file once: as long as where it is, its size and the times of its last
// changes stay. It is for one look at a configuration; before a start a program is read anew (Program.Check). The zero value is
// ready, and may be used from several goroutines.
type Programs struct {
	mu    sync.Mutex
	known map[identity]string // digests
	reads int                 // how many files were read, for tests
}

// Fits says whether the file at an absolute path may be approved, without reading it. The error is that of At.
func Fits(path string) error {
	_, err := regular(path)
	return err
}

// At reads the file at an absolute path. The error is that of the file, which must be a regular one: a *TooLargeError for one
// that is larger than MaxProgram.
func (p *Programs) At(path string) (Program, error) {
	info, err := regular(path)
	if err != nil {
		return Program{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	id, ok := identify(info)
	if digest := p.known[id]; ok && digest != "" {
		return Program{path, digest}, nil
	}
	p.reads++
	read, info, err := readProgram(path)
	if err != nil {
		return Program{}, err
	}
	if info == nil {
		return read, nil
	}
	if id, ok := identify(info); ok {
		if p.known == nil {
			p.known = map[identity]string{}
		}
		p.known[id] = read.Digest
	}
	return read, nil
}

// Check is Program's, for a look at a configuration.
func (p *Programs) Check(was Program) error { return was.check(p.At) }

// regular looks at a file that is to be read whole.
func regular(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return info, readable(path, info)
}

func readable(path string, info os.FileInfo) error {
	switch {
	case !info.Mode().IsRegular(): // a pipe would have us wait for ever
		return fmt.Errorf("%s is no regular file", path)
	case info.Size() > MaxProgram:
		return &TooLargeError{path, info.Size()}
	}
	return nil
}

// same says whether a file did not change between two looks; where that cannot be told, no.
func same(before, after os.FileInfo) bool {
	a, ok := identify(before)
	b, _ := identify(after)
	return ok && a == b
}
