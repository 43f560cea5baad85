package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/recordlog"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

const (
	// spoolSuffix ends the name of a spool's directory.
	spoolSuffix = "-audit"
	// spoolNameFile is the file in a spool's directory that names its store for people.
	spoolNameFile = "store"
)

// A storePlace is where a store is, and where the files are that belong to it.
type storePlace struct {
	// named is the path of the file as it was named, or the URL; location is that with links resolved.
	named, location string
	// idFile is the file that remembers the identity of the store at that location.
	idFile string
	// stateDir is the directory of files beside the store.
	stateDir string
	// spelled is the spool's directory by the location as it is spelled: for a URL that of earlier releases, and of
	// processes that do not know the store's identity yet.
	spelled string
}

// placeOfStore finds the place that StoreLocation names from the same arguments. It has no idFile for a store that
// forgets.
func placeOfStore(flag string, s config.Settings, lookup func(string) (string, bool)) (storePlace, error) {
	location, err := StoreLocation(flag, s, lookup)
	if err != nil || location == MemoryStore {
		return storePlace{named: location, location: location}, err
	}
	if isFileStore(location) {
		path, err := filepath.Abs(location)
		if err != nil {
			return storePlace{}, err
		}
		p := storePlace{named: path, location: resolveLinks(path), spelled: path + spoolSuffix}
		p.idFile, p.stateDir = p.location+".id", filepath.Dir(p.location)
		return p, nil
	}
	usual, err := StoreLocation("", config.Settings{}, lookup)
	if err != nil {
		return storePlace{}, err
	}
	base := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return filepath.Join(filepath.Dir(usual), "postgres-"+hex.EncodeToString(sum[:4]))
	}
	return storePlace{named: location, location: location, idFile: base(store.PostgresPlace(location)) + ".id",
		stateDir: filepath.Dir(usual), spelled: base(location) + spoolSuffix}, nil
}

// resolveLinks returns a path without links, as far as it exists.
func resolveLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// spoolDir returns the spool's directory of the store with an identity; an empty id is that of a store that was never
// opened here.
func (p storePlace) spoolDir(id string) string {
	switch {
	case isFileStore(p.location):
		return p.location + spoolSuffix
	case id == "":
		return p.spelled
	}
	return filepath.Join(p.stateDir, "store-"+id[:min(16, len(id))]+spoolSuffix)
}

// knownID returns the identity of the store that was at the place when it was last opened; empty if none was.
func (p storePlace) knownID() (string, error) {
	if p.idFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(p.idFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read which store was at %s: %w", p.idFile, err)
	}
	id := strings.TrimSpace(string(text))
	if _, err := hex.DecodeString(id); err != nil {
		return "", fmt.Errorf("read which store was at %s: it is not an identity", p.idFile)
	}
	return id, nil
}

// remember keeps the identity of the store that is at the place.
func (p storePlace) remember(id string) error {
	if p.idFile == "" {
		return nil
	}
	if err := os.MkdirAll(p.stateDir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(p.stateDir, ".id-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(id + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), p.idFile)
}

// checkFile reports a store's file that was there before, and is missing or empty now. It first ends an interrupted
// restore.
func (p storePlace) checkFile() error {
	if err := p.recoverRestore(); err != nil {
		return err
	}
	known, err := p.knownID()
	if err != nil || p.idFile == "" || !isFileStore(p.location) {
		return err
	}
	what := ""
	switch info, err := os.Stat(p.location); {
	case errors.Is(err, fs.ErrNotExist):
		what = "its file is missing"
	case err == nil && info.Size() == 0:
		what = "its file is empty"
	}
	switch {
	case what == "":
		return nil
	case known != "":
		return p.lostFault(what)
	case p.isVaultOfLostStore():
		return p.lostFault(what + ", and the vault beside it has the key that signed its records")
	}
	return nil
}

// isVaultOfLostStore reports whether the vault beside the place has a key that signed the records of a store, although that
// store is not there.
func (p storePlace) isVaultOfLostStore() bool {
	dir := filepath.Dir(p.named)
	v, err := secrets.OpenVault(filepath.Join(dir, "vault"), secrets.VaultOptions{NoKeychain: true})
	if err != nil || v.Stamp(signingKeyName) == "" {
		return false
	}
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		base, isSpool := strings.CutSuffix(e.Name(), spoolSuffix)
		_, missing := os.Stat(filepath.Join(dir, base))
		return filepath.Ext(e.Name()) == ".id" || isSpool && missing == nil
	})
}

// checkStore reports a store that is another one than was at the place before. It remembers the first one.
func (p storePlace) checkStore(ctx context.Context, db *store.DB) error {
	if p.idFile == "" {
		return nil
	}
	known, err := p.knownID()
	if err != nil {
		return err
	}
	id, err := db.Identity(ctx)
	switch {
	case err != nil:
		return err
	case known == "":
		return p.remember(id)
	case known != id:
		return p.lostFault("another store, or an empty one, stands in its place")
	}
	return nil
}

// lostFault is the fault of a store that was at the place and is not there any more.
func (p storePlace) lostFault(what string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.ServerError, Step: "open the store " + p.nameForPeople(),
		Err:  fmt.Errorf("%s, so all approvals, pins and held definitions are unknown", what),
		Next: "restore a backup (drawbridge restore --force FILE), or accept the present store: drawbridge audit confirm-store",
	}
}

// nameForPeople returns the location without a password.
func (p storePlace) nameForPeople() string {
	if isFileStore(p.named) {
		return p.named
	}
	_, rest, _ := strings.Cut(p.location, "://")
	rest, _, _ = strings.Cut(rest, "?")
	return "postgres://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

// CheckStore reports a store that was at the place that StoreLocation names, and is missing, empty or another one now;
// db is nil where its file is missing. The error is a *drawbridge.Fault that says what to do.
func CheckStore(ctx context.Context, flag string, s config.Settings, lookup func(string) (string, bool),
	db *store.DB) error {
	p, err := placeOfStore(flag, s, lookup)
	if err == nil {
		err = p.checkFile()
	}
	if err == nil && db != nil {
		err = p.checkStore(ctx, db)
	}
	return err
}

// ConfirmStore accepts the store of the configuration as the one of its place, whatever was there before. It creates
// the store where there is none, and returns its name for people.
func ConfirmStore(ctx context.Context, c Config) (name string, err error) {
	s, err := loadSettings(c)
	if err != nil {
		return "", err
	}
	p, err := placeOfStore(c.Store, s, c.LookupEnv)
	if err == nil {
		err = p.recoverRestore()
	}
	if err != nil {
		return "", err
	}
	db, err := store.Open(ctx, p.named, store.Options{})
	if err != nil {
		return "", err
	}
	id, err := db.Identity(ctx)
	if err == nil {
		err = p.remember(id)
	}
	return p.nameForPeople(), errors.Join(err, db.Close())
}

// A WaitingSpool is a directory with records of calls that no store has taken in, and whose process is dead.
type WaitingSpool struct {
	Dir string `json:"dir"`
	// Store names the store that they were written for; empty where that is not known.
	Store string `json:"store,omitempty"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// String describes what waits, where, and what to do.
func (w WaitingSpool) String() string {
	which := "a store that is not known"
	if w.Store != "" {
		which = "the store " + w.Store
	}
	return fmt.Sprintf(
		"%d bytes of records of calls wait in %s for %s, which takes them in when Drawbridge is started "+
			"with it", w.Bytes, w.Dir, which)
}

// WaitingSpools returns the spools beside the store of the configuration that belong to another store. id is the
// identity of the one that is open; empty if none is.
func WaitingSpools(c Config, id string) ([]WaitingSpool, error) {
	s, err := loadSettings(c)
	if err != nil {
		return nil, err
	}
	p, err := placeOfStore(c.Store, s, c.LookupEnv)
	if err != nil || p.idFile == "" {
		return nil, err
	}
	var own []string
	if id != "" {
		own = []string{p.spoolDir(id), p.spelled}
	}
	dirs, err := filepath.Glob(filepath.Join(escapeGlob(p.stateDir), "*"+spoolSuffix))
	if err != nil {
		return nil, err
	}
	var all []WaitingSpool
	for _, dir := range dirs {
		base := strings.TrimSuffix(dir, spoolSuffix)
		if _, err := os.Stat(base); slices.Contains(own, dir) || err == nil {
			continue // the store's own, or that of another file that is there
		}
		w := WaitingSpool{Dir: dir}
		if w.Files, w.Bytes, err = recordlog.CountOrphans(dir); err != nil {
			return nil, err
		}
		if w.Files == 0 {
			continue
		}
		if name, err := os.ReadFile(filepath.Join(dir, spoolNameFile)); err == nil {
			w.Store = strings.TrimSpace(string(name))
		}
		all = append(all, w)
	}
	return all, nil
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// nameSpool writes the name of its store into a spool's directory, where that does not tell it.
func (p storePlace) nameSpool(dir string) error {
	if isFileStore(p.location) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, spoolNameFile), []byte(p.nameForPeople()+"\n"), 0o600)
}
