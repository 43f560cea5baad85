package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// A ProgramFile identifies a program's file by its path and the digest of its content. The zero value means no file.
// The digest does not cover other files that the program loads, or packages that a launcher such as npx downloads.
type ProgramFile struct {
	// Path is the absolute path at which the file was found; links in the path are not resolved.
	Path string `json:"path,omitempty"`
	// Digest is the hex SHA-256 of the file's content.
	Digest string `json:"sha256,omitempty"`
}

// HashProgram returns the path and the digest of the file at an absolute path. The file must be regular. The error is a
// *ProgramTooLargeError if the file is larger than maxProgramBytes.
func HashProgram(path string) (ProgramFile, error) {
	p, _, err := readProgramInfo(path)
	return p, err
}

// readProgramInfo is like HashProgram, and also returns the os.FileInfo of the file. This info is nil if the file
// changed while it was read.
func readProgramInfo(path string) (ProgramFile, os.FileInfo, error) {
	if _, err := statProgram(path); err != nil {
		return ProgramFile{}, nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return ProgramFile{}, nil, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err == nil {
		err = checkRegularFile(path, before)
	}
	if err != nil {
		return ProgramFile{}, nil, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, maxProgramBytes+1))
	switch {
	case err != nil:
		return ProgramFile{}, nil, err
	case n > maxProgramBytes: // the file grew after it was opened
		return ProgramFile{}, nil, &ProgramTooLargeError{path, n}
	}
	p := ProgramFile{path, hex.EncodeToString(sum.Sum(nil))}
	after, err := f.Stat()
	if err != nil || !unchangedFile(before, after) {
		return p, nil, nil
	}
	return p, after, nil
}

// CheckUnchanged returns a *ProgramChangedError if the file is missing or its content no longer has the digest. It also
// returns this error for the zero value, which means that no file was approved.
func (p ProgramFile) CheckUnchanged() error { return p.checkUnchangedBy(HashProgram) }

func (p ProgramFile) checkUnchangedBy(at func(path string) (ProgramFile, error)) error {
	if p == (ProgramFile{}) {
		return &ProgramChangedError{}
	}
	now, err := at(p.Path)
	var path *os.PathError
	var large *ProgramTooLargeError
	switch {
	case errors.As(err, &large):
		return &ProgramChangedError{p.Path, "it is too large to be read"}
	case errors.As(err, &path):
		return &ProgramChangedError{p.Path, path.Err.Error()}
	case err != nil:
		return &ProgramChangedError{p.Path, err.Error()}
	case now != p:
		return &ProgramChangedError{p.Path, "what the file holds has changed"}
	}
	return nil
}

// A ProgramChangedError reports that a program's file differs from the approved file. Path is empty if no file was
// approved, because the file did not exist at the time of the approval.
type ProgramChangedError struct{ Path, Why string }

// Error returns a message that names the file and the change.
func (e *ProgramChangedError) Error() string {
	if e.Path == "" {
		return "its program was not there when it was approved"
	}
	return fmt.Sprintf("its program %s is not the one that was approved: %s", e.Path, e.Why)
}

// FaultCode returns PolicyBlocked: a retry cannot succeed before a person has reviewed the change.
func (e *ProgramChangedError) FaultCode() drawbridge.FaultCode { return drawbridge.PolicyBlocked }

// The names of the facts about a program file, and the text before the digest in the value of the second fact.
const (
	programFactName  = "program"
	digestFactName   = "program digest"
	digestKindPrefix = "SHA-256 "
)

// approvalFacts returns the facts about the program that a person approves: its path and digest. It returns nil for the
// zero value.
func (p ProgramFile) approvalFacts() []NameValue {
	if p == (ProgramFile{}) {
		return nil
	}
	return []NameValue{{programFactName, p.Path}, {digestFactName, digestKindPrefix + p.Digest}}
}

// ProgramInFacts returns the program file that the approval facts contain; the zero value if they contain none.
func ProgramInFacts(facts []NameValue) (p ProgramFile) {
	for _, f := range facts {
		switch f.Name {
		case programFactName:
			p.Path = f.Value
		case digestFactName:
			p.Digest = strings.TrimPrefix(f.Value, digestKindPrefix)
		}
	}
	return p
}

// withoutProgramFacts returns the facts without those of the program file.
func withoutProgramFacts(facts []NameValue) []NameValue {
	return slices.DeleteFunc(slices.Clone(facts), func(p NameValue) bool {
		return p.Name == programFactName ||
			p.Name == digestFactName
	})
}
