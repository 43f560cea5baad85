package secrets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"filippo.io/age"
)

// maxSecret is the maximum size of a value in bytes.
const maxSecret = 64 << 10

// ErrNotFound means that no secret has that name.
var ErrNotFound = errors.New("secret not found")

// ErrKeychainUnavailable means that a secret exists but cannot be read now: the keychain that contains its key is
// disabled or does not respond.
var ErrKeychainUnavailable = errors.New("the keychain is away")

// A Vault stores secrets that are needed after the process ends: tokens, client secrets, and values that a person moved
// out of the configuration. Each secret has a name, such as "signin/github-1a2b3c4d".
//
// Each value is an encrypted file (age) in the vault's directory. If the operating system's keychain is available, the
// key for the values is in this keychain, under the service "drawbridge". Otherwise the key is in a file in the same
// directory, which only the user may read. A value may therefore be larger than the keychain allows, and changing a
// value changes one file only. The key is read from the keychain once in the lifetime of the process.
//
// If a Put is interrupted, either the old value or the new value is stored. Errors and log records contain no value. A
// Vault may be used by several goroutines and processes at the same time.
type Vault struct {
	dir string
	log *slog.Logger
	// unavailable is the reason why secrets cannot be stored; nil if they can be stored.
	unavailable error
	// keychain is nil if the keychain is disabled.
	keychain *guardedKeychain
	known    KnownSecrets

	// mu guards the fields below. keys maps public keys to the private keys that were read from the keychain. lockTurns
	// maps the name of a lock file to a channel of capacity 1. A goroutine sends to this channel before it locks the
	// file.
	mu        sync.Mutex
	keys      map[string]*age.X25519Identity
	lockTurns map[string]chan struct{}
	// warnedKeyInFile is set after the message that the key is in a file was logged.
	warnedKeyInFile bool
}

// VaultOptions are the optional parameters of a vault. The zero value uses the operating system's keychain.
type VaultOptions struct {
	// Keychain stores the vault's key; nil selects the operating system's keychain.
	Keychain Keychain
	// NoKeychain stores the key in a file even if a keychain is available.
	NoKeychain bool
	// Logger receives a message if the key is stored in a file, and other warnings; nil disables logging.
	Logger *slog.Logger
}

// A KeyLocation is the place where the key of a secret is stored.
type KeyLocation string

// The locations of a key.
const (
	InKeychain KeyLocation = "keychain"
	InFile     KeyLocation = "file"
)

// A SecretInfo describes a secret without its value.
type SecretInfo struct {
	Name        string      `json:"name"`
	KeyLocation KeyLocation `json:"place"`
	Changed     time.Time   `json:"changed"`
}

// OpenVault returns the vault in a directory. It does not create the directory. The first Put or Lock creates it with
// mode 0700; files in it have mode 0600. The error reports an empty or invalid path.
func OpenVault(dir string, o VaultOptions) (*Vault, error) {
	if dir == "" {
		return nil, errors.New("open the vault: no directory is named")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the vault: %w", err)
	}
	v := &Vault{dir: dir, log: o.Logger, keys: map[string]*age.X25519Identity{}, lockTurns: map[string]chan struct{}{}}
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	if o.Keychain == nil {
		o.Keychain = systemKeychain{reachable: checkSessionBus}
	}
	if !o.NoKeychain {
		v.keychain = &guardedKeychain{keychain: o.Keychain}
	}
	return v, nil
}

// UnavailableVault returns a vault that contains no secrets and cannot store any. Attempts to store a secret return the
// error why.
func UnavailableVault(why error) *Vault {
	return &Vault{unavailable: why, log: slog.New(slog.DiscardHandler)}
}

// Get returns the value of a secret. The error is ErrNotFound if there is no such secret or its key was lost. The error
// is ErrKeychainUnavailable if the key is in a keychain that is not available. Any other error reports an invalid name,
// or contains the path of a file that is damaged or cannot be read.
func (v *Vault) Get(name string) ([]byte, error) {
	value, err := v.getSecret(name)
	if err != nil {
		return nil, fmt.Errorf("read secret %q: %w", name, err)
	}
	return value, nil
}

func (v *Vault) getSecret(name string) ([]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if v.unavailable != nil {
		return nil, ErrNotFound
	}
	rec, err := v.readRecord(v.recordPath(name), name)
	if err != nil {
		return nil, err
	}
	key, err := v.keyForRecord(rec)
	if err != nil {
		return nil, err
	}
	value, err := rec.unseal(key)
	if err != nil {
		return nil, damaged(v.recordPath(name), err)
	}
	return value, nil
}

// Put stores a value of up to 64 KiB, and replaces the old value of that name. If the file of the old value is damaged,
// it is kept under a name with the suffix ".damaged".
func (v *Vault) Put(name string, value []byte) error {
	if err := v.putSecret(name, value); err != nil {
		return fmt.Errorf("keep secret %q: %w", name, err)
	}
	return nil
}

func (v *Vault) putSecret(name string, value []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	if len(value) > maxSecret {
		return fmt.Errorf("it has more than %d KiB", maxSecret>>10)
	}
	if err := v.prepareDir(); err != nil {
		return err
	}
	key, place := v.currentKeychainKey(), InKeychain // before the lock, because a keychain may respond slowly
	unlock, err := v.lockForWriting()
	if err != nil {
		return err
	}
	defer unlock()
	if key == nil {
		place = InFile
		if key, err = v.fileKey(true); err != nil {
			return err
		}
	}
	rec, err := seal(name, value, place, key.Recipient())
	if err != nil {
		return err
	}
	rec.Changed = time.Now().UTC()
	path := v.recordPath(name)
	if err := v.moveAsideDamaged(path, name); err != nil {
		return err
	}
	return v.replaceFile(path, rec.encode())
}

// moveAsideDamaged renames the file at path if it is damaged, so that it is not overwritten. Otherwise it does nothing.
func (v *Vault) moveAsideDamaged(path, name string) error {
	_, err := v.readRecord(path, name)
	if _, broken := errors.AsType[damagedError](err); !broken {
		return nil
	}
	v.log.Warn("a damaged secret is moved aside", "name", name, "to", path+".damaged", "err", err)
	return os.Rename(path, path+".damaged")
}

// Delete removes a secret. The error is ErrNotFound if there is no such secret.
func (v *Vault) Delete(name string) error {
	if err := v.deleteSecret(name); err != nil {
		return fmt.Errorf("remove secret %q: %w", name, err)
	}
	return nil
}

func (v *Vault) deleteSecret(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if v.unavailable != nil {
		return ErrNotFound
	}
	path := v.recordPath(name)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	}
	unlock, err := v.lockForWriting()
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	} else if err != nil {
		return err
	}
	return syncDir(v.dir)
}

// Lock locks a name for exclusive use, among all goroutines and processes. It waits while another goroutine or process
// has the lock. The function unlock releases the lock, and may be called more than once; the end of the process also
// releases it. Get and Put do not use this lock. The error is that of ctx, or reports an invalid name or an unusable
// directory.
func (v *Vault) Lock(ctx context.Context, name string) (unlock func(), err error) {
	if err = checkName(name); err == nil {
		err = v.prepareDir()
	}
	if err == nil {
		unlock, err = v.lockFile(ctx, strings.TrimSuffix(filepath.Base(v.recordPath(name)), recordSuffix)+".lock")
	}
	if err != nil {
		return nil, fmt.Errorf("lock secret %q: %w", name, err)
	}
	return unlock, nil
}

// Stamp returns a text that changes with each Put and Delete of the name by any process. A caller can compare two
// stamps to detect a change without reading the value. Stamp returns "" if there is no value. It uses the modification
// time and size of the file.
func (v *Vault) Stamp(name string) string {
	if v.unavailable != nil {
		return ""
	}
	info, err := os.Lstat(v.recordPath(name))
	if err != nil {
		return ""
	}
	return strconv.FormatInt(info.ModTime().UnixNano(), 36) + "-" + strconv.FormatInt(info.Size(), 36)
}

// List returns all secrets, sorted by name, without their values. If some files cannot be read, the error names these
// files and the other secrets are still returned. List does not contact the keychain.
func (v *Vault) List() ([]SecretInfo, error) {
	if v.unavailable != nil {
		return nil, nil
	}
	files, err := os.ReadDir(v.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	var all []SecretInfo
	var errs []error
	for _, f := range files {
		if filepath.Ext(f.Name()) != recordSuffix {
			continue
		}
		rec, err := v.readRecord(filepath.Join(v.dir, f.Name()), "")
		switch {
		case errors.Is(err, ErrNotFound): // deleted after ReadDir
		case err != nil:
			errs = append(errs, fmt.Errorf("list secrets: %w", err))
		default:
			all = append(all, SecretInfo{rec.Name, rec.Place, rec.Changed})
		}
	}
	slices.SortFunc(all, func(a, b SecretInfo) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(errs...)
}

// KeyLocation returns where the key for the next Put is stored. It may contact the keychain.
func (v *Vault) KeyLocation() KeyLocation {
	if v.keychain == nil || v.keychain.checkAvailable() != nil {
		return InFile
	}
	return InKeychain
}

// DescribeProtection describes, in one sentence for people, where secrets are stored and how they are protected. It may
// contact the keychain.
func (v *Vault) DescribeProtection() string {
	beside := "are sealed files in " + v.dir + " whose key lies beside them: who can read your files can read them"
	switch {
	case v.unavailable != nil:
		return "no place to store secrets: " + v.unavailable.Error()
	case v.keychain == nil:
		return "the keychain is turned off: secrets " + beside
	case v.KeyLocation() == InFile:
		return "no keychain answers here: secrets " + beside
	}
	return "secrets are sealed files in " + v.dir + " whose key is in the keychain of this system"
}
