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

// ProgramAt reads the file at an absolute path. The error is that of the file, which must be a regular one.
func ProgramAt(path string) (Program, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return Program{}, err
	case !info.Mode().IsRegular(): // a pipe would have us wait for ever
		return Program{}, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return Program{}, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return Program{}, err
	}
	return Program{path, hex.EncodeToString(sum.Sum(nil))}, nil
}

// Check looks whether the file still is what it was. The error is a *ChangedError.
func (p Program) Check() error {
	if p == (Program{}) {
		return &ChangedError{}
	}
	now, err := ProgramAt(p.Path)
	var path *os.PathError
	switch {
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
