package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/backup"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// The names in an archive: at the top the file storePart and the directories vaultPart and configPart; in configPart
// the files serversPart and settingsPart.
const (
	storePart, vaultPart, configPart = "store.db", "vault", "config"
	serversPart, settingsPart        = "mcp.json", "drawbridge.toml"
)

// BackupOptions select the contents of a backup. The zero value selects the store and the vault.
type BackupOptions struct {
	// Config adds the user-level mcp.json and drawbridge.toml.
	Config bool
	// WithoutStore excludes the store.
	WithoutStore bool
	// Passphrase encrypts the archive; empty leaves it unencrypted.
	Passphrase string
	// Overwrite replaces an existing file.
	Overwrite bool
}

// A BackupReport describes a backup for a person.
type BackupReport struct {
	backup.Manifest
	// Notes tell the person which secrets and keys the archive does not contain.
	Notes []string `json:"notes,omitempty"`
}

// BackUp writes an archive of the store and the vault of a configuration to path. Other processes may use the store and
// the vault meanwhile: the archive contains a consistent snapshot. The snapshot includes the audit records that are
// still in spool directories. The error is usually a *drawbridge.Fault with the next step.
func BackUp(ctx context.Context, c Config, path string, o BackupOptions) (r BackupReport, err error) {
	c = c.withLogger()
	s, err := loadSettings(c)
	if err != nil {
		return r, err
	}
	if _, err := os.Lstat(path); err == nil && !o.Overwrite { // check before the store is copied
		return r, backupFault("write "+path, backup.ErrExists, "name another file, or replace it with --force")
	}
	dir, err := stagingDir(c, s)
	if err != nil {
		return r, backupFault("copy the store", err, "")
	}
	defer os.RemoveAll(dir)
	parts, work := filepath.Join(dir, "parts"), filepath.Join(dir, "work")
	if err := errors.Join(os.Mkdir(parts, 0o700), os.Mkdir(work, 0o700)); err != nil {
		return r, err
	}
	r.Program, r.Made = c.Version, time.Now().UTC().Truncate(time.Second)
	if err := r.addStore(ctx, c, s, o, parts, work); err != nil {
		return r, err
	}
	if err := r.addVault(c, s, parts); err != nil {
		return r, err
	}
	if o.Config {
		if err := addConfigParts(c, parts); err != nil {
			return r, err
		}
	}
	r.Manifest, err = backup.Write(path, parts, r.Manifest,
		backup.WriteOptions{Passphrase: o.Passphrase, Overwrite: o.Overwrite})
	if err != nil {
		return r, backupFault("write "+path, err, "")
	}
	return r, nil
}

// stagingDir creates a temporary directory for the parts of an archive. The directory is beside the store, not beside
// the archive, because the parts are not encrypted.
func stagingDir(c Config, s config.Settings) (string, error) {
	place, err := placeOfStore(c.Store, s, c.LookupEnv)
	if err != nil {
		return "", err
	}
	if place.stateDir != "" {
		if err := os.MkdirAll(place.stateDir, 0o700); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(place.stateDir, ".backup-*")
}

// backupFault returns err as a fault; step is the failed step, and next tells the person what to do next. The code is
// ServerError for an error of the operating system, else InvalidInput. If err is or wraps a *drawbridge.Fault, that
// fault is returned.
func backupFault(step string, err error, next string) error {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return f
	}
	code := drawbridge.InvalidInput
	_, isPath := errors.AsType[*fs.PathError](err)
	if _, isLink := errors.AsType[*os.LinkError](err); isPath || isLink {
		code = drawbridge.ServerError
	}
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: code, Step: step, Err: err, Next: next}
}

// addStore writes a snapshot of the store to the directory parts, unless o.WithoutStore is set.
func (r *BackupReport) addStore(ctx context.Context, c Config, s config.Settings, o BackupOptions,
	parts, work string) error {
	place, err := placeOfStore(c.Store, s, c.LookupEnv)
	switch {
	case err != nil || o.WithoutStore:
		return err
	case place.idFile == "":
		return backupFault("back up the store", errors.New("it is in memory"), "name a store that is a file")
	case !isFileStore(place.location):
		return backupFault("back up the store "+place.nameForPeople(),
			errors.New("a Postgres store is not part of a backup; use the tools of Postgres"),
			"pg_dump; and drawbridge backup --without-store for the rest")
	}
	if _, err := os.Stat(place.location); errors.Is(err, fs.ErrNotExist) {
		if err := place.checkFile(); err != nil { // there was a store before
			return err
		}
		return backupFault("back up the store "+place.named, errors.New("there is none yet"),
			"drawbridge serve creates it; --without-store leaves it out")
	}
	db, err := openStore(ctx, c, s)
	if err != nil {
		return err
	}
	spool, adopted, err := spoolDirsOf(ctx, c, s, db)
	if err == nil {
		err = db.Snapshot(ctx, filepath.Join(parts, storePart), append([]string{spool}, adopted...), work)
	}
	if err == nil {
		r.Identity, err = db.Identity(ctx)
	}
	r.Schema = store.SchemaVersion
	return errors.Join(err, db.Close())
}

// addVault copies the files of the vault to the directory parts. It adds notes about the secrets and the signing key
// that the archive does not contain.
func (r *BackupReport) addVault(c Config, s config.Settings, parts string) error {
	vault, err := openVault(c, s)
	if err != nil {
		return err
	}
	files, inKeychain, err := vault.BackupFiles()
	if err != nil {
		return backupFault("read the vault", err, "")
	}
	if r.KeychainSecrets = inKeychain; inKeychain > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d secrets are sealed with a key that is in the keychain of this system, "+
			"and not in the backup: on another system, set them again (drawbridge secret set, drawbridge mcp auth)", inKeychain))
	}
	if s.Audit.KeyFile != "" {
		r.Notes = append(r.Notes, "the key that signs the audit is not in the backup: keep a copy of "+s.Audit.KeyFile)
	}
	for _, path := range files {
		err := copyPart(path, filepath.Join(parts, vaultPart, filepath.Base(path)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it was removed meanwhile
			return backupFault("read the vault", err, "")
		}
	}
	return nil
}

// configFiles returns the paths of the user-level configuration files. The keys of the map are the names of these files
// in an archive.
func configFiles(c Config) (map[string]string, error) {
	servers, err := config.UserFile(config.Options{Dir: c.Dir, LookupEnv: c.LookupEnv})
	if err != nil {
		return nil, err
	}
	return map[string]string{
		serversPart: servers, settingsPart: filepath.Join(filepath.Dir(servers), settingsPart),
	}, nil
}

func addConfigParts(c Config, parts string) error {
	files, err := configFiles(c)
	if err != nil {
		return err
	}
	for name, path := range files {
		err := copyPart(path, filepath.Join(parts, configPart, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return backupFault("read the configuration", err, "")
		}
	}
	return nil
}

// copyPart copies a file to a new file that only its owner may read.
func copyPart(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}
