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
	// spoolSuffix is the end of the name of a spool directory.
	spoolSuffix = "-audit"
	// spoolNameFile is the name of the file in a spool directory that contains the name of the store, for people.
	spoolNameFile = "store"
)

// A storePlace holds the location of a store and the paths of the files that belong to the store.
type storePlace struct {
	// named is the absolute path of the store's file as the user named it, or the URL. location is the same path with
	// links resolved, or the URL.
	named, location string
	// idFile is the path of the file that stores the identity of the store at that location; empty for a store in
	// memory.
	idFile string
	// stateDir is the directory for the files that belong to the store.
	stateDir string
	// spelled is the spool directory whose name is derived from named. For a URL, two kinds of processes write to it:
	// processes of earlier releases, and processes that do not know the store's identity yet.
	spelled string
}

// placeOfStore returns the storePlace for the location that StoreLocation returns for the same arguments. For a store
// in memory idFile is empty.
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

// resolveLinks returns path with symbolic links resolved. If path does not exist, only the links of its directory are
// resolved.
func resolveLinks(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// spoolDir returns the spool directory of the store with the identity id; an empty id means that the store was never
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

// knownID returns the identity of the store that was last opened at this location; empty if no store was opened there.
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

// remember writes id, the identity of the store at this location, to idFile.
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

// checkFile returns an error if this location had a store before, and its file is now missing or empty. It first
// completes or undoes an interrupted restore.
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

// isVaultOfLostStore reports whether the vault beside the store belongs to a store that is missing. Then the vault has
// a key that signed audit records, but the directory contains no trace of another store. A trace is an .id file, or the
// spool directory of an existing file.
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

// checkStore returns an error if db is not the store that was opened at this location before. If no store was opened
// there before, it writes the identity of db to idFile.
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

// lostFault returns the fault for a location whose earlier store is not there any more; what describes the problem.
func (p storePlace) lostFault(what string) error {
	return &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.ServerError, Step: "open the store " + p.nameForPeople(),
		Err:  fmt.Errorf("%s, so all approvals, pins and held definitions are unknown", what),
		Next: "restore a backup (drawbridge restore --force FILE), or accept the present store: drawbridge audit confirm-store",
	}
}

// nameForPeople returns the path or the URL of the store, without user name, password and options.
func (p storePlace) nameForPeople() string {
	if isFileStore(p.named) {
		return p.named
	}
	_, rest, _ := strings.Cut(p.location, "://")
	rest, _, _ = strings.Cut(rest, "?")
	return "postgres://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

// CheckStore returns an error if the store at the configured location is missing, is empty, or is not the store that
// was opened there before. The arguments flag, s and lookup are those of StoreLocation. db is the open store; nil if
// its file is missing. The error is a *drawbridge.Fault that tells the person what to do next.
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

// ConfirmStore accepts the store that is now at the configured location, even if another store was there before. It
// creates the store if there is none, and returns the store's name for people.
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

// A WaitingSpool is a spool directory with audit records of dead processes that are not in any store yet.
type WaitingSpool struct {
	Dir string `json:"dir"`
	// Store is the name of the store that the records were written for; empty if unknown.
	Store string `json:"store,omitempty"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// String returns a sentence for people with the number of bytes, the directory and the store, and when the records are
// moved to the store.
func (w WaitingSpool) String() string {
	which := "a store that is not known"
	if w.Store != "" {
		which = "the store " + w.Store
	}
	return fmt.Sprintf(
		"%d bytes of records of calls wait in %s for %s, which takes them in when Drawbridge is started "+
			"with it", w.Bytes, w.Dir, which)
}

// WaitingSpools returns the spool directories beside the configured store that contain records for another store, one
// that does not exist as a file there. id is the identity of the open store; empty if no store is open.
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
			continue // the spool of this store, or of another store file that exists
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

// nameSpool writes the name of the store to a file in a spool directory. It does nothing for a store that is a file,
// because the name of its spool directory contains the name of the store.
func (p storePlace) nameSpool(dir string) error {
	if isFileStore(p.location) {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, spoolNameFile), []byte(p.nameForPeople()+"\n"), 0o600)
}
