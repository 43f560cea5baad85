package addons

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// The limits for the files of an addon that comes from a project.
const (
	maxFiles = 1000
	maxBytes = 32 << 20
)

// A Found is an addon in a directory of addons, whether it can be used or not.
type Found struct {
	// ID is the name of the directory. Dir is its path.
	ID, Dir string
	Manifest
	// FromProject reports whether the addon comes from a project. Digest is then the SHA-256 of its files in
	// hexadecimal. An addon of a project runs only after a person has approved the digest.
	FromProject bool
	Digest      string
	// Err is the reason why the addon cannot be used; nil if it can.
	Err error
}

// maxAddons is the maximum number of addons in a directory.
const maxAddons = 100

// Find returns the addons in a directory, sorted by name, without the digests of their files. If the directory does not
// exist, it returns no addons and no error.
func Find(dir string, fromProject bool) ([]Found, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the directory of addons: %w", err)
	}
	var all []Found
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() || e.Name()[0] == '.' {
			continue
		}
		if len(all) == maxAddons {
			return all, fmt.Errorf("read the directory of addons: %s has more than %d", dir, maxAddons)
		}
		all = append(all, readAddon(path, fromProject))
	}
	return all, nil
}

// Read returns the addon in a directory. If the addon comes from a project, Read also computes the digest of its files.
func Read(dir string, fromProject bool) Found {
	f := readAddon(dir, fromProject)
	if f.Err == nil && fromProject {
		f.Digest, f.Err = digest(dir)
	}
	return f
}

func readAddon(dir string, fromProject bool) Found {
	f := Found{ID: filepath.Base(dir), Dir: dir, FromProject: fromProject}
	if f.Manifest, f.Err = ReadManifest(dir); f.Err == nil && !fromProject {
		f.Err = checkPrivate(dir)
	}
	return f
}

// checkPrivate returns an error if every user of the machine may change the directory or the manifest of the addon.
func checkPrivate(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // Windows does not use these mode bits
	}
	for _, path := range []string{dir, filepath.Join(dir, ManifestName)} {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return err
		case info.Mode().Perm()&0o002 != 0:
			return fmt.Errorf("%s can be changed by every user (chmod o-w)", path)
		}
	}
	return nil
}

// digest returns one SHA-256, in hexadecimal, of the names and contents of all files in a directory. It returns an
// error for links, because their targets could change.
func digest(dir string) (string, error) {
	type file struct{ name, sum string }
	var files []file
	var total int64
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		switch {
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", path)
		case len(files) == maxFiles:
			return fmt.Errorf("%s has more than %d files", dir, maxFiles)
		}
		sum, size, err := fileSum(path, maxBytes-total)
		total += size
		files = append(files, file{filepath.ToSlash(name), sum})
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the files of the addon: %w", err)
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	all := sha256.New()
	for _, f := range files {
		fmt.Fprintf(all, "%d %s %s\n", len(f.name), f.name, f.sum)
	}
	return hex.EncodeToString(all.Sum(nil)), nil
}

func fileSum(path string, most int64) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, io.LimitReader(f, most+1)); err == nil && size > most {
		err = fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	return hex.EncodeToString(h.Sum(nil)), size, err
}
