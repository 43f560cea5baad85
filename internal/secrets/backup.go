package secrets

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// BackupFiles returns the paths of the vault's files that a copy of it needs: sealed values and keys. keychain is how
// many values are sealed with a key of the keychain, which no file holds. Every file is replaced as a whole, so a copy
// may be made at any time.
func (v *Vault) BackupFiles() (paths []string, keychain int, err error) {
	all, _ := v.List() // a damaged value is copied as it is
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
