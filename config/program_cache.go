package config

import (
	"fmt"
	"os"
	"sync"
)

// maxProgramBytes is the maximum size of an approved program. Without a limit, a stranger's row could name a sparse
// file of any size, and reading the file might take very long.
const maxProgramBytes = 1 << 30

// A ProgramTooLargeError reports a program that is too large to be read. The program can be neither approved nor
// checked.
type ProgramTooLargeError struct {
	Path string
	Size int64
}

// Error returns a message that contains the path, the size and the limit.
func (e *ProgramTooLargeError) Error() string {
	return fmt.Sprintf("its program %s is too large to be approved: it has %d MiB, and %d are allowed", e.Path,
		e.Size>>20, maxProgramBytes>>20)
}

// A ProgramCache hashes the program files of many rows. It reads a file only once, as long as the file's identity, size
// and times do not change. Use a cache only while one configuration is examined; ProgramFile.CheckUnchanged reads the
// program again before a start. The zero value is ready to use, and is safe for concurrent use.
type ProgramCache struct {
	mu      sync.Mutex
	digests map[fileIdentity]string // by identity of the file
	reads   int                     // the number of files that were read, for tests
}

// CheckProgramSize returns an error if the file at an absolute path cannot be approved: it is missing, not regular or
// too large. CheckProgramSize does not read the file. The errors are those of ProgramCache.Hash.
func CheckProgramSize(path string) error {
	_, err := statProgram(path)
	return err
}

// Hash returns the path and the digest of the file at an absolute path. The file must be regular. The error is a
// *ProgramTooLargeError if the file is larger than maxProgramBytes.
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

// CheckUnchanged is like ProgramFile.CheckUnchanged, but may use a cached digest.
func (p *ProgramCache) CheckUnchanged(was ProgramFile) error { return was.checkUnchangedBy(p.Hash) }

// statProgram returns the os.FileInfo of a program's file. It returns an error if the file is missing, not regular or
// too large.
func statProgram(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return info, checkRegularFile(path, info)
}

func checkRegularFile(path string, info os.FileInfo) error {
	switch {
	case !info.Mode().IsRegular(): // reading a pipe might block forever
		return fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxProgramBytes:
		return &ProgramTooLargeError{path, info.Size()}
	}
	return nil
}

// unchangedFile reports whether two infos have the same fileIdentity, so the file did not change between them. It
// returns false if the system provides no identity.
func unchangedFile(before, after os.FileInfo) bool {
	a, ok := identifyFile(before)
	b, _ := identifyFile(after)
	return ok && a == b
}
