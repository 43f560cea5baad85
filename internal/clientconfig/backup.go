package clientconfig

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

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A BackupRecord is the backup of a client's file, from before Drawbridge was added to it.
type BackupRecord struct {
	Client string `json:"client"`
	Path   string `json:"path"`
	// Existed is set if the file existed; Before is its content.
	Existed bool   `json:"existed"`
	Before  []byte `json:"before"`
	// WrittenHashes holds the hex SHA-256 of each content that Drawbridge wrote and that Before can replace. There can
	// be several after connecting twice, because the process may have crashed between writing the record and the file.
	WrittenHashes []string `json:"wrote"`
	// Replaced are the removed entries, for a file that was edited since.
	Replaced map[string]json.RawMessage `json:"replaced,omitempty"`
	// CreatedDirs are the directories that were made for the file, the deepest first.
	CreatedDirs []string `json:"made,omitempty"`
}

// RestoredEntries lists the entries to restore, except our own, whose name is own.
func (b *BackupRecord) RestoredEntries(own string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.Replaced)), func(name string) bool { return name == own })
}

// ContentHash returns the hash of a file's content, in the form of WrittenHashes.
func ContentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// BackupDir is a directory with one record for each client's file.
type BackupDir string

func (b BackupDir) recordPath(client, path string) string {
	return filepath.Join(string(b), client+"-"+ContentHash([]byte(path))[:12]+".json")
}

// Read returns the record of a file; nil if there is none. The error is a *drawbridge.Fault, as those below are.
func (b BackupDir) Read(client, path string) (*BackupRecord, error) {
	file := b.recordPath(client, path)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var record BackupRecord
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil || record.Path != path {
		return nil, configfile.FileFault("read the backup "+file, errors.New("it is not a record of "+path))
	}
	return &record, nil
}

// Write stores a record and replaces an earlier one of the same file.
func (b BackupDir) Write(record BackupRecord) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return configfile.FileFault("back up "+record.Path, err)
	}
	err = os.MkdirAll(string(b), 0o700)
	if err == nil { // the caller holds the lock of the client's file
		err = configfile.ReplaceFile(b.recordPath(record.Client, record.Path), append(data, '\n'), 0o600)
	}
	if err != nil {
		return configfile.FileFault("back up "+record.Path, errors.New(configfile.WithoutPath(err)))
	}
	return nil
}

// SortDeepestFirst orders directories of one path, each once.
func SortDeepestFirst(dirs []string) []string {
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(dirs)
}

// Remove deletes a record, and the directory if it is then empty.
func (b BackupDir) Remove(client, path string) error {
	file := b.recordPath(client, path)
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return configfile.FileFault("remove the backup "+file, errors.New(configfile.WithoutPath(err)))
	}
	_ = os.Remove(string(b)) // fails if the directory is not empty
	return nil
}
