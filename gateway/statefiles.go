package gateway

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/privatefile"
)

// A stateFile is a file or directory that only its owner may use.
type stateFile struct {
	path string
	dir  bool
}

// stateFiles returns the private files and directories of a configuration. It ignores errors in the configuration: the
// code that opens the files reports them.
func stateFiles(c Config, s config.Settings) []stateFile {
	var files []stateFile
	if usual, err := StoreLocation("", config.Settings{}, c.LookupEnv); err == nil {
		files = append(files, stateFile{filepath.Dir(usual), true})
	}
	if location, err := StoreLocation(c.Store, s, c.LookupEnv); err == nil && isFileStore(location) {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".hub", ".id"} {
			files = append(files, stateFile{location + suffix, false})
		}
	}
	if location, err := WorkspaceLocation(s, c.LookupEnv); err == nil && isFileStore(location) {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			files = append(files, stateFile{location + suffix, false})
		}
	}
	if spool, err := auditSpoolDir(c.Store, s, c.LookupEnv); err == nil && spool != "" {
		files = append(files, stateFile{spool, true})
	}
	if vault, err := vaultDir(c.Store, s, c.LookupEnv); err == nil {
		files = append(files, stateFile{vault, true})
		entries, _ := os.ReadDir(vault)
		for _, e := range entries {
			files = append(files, stateFile{filepath.Join(vault, e.Name()), false})
		}
	}
	return files
}

// CheckStateFiles returns an error for each insecure private file of a configuration. Such a file is a link, belongs to
// another user, or is accessible to other users. CheckStateFiles changes nothing.
func CheckStateFiles(c Config, s config.Settings) []*InsecureFileError {
	var found []*InsecureFileError
	for _, f := range stateFiles(c, s) {
		if e, ok := errors.AsType[*privatefile.InsecureError](privatefile.Check(f.path, f.dir)); ok {
			found = append(found, e)
		}
	}
	return found
}

// An InsecureFileError reports a private file that is a link, belongs to another user, or is accessible to other users.
type InsecureFileError = privatefile.InsecureError

// protectStateFiles removes the permissions of other users from private files, and logs each change. If it cannot
// change a file, opening that file later returns an error.
func protectStateFiles(c Config, s config.Settings, log *slog.Logger) {
	for _, f := range stateFiles(c, s) {
		if repaired, _ := privatefile.Protect(f.path, f.dir); repaired {
			log.Warn("a private file was open to other users; their permissions are removed", "path", f.path)
		}
	}
}
