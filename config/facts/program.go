package facts

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

// A Program is one file with what was in it. The zero value is none. What that file loads it cannot see, nor what a launcher such
// as npx brings from elsewhere.
type Program struct {
	// Path is absolute, and as it was found: links in it are not followed.
	Path string `json:"path,omitempty"`
	// Digest is the SHA-256 of what the file holds, in hex.
	Digest string `json:"sha256,omitempty"`
}

// ProgramAt reads the file at an absolute path. The error is that of the file, which must be a regular one: a *TooLargeError for
// one that is larger than MaxProgram.
func ProgramAt(path string) (Program, error) {
	p, _, err := readProgram(path)
	return p, err
}

// readProgram gives with the program what the file was when all of it was read; nil where it changed meanwhile.
func readProgram(path string) (Program, os.FileInfo, error) {
	if _, err := regular(path); err != nil {
		return Program{}, nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return Program{}, nil, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err == nil {
		err = readable(path, before)
	}
	if err != nil {
		return Program{}, nil, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, MaxProgram+1))
	switch {
	case err != nil:
		return Program{}, nil, err
	case n > MaxProgram: // it grew
		return Program{}, nil, &TooLargeError{path, n}
	}
	p := Program{path, hex.EncodeToString(sum.Sum(nil))}
	after, err := f.Stat()
	if err != nil || !same(before, after) {
		return p, nil, nil
	}
	return p, after, nil
}

// Check looks whether the file still is what it was. The error is a *ChangedError.
func (p Program) Check() error { return p.check(ProgramAt) }

func (p Program) check(at func(path string) (Program, error)) error {
	if p == (Program{}) {
		return &ChangedError{}
	}
	now, err := at(p.Path)
	var path *os.PathError
	var large *TooLargeError
	switch {
	case errors.As(err, &large):
		return &ChangedError{p.Path, "it is too large to be read"}
	case errors.As(err, &path):
		return &ChangedError{p.Path, path.Err.Error()}
	case err != nil:
		return &ChangedError{p.Path, err.Error()}
	case now != p:
		return &ChangedError{p.Path, "what the file holds has changed"}
	}
	return nil
}

// A ChangedError is for a program that is not what a person approved. Without a path there was none to approve.
type ChangedError struct{ Path, Why string }

// Error names the file, and says what became of it.
func (e *ChangedError) Error() string {
	if e.Path == "" {
		return "its program was not there when it was approved"
	}
	return fmt.Sprintf("its program %s is not the one that was approved: %s", e.Path, e.Why)
}

// FaultCode says that to try again is of no use: a person must look at it first.
func (e *ChangedError) FaultCode() drawbridge.FaultCode { return drawbridge.PolicyBlocked }

// The names of a program's facts.
const (
	programFact = "program"
	digestFact  = "program digest"
	digestKind  = "SHA-256 "
)

// Facts are what a person approves in a program; none for the zero one.
func (p Program) Facts() []Fact {
	if p == (Program{}) {
		return nil
	}
	return []Fact{{programFact, p.Path}, {digestFact, digestKind + p.Digest}}
}

// ProgramIn gives the program in facts; the zero one where they have none.
func ProgramIn(facts []Fact) (p Program) {
	for _, f := range facts {
		switch f.Name {
		case programFact:
			p.Path = f.Value
		case digestFact:
			p.Digest = strings.TrimPrefix(f.Value, digestKind)
		}
	}
	return p
}

// withoutProgram leaves the facts of the row itself.
func withoutProgram(facts []Fact) []Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(p Fact) bool { return p.Name == programFact || p.Name == digestFact })
}
