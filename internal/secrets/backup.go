package secrets

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// BackupFiles returns the paths of the files that a copy of the vault must contain: the encrypted values and the keys.
// keychain is the number of values whose key is in the keychain, and therefore in none of the files. Each file is
// always replaced atomically, so the files can be copied at any time.
func (v *Vault) BackupFiles() (paths []string, keychain int, err error) {
	all, _ := v.List() // a damaged value is copied unchanged
	for _, s := range all {
		if s.KeyLocation == InKeychain {
			keychain++
		}
	}
	entries, err := os.ReadDir(v.dir)
	if v.unavailable != nil || errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	for _, e := range entries {
		name := e.Name()
		isOurs := filepath.Ext(name) == recordSuffix || name == keyFile || name == publicKeyFile
		if isOurs && e.Type().IsRegular() {
			paths = append(paths, filepath.Join(v.dir, name))
		}
	}
	return paths, keychain, err
}
