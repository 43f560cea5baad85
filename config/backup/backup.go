// Package backup keeps what a client's file held before Drawbridge was put into it: the way back, one record a file.
//
// A record is written before the file is, and taken away after: no crash leaves a file that nobody can put back.
package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/config/disk"
)

// A Record is what is kept of a client's file that Drawbridge was put into.
type Record struct {
	Client string `json:"client"`
	Path   string `json:"path"`
	// Existed says whether there was a file, Before what it held.
	Existed bool   `json:"existed"`
	Before  []byte `json:"before"`
	// Wrote has the hex SHA-256 of each content that we wrote and that Before is the way back from. It is more than one
	// after connecting twice: a crash may have come between the record and the file.
	Wrote []string `json:"wrote"`
	// Replaced are the entries that were taken out, for a file that somebody else has edited since.
	Replaced map[string]json.RawMessage `json:"replaced,omitempty"`
	// Made are the directories that were made for the file, the deepest first.
	Made []string `json:"made,omitempty"`
}

// Names lists the entries that are put back, without our own, which is called own.
func (b *Record) Names(own string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.Replaced)), func(name string) bool { return name == own })
}

// HashOf names the content of a file, as Wrote has it.
func HashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Dir is a directory with one record for each client's file.
type Dir string

func (b Dir) file(client, path string) string {
	return filepath.Join(string(b), client+"-"+HashOf([]byte(path))[:12]+".json")
}

// Read gives the record of a file; nil where there is none. The error is a *drawbridge.Fault, as those below are.
func (b Dir) Read(client, path string) (*Record, error) {
	file := b.file(client, path)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var record Record
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil || record.Path != path {
		return nil, disk.Broken("read the backup "+file, errors.New("it is no record of "+path))
	}
	return &record, nil
}

// Write keeps a record, in the place of an earlier one of the same file.
func (b Dir) Write(record Record) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return disk.Broken("back up "+record.Path, err)
	}
	err = os.MkdirAll(string(b), 0o700)
	if err == nil { // who writes holds the lock of the client's file
		err = disk.Replace(b.file(record.Client, record.Path), append(data, '\n'), 0o600)
	}
	if err != nil {
		return disk.Broken("back up "+record.Path, errors.New(disk.Cause(err)))
	}
	return nil
}

// DeepestFirst orders directories of one path, each once.
func DeepestFirst(dirs []string) []string {
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(dirs)
}

// Drop takes a record away, and the directory when it was the last.
func (b Dir) Drop(client, path string) error {
	file := b.file(client, path)
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return disk.Broken("remove the backup "+file, errors.New(disk.Cause(err)))
	}
	_ = os.Remove(string(b)) // it stays when it is not empty
	return nil
}
