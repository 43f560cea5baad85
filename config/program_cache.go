package config

import (
	"fmt"
	"os"
	"sync"
)

// maxProgramBytes is how large a program may be that is approved. A file may say that it is of any size and have
// nothing in it: to read what a stranger's row names must come to an end.
const maxProgramBytes = 1 << 30

// A ProgramTooLargeError is for a program that nobody reads to its end: it can neither be approved nor be what was
// approved.
type ProgramTooLargeError struct {
	Path string
	Size int64
}

// Error names the file, and says how large it may be.
func (e *ProgramTooLargeError) Error() string {
	return fmt.Sprintf("its program %s is too large to be approved: it has %d MiB, and %d are allowed", e.Path,
		e.Size>>20, maxProgramBytes>>20)
}

// ProgramCache reads the programs of many rows, the same file once: as long as where it is, its size and the times of
// its last changes stay. It is for one look at a configuration; before a start a program is read anew
// (ProgramFile.CheckUnchanged). The zero value is ready, and may be used from several goroutines.
type ProgramCache struct {
	mu      sync.Mutex
	digests map[fileIdentity]string // digests
	reads   int                     // how many files were read, for tests
}

// checkProgramFits says whether the file at an absolute path may be approved, without reading it. The error is that of
// At.
func checkProgramFits(path string) error {
	_, err := statProgram(path)
	return err
}

// Hash reads the file at an absolute path. The error is that of the file, which must be a regular one: a
// *ProgramTooLargeError for one that is larger than maxProgramBytes.
func (p *ProgramCache) Hash(path string) (ProgramFile, error) {
	info, err := statProgram(path)
	if err != nil {
		return ProgramFile{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	id, ok := identifyFile(info)
	if digest := p.digests[id]; ok && digest != "" {
		return ProgramFile{path, digest}, nil
	}
	p.reads++
	read, info, err := readProgramInfo(path)
	if err != nil {
		return ProgramFile{}, err
	}
	if info == nil {
		return read, nil
	}
	if id, ok := identifyFile(info); ok {
		if p.digests == nil {
			p.digests = map[fileIdentity]string{}
		}
		p.digests[id] = read.Digest
	}
	return read, nil
}

// CheckUnchanged is Program's, for a look at a configuration.
func (p *ProgramCache) CheckUnchanged(was ProgramFile) error { return was.checkUnchangedBy(p.Hash) }

// statProgram looks at a file that is to be read whole.
func statProgram(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return info, checkRegularFile(path, info)
}

func checkRegularFile(path string, info os.FileInfo) error {
	switch {
	case !info.Mode().IsRegular(): // a pipe would have us wait for ever
		return fmt.Errorf("%s is no regular file", path)
	case info.Size() > maxProgramBytes:
		return &ProgramTooLargeError{path, info.Size()}
	}
	return nil
}

// unchangedFile says whether a file did not change between two looks; where that cannot be told, no.
func unchangedFile(before, after os.FileInfo) bool {
	a, ok := identifyFile(before)
	b, _ := identifyFile(after)
	return ok && a == b
}
