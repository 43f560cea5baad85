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

// A BackupRecord is a backup of a client's configuration file from before Drawbridge was added to it.
type BackupRecord struct {
	Client string `json:"client"`
	Path   string `json:"path"`
	// Existed reports whether the file existed before Drawbridge was added. Before is the content of the file at that
	// time.
	Existed bool   `json:"existed"`
	Before  []byte `json:"before"`
	// WrittenHashes are the hex SHA-256 of the contents that Drawbridge wrote. If the file still has one of these
	// contents, a disconnect replaces the file by Before. After a second connect there may be several hashes. The
	// process may have crashed before it wrote the new content, so the old content is also accepted.
	WrittenHashes []string `json:"wrote"`
	// Replaced maps the names of the entries that the connect removed or replaced to these entries. If the file was
	// edited after the connect, a disconnect restores them one by one.
	Replaced map[string]json.RawMessage `json:"replaced,omitempty"`
	// CreatedDirs are the directories that were created for the file, the deepest first.
	CreatedDirs []string `json:"made,omitempty"`
}

// RestoredEntries returns the sorted names of the entries to restore, except own, the name of Drawbridge's entry.
func (b *BackupRecord) RestoredEntries(own string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.Replaced)), func(name string) bool { return name == own })
}

// ContentHash returns the hex SHA-256 of a file's content, as in WrittenHashes.
func ContentHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// BackupDir is the path of a directory that contains one record for each client's file.
type BackupDir string

func (b BackupDir) recordPath(client, path string) string {
	return filepath.Join(string(b), client+"-"+ContentHash([]byte(path))[:12]+".json")
}

// Read returns the record for a client's file; nil if there is none. The errors of all methods of BackupDir are
// *drawbridge.Fault values.
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

// Write stores a record, and replaces an earlier record of the same file.
func (b BackupDir) Write(record BackupRecord) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return configfile.FileFault("back up "+record.Path, err)
	}
	err = os.MkdirAll(string(b), 0o700)
	if err == nil { // the caller has locked the client's file
		err = configfile.ReplaceFile(b.recordPath(record.Client, record.Path), append(data, '\n'), 0o600)
	}
	if err != nil {
		return configfile.FileFault("back up "+record.Path, errors.New(configfile.WithoutPath(err)))
	}
	return nil
}

// SortDeepestFirst sorts the directories by depth, the deepest first, and removes duplicates. Each directory must be a
// parent of all deeper ones.
func SortDeepestFirst(dirs []string) []string {
	slices.SortFunc(dirs, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(dirs)
}

// Remove deletes the record of a file, and then the directory if it is empty.
func (b BackupDir) Remove(client, path string) error {
	file := b.recordPath(client, path)
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return configfile.FileFault("remove the backup "+file, errors.New(configfile.WithoutPath(err)))
	}
	_ = os.Remove(string(b)) // fails if the directory is not empty
	return nil
}
