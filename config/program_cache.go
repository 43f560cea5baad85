package config

import (
	"fmt"
	"os"
	"sync"
)

// maxProgramBytes is the maximum size of an approved program. A sparse file may claim any size, and reading a file that
// a stranger's row names must end.
const maxProgramBytes = 1 << 30

// A ProgramTooLargeError reports a program that is too large to be read: it can be neither approved nor checked.
type ProgramTooLargeError struct {
	Path string
	Size int64
}

// Error names the file and the limit.
func (e *ProgramTooLargeError) Error() string {
	return fmt.Sprintf("its program %s is too large to be approved: it has %d MiB, and %d are allowed", e.Path,
		e.Size>>20, maxProgramBytes>>20)
}

// A ProgramCache hashes the programs of many rows and reads the same file once, while its location, size and times of
// change stay the same. It serves one look at a configuration; before a start the program is read again
// (ProgramFile.CheckUnchanged). The zero value is ready, and is safe for concurrent use.
type ProgramCache struct {
	mu      sync.Mutex
	digests map[fileIdentity]string // digests
	reads   int                     // how many files were read, for tests
}

// CheckProgramSize reports whether the file at an absolute path may be approved, without reading it. The error is that
// of Hash.
func CheckProgramSize(path string) error {
	_, err := statProgram(path)
	return err
}

// Hash reads the file at an absolute path. The file must be regular; a file larger than maxProgramBytes is a
// *ProgramTooLargeError.
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

// CheckUnchanged is ProgramFile.CheckUnchanged with cached digests, for one look at a configuration.
func (p *ProgramCache) CheckUnchanged(was ProgramFile) error { return was.checkUnchangedBy(p.Hash) }

// statProgram returns the info of a file that is to be read completely.
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
		return fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxProgramBytes:
		return &ProgramTooLargeError{path, info.Size()}
	}
	return nil
}

// unchangedFile reports whether a file did not change between two looks; false if that cannot be told.
func unchangedFile(before, after os.FileInfo) bool {
	a, ok := identifyFile(before)
	b, _ := identifyFile(after)
	return ok && a == b
}
