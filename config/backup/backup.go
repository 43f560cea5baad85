// Package backup keeps what files held before Drawbridge was put into them, for the way back: a directory with one record for
// each client's file.
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

// Names lists the entries that are put back, without our own.
func (r *Record) Names(own string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Replaced)), func(name string) bool { return name == own })
}

// Hash is the hex SHA-256 of what a file holds.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A Dir is the absolute path of the directory, which is made when it is needed, with mode 0700; the files in it have mode
// 0600.
type Dir string

func (d Dir) file(client, path string) string {
	return filepath.Join(string(d), client+"-"+Hash([]byte(path))[:12]+".json")
}

// Read gives the record of a client's file; nil where there is none.
func (d Dir) Read(client, path string) (*Record, error) {
	file := d.file(client, path)
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

// Write keeps a record in the place of the last one of that file. Who calls it holds the lock of the client's file.
func (d Dir) Write(record Record) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return disk.Broken("back up "+record.Path, err)
	}
	err = os.MkdirAll(string(d), 0o700)
	if err == nil {
		err = disk.Replace(d.file(record.Client, record.Path), append(data, '\n'), 0o600)
	}
	if err != nil {
		return disk.Broken("back up "+record.Path, errors.New(disk.Cause(err)))
	}
	return nil
}

// Drop takes a record away, and the directory when it was the last.
func (d Dir) Drop(client, path string) error {
	file := d.file(client, path)
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return disk.Broken("remove the backup "+file, errors.New(disk.Cause(err)))
	}
	_ = os.Remove(string(d)) // it stays when it is not empty
	return nil
}
