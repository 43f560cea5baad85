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

// maxSecret is the largest size of a value in bytes.
const maxSecret = 64 << 10

// ErrNotFound means that no secret has that name.
var ErrNotFound = errors.New("secret not found")

// ErrKeychainUnavailable means that a secret exists and cannot be read now: the keychain with its key is turned off or
// does not answer.
var ErrKeychainUnavailable = errors.New("the keychain is away")

// A Vault stores secrets that outlive the process: tokens, clients' secrets, values that a person moved out of their
// configuration. Each has a name, such as "signin/github-1a2b3c4d".
//
// A value is a file of the vault's directory, sealed with age. Its key is in the keychain of the operating system,
// under the service "drawbridge", if one answers. Else it is in a file beside the values, which only the user may read.
// So a value may be of any size, a change of one value changes one file, and the keychain is asked once in the life of
// the process.
//
// A Put that dies at any point leaves the old value or the new one. Errors and log lines contain no value. The methods
// are safe for concurrent use by goroutines and processes.
type Vault struct {
	dir string
	log *slog.Logger
	// unavailable is the reason why secrets cannot be stored; nil if they can.
	unavailable error
	// keychain is nil if it is turned off.
	keychain *guardedKeychain
	known    KnownSecrets

	// mu guards keys, which maps public halves to keys read from the keychain, and lockTurns, the queues for lock files.
	mu        sync.Mutex
	keys      map[string]*age.X25519Identity
	lockTurns map[string]chan struct{}
	// warnedKeyInFile is set after the warning that the key lies in a file.
	warnedKeyInFile bool
}

// VaultOptions are the optional settings of a vault. The zero value uses the operating system's keychain.
type VaultOptions struct {
	// Keychain stores the vault's key; nil selects the operating system's keychain.
	Keychain Keychain
	// NoKeychain stores the key in a file even if there is a keychain.
	NoKeychain bool
	// Logger logs where the key is stored if that is not the keychain; nil disables logging.
	Logger *slog.Logger
}

// A KeyLocation is where the key of a secret is stored.
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

// OpenVault returns the vault of a directory. Nothing is created before the first Put or Lock; then the directory gets
// the mode 0700, and all files in it 0600. The error is for a path that cannot exist.
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

// UnavailableVault returns a vault that has no secrets and accepts none, for the given reason.
func UnavailableVault(why error) *Vault {
	return &Vault{unavailable: why, log: slog.New(slog.DiscardHandler)}
}

// Get returns the value of a name. The error is ErrNotFound if there is none, or if its key is gone. It is
// ErrKeychainUnavailable if the keychain has the key and does not answer. Any other error names the file that is
// damaged or cannot be read.
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

// Put stores a value of up to 64 KiB and replaces an old one. A damaged record of the same name is kept: its file is
// renamed with the suffix ".damaged".
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
	key, place := v.currentKeychainKey(), InKeychain // before the lock, because a keychain may be slow
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

// moveAsideDamaged renames a damaged record, so that it is not overwritten.
func (v *Vault) moveAsideDamaged(path, name string) error {
	_, err := v.readRecord(path, name)
	if _, broken := errors.AsType[damagedError](err); !broken {
		return nil
	}
	v.log.Warn("a damaged secret is moved aside", "name", name, "to", path+".damaged", "err", err)
	return os.Rename(path, path+".damaged")
}

// Delete removes a value. The error is ErrNotFound if there is none.
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

// Lock grants one of all goroutines and processes exclusive use of a name; the others wait. The lock ends with its
// process, however that ends; unlock may be called more than once. Get and Put do not take the lock. The error is that
// of ctx, or reports that the directory cannot be used.
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

// Stamp returns a text that changes with each Put and Delete of the name by any process; "" if there is no value.
// It is made of the file's times only.
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

// List returns all entries in the order of their names. They are valid even with an error, which names the files that
// cannot be read. The keychain is not asked.
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
		case errors.Is(err, ErrNotFound): // deleted in the meantime
		case err != nil:
			errs = append(errs, fmt.Errorf("list secrets: %w", err))
		default:
			all = append(all, SecretInfo{rec.Name, rec.Place, rec.Changed})
		}
	}
	slices.SortFunc(all, func(a, b SecretInfo) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(errs...)
}

// KeyLocation returns where the key for the next Put is stored. It may ask the keychain.
func (v *Vault) KeyLocation() KeyLocation {
	if v.keychain == nil || v.keychain.checkAvailable() != nil {
		return InFile
	}
	return InKeychain
}

// DescribeProtection describes in one sentence for people where secrets are stored, and how they are protected. It may
// ask the keychain.
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
