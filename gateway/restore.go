package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/backup"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

const (
	// asideSuffix is the end of the new names of files that a restore replaced. The old files are renamed, not deleted.
	asideSuffix = ".before-restore"
	// restoreSuffix is the end of the name of the directory of a restore in progress.
	restoreSuffix = ".restore"
)

// ErrStoreInUse reports that another process has the store open.
var ErrStoreInUse = store.ErrInUse

// RestoreOptions are options of a restore. The zero value restores the store and the vault, if neither exists.
type RestoreOptions struct {
	// Config restores the user-level configuration files too.
	Config bool
	// Passphrase decrypts an encrypted archive.
	Passphrase string
	// Replace allows the restore to replace an existing store and vault. The old files are renamed and kept.
	Replace bool
}

// A RestoreReport describes a restore for a person.
type RestoreReport struct {
	backup.Manifest
	// Store is the path of the restored store; empty for an archive without a store.
	Store string `json:"store,omitempty"`
	// Restored are the paths of the restored files and directories. Aside are the new paths of the old files, which
	// were renamed and kept.
	Restored []string `json:"restored"`
	Aside    []string `json:"aside,omitempty"`
	// Asks is the number of waiting approval requests that the restore removed from the restored store. Grants is the
	// number of removed grants with an expiry. Such requests and grants may have expired since the backup.
	Asks   int64 `json:"asks_ended"`
	Grants int64 `json:"grants_ended"`
	// Carried reports whether changes since the backup were copied from the replaced store to the restored store. Such
	// changes are revoked client tokens and grants, counts of calls, and trust.
	Carried bool `json:"carried"`
}

// restoreDir returns the path of the directory of a restore in progress.
func (p storePlace) restoreDir() string { return strings.TrimSuffix(p.idFile, ".id") + restoreSuffix }

// recoverRestore waits until a restore in progress has ended. It completes or undoes an interrupted restore.
func (p storePlace) recoverRestore() error {
	if p.idFile == "" {
		return nil
	}
	if err := backup.Recover(p.restoreDir()); err != nil {
		return backupFault("end an interrupted restore in "+p.restoreDir(), err, "")
	}
	return nil
}

// Restore replaces the store and the vault of a configuration by the content of the archive at path. If the process
// dies during the restore, the next process that opens the store completes or undoes it. So old and restored files are
// never mixed. The error is usually a *drawbridge.Fault with the next step. It wraps ErrStoreInUse if another process
// has the store open.
func Restore(ctx context.Context, c Config, path string, o RestoreOptions) (r RestoreReport, err error) {
	c = c.withLogger()
	s, err := loadSettings(c)
	if err != nil {
		return r, err
	}
	a, err := backup.Open(path, o.Passphrase)
	if err != nil {
		next := ""
		if errors.Is(err, backup.ErrSealed) {
			next = "name a file with the passphrase: --passphrase-file FILE"
		}
		return r, backupFault("read the backup "+path, err, next)
	}
	defer a.Close()
	r.Manifest = a.Manifest
	place, err := placeOfStore(c.Store, s, c.LookupEnv)
	if err != nil {
		return r, err
	}
	vault, err := vaultDir(c.Store, s, c.LookupEnv)
	if err != nil {
		return r, err
	}
	t := restoreTarget{config: c, place: place, vault: vault}
	if err := t.check(a.Manifest, o); err != nil {
		return r, err
	}
	swap, err := backup.Begin(place.restoreDir())
	if err != nil {
		return r, backupFault("restore", err, "")
	}
	defer func() { err = errors.Join(err, swap.Close()) }()
	if err := a.Unpack(swap.PartsDir()); err != nil {
		return r, backupFault("read the backup "+path, err, "use another backup")
	}
	return r, t.restore(ctx, swap, o, &r)
}

// A restoreTarget holds the locations to which a restore writes.
type restoreTarget struct {
	config Config
	place  storePlace
	vault  string
}

// check returns an error if this program cannot restore the archive, or cannot restore it to this target.
func (t restoreTarget) check(m backup.Manifest, o RestoreOptions) error {
	const step = "restore"
	hasStore := m.Has(storePart)
	switch {
	case t.place.idFile == "":
		return backupFault(step, errors.New("the store is in memory"), "name a store that is a file: --store PATH")
	case hasStore && !isFileStore(t.place.location):
		return backupFault(step, errors.New("the backup has a store that is a file, and the settings name a database"),
			"name a file with --store PATH")
	case !hasStore && !m.Has(vaultPart) && !m.Has(configPart):
		return backupFault(step, errors.New("the file has neither a store nor a vault"), "name a file of drawbridge backup")
	case m.Schema > store.SchemaVersion:
		return backupFault(step, fmt.Errorf("a newer Drawbridge (%.40s) wrote it: its schema is %d, and this one knows %d",
			m.Program, m.Schema, store.SchemaVersion), "update Drawbridge, then restore")
	case o.Config && !m.Has(configPart):
		return backupFault(step, errors.New("the backup has no configuration"), "leave out --config")
	}
	for _, p := range m.Parts {
		dir, name, _ := strings.Cut(p.Name, "/")
		known := p.Name == storePart || dir == vaultPart && name != "" ||
			dir == configPart && (name == serversPart || name == settingsPart)
		if !known {
			return backupFault(step, fmt.Errorf("the backup has a part %q, which this program does not know", p.Name),
				"update Drawbridge, then restore")
		}
	}
	for _, path := range t.replaced(m) {
		if _, err := os.Lstat(path); err == nil && !o.Replace {
			return backupFault(step, fmt.Errorf("%s exists already", path),
				"with --force it is kept beside as *"+asideSuffix)
		}
	}
	return nil
}

// replaced returns the paths of the store and the vault, as far as the archive contains them. If such a path exists,
// the restore needs RestoreOptions.Replace.
func (t restoreTarget) replaced(m backup.Manifest) (paths []string) {
	if m.Has(storePart) {
		paths = append(paths, t.place.location)
	}
	if m.Has(vaultPart) {
		paths = append(paths, t.vault)
	}
	return paths
}

// restore prepares the unpacked parts of the archive and moves them to their target paths.
func (t restoreTarget) restore(ctx context.Context, swap *backup.Swap, o RestoreOptions, r *RestoreReport) error {
	parts := swap.PartsDir()
	var moves []backup.Move
	if o.Config {
		staged, err := t.stageConfig(parts)
		if err != nil {
			return err
		}
		for _, m := range staged {
			defer os.Remove(m.From) // if Commit did not move it
		}
		moves = staged
	}
	if r.Has(storePart) {
		if err := t.prepareStore(ctx, parts, r); err != nil {
			return err
		}
		r.Store = t.place.location
		for _, suffix := range []string{"-wal", "-shm", "-journal", spoolSuffix} {
			moves = append(moves, backup.Move{To: t.place.location + suffix})
		}
		moves = append(moves, backup.Move{From: storePart, To: t.place.location},
			backup.Move{From: "store.id", To: t.place.idFile})
	}
	if r.Has(vaultPart) {
		moves = append(moves, backup.Move{From: vaultPart, To: t.vault})
		if err := os.MkdirAll(filepath.Dir(t.vault), 0o700); err != nil {
			return err
		}
	}
	done, err := swap.Commit(moves, asideSuffix)
	if err != nil {
		return backupFault("restore", err, "the next command that opens the store goes on with it")
	}
	for _, m := range done {
		if m.From != "" {
			r.Restored = append(r.Restored, m.To)
		}
		if m.MovesAside {
			r.Aside = append(r.Aside, m.Aside)
		}
	}
	return nil
}

// prepareStore migrates the unpacked store to the current schema and removes approval requests and grants that may have
// expired. It copies revocations, counts and trust from the store that is replaced. It also merges the journal of the
// replaced store into its file, so that the file can be moved.
func (t restoreTarget) prepareStore(ctx context.Context, parts string, r *RestoreReport) error {
	path := filepath.Join(parts, storePart)
	if version, err := store.ReadSchemaVersion(ctx, path); err != nil || version != r.Schema {
		return backupFault("restore", fmt.Errorf("the store in the backup is not the one of its manifest: schema %d",
			version), "use another backup")
	}
	db, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	err = t.prepareOpenStore(ctx, db, r)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(parts, "store.id"), []byte(r.Identity+"\n"), 0o600)
}

func (t restoreTarget) prepareOpenStore(ctx context.Context, db *store.DB, r *RestoreReport) error {
	id, err := db.Identity(ctx)
	if err == nil && id != r.Identity {
		err = errors.New("the store in the backup is not the one of its manifest: another identity")
	}
	if err == nil {
		r.Asks, r.Grants, err = db.EndPassing(ctx)
	}
	if err != nil {
		return backupFault("restore", err, "use another backup")
	}
	if err := store.Settle(ctx, t.place.location); err != nil {
		return backupFault("restore", err, "end the processes that use it")
	}
	if _, err := os.Stat(t.place.location); err != nil {
		return nil
	}
	r.Carried, err = db.CarryEnds(ctx, t.place.location)
	return err
}

// stageConfig checks that the settings in the archive name the same store as t. It copies the configuration files of
// the archive to temporary files beside their targets. It returns the moves from the temporary files to the targets.
func (t restoreTarget) stageConfig(parts string) (moves []backup.Move, err error) {
	settings := filepath.Join(parts, configPart, settingsPart)
	if _, err := os.Stat(settings); err == nil {
		s, err := config.LoadSettings(config.Options{Dir: t.config.Dir, LookupEnv: t.config.LookupEnv,
			SettingsFile: settings})
		if err != nil {
			return nil, err
		}
		there, err := placeOfStore(t.config.Store, s, t.config.LookupEnv)
		if err != nil {
			return nil, err
		}
		if there.location != t.place.location {
			return nil, backupFault("restore", fmt.Errorf("the settings in the backup name the store %s",
				there.nameForPeople()), "restore it there with --store, or leave out --config")
		}
	}
	files, err := configFiles(t.config)
	if err != nil {
		return nil, err
	}
	for name, to := range files {
		from := filepath.Join(filepath.Dir(to), "."+name+restoreSuffix)
		if err := os.Remove(from); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		switch err := copyPart(filepath.Join(parts, configPart, name), from); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			moves = append(moves, backup.Move{From: from, To: to})
		}
	}
	return moves, nil
}
