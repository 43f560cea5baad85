package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/privatefile"

	"filippo.io/age"
)

const (
	// keyFile contains the private key if no keychain is used. publicKeyFile contains the public key that belongs to
	// the private key in the keychain.
	keyFile, publicKeyFile = "vault.key", "vault.pub"
	// maxKey is the maximum size of each of these files in bytes.
	maxKey = 4 << 10
)

// keyForRecord returns the private key that decrypts a record, from the keychain or from keyFile.
func (v *Vault) keyForRecord(rec secretRecord) (*age.X25519Identity, error) {
	if rec.Place == InKeychain {
		return v.keychainKeyFor(rec.Key)
	}
	key, err := v.fileKey(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: its key %s is gone", ErrNotFound, filepath.Join(v.dir, keyFile))
	}
	if err == nil && key.Recipient().String() != rec.Key {
		err = fmt.Errorf("%w: %s is a different key now", ErrNotFound, filepath.Join(v.dir, keyFile))
	}
	return key, err
}

// keychainKeyFor returns the private key that belongs to the given public key, from the cache or from the keychain.
func (v *Vault) keychainKeyFor(public string) (*age.X25519Identity, error) {
	v.mu.Lock()
	key := v.keys[public]
	v.mu.Unlock()
	if key != nil {
		return key, nil
	}
	if v.keychain == nil {
		return nil, fmt.Errorf("%w: it is turned off", ErrKeychainUnavailable)
	}
	text, err := v.keychain.get(keychainAccount(public))
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w: the keychain has lost its key", ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	key, err = age.ParseX25519Identity(strings.TrimSpace(text))
	if err != nil || key.Recipient().String() != public {
		return nil, fmt.Errorf("%w: the keychain has another key", ErrNotFound)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keys[public] = key
	return key, nil
}

// keychainAccount returns the name under which the keychain stores the private key that belongs to a public key.
func keychainAccount(public string) string { return "vault/" + public }

// currentKeychainKey returns the private key in the keychain with which the next Put encrypts. It creates the key if
// there is none. It returns nil if the keychain is disabled or unavailable; Put then uses the key in keyFile.
func (v *Vault) currentKeychainKey() *age.X25519Identity {
	if v.keychain == nil {
		return nil
	}
	public := v.publicKey()
	key, err := v.loadOrCreateKeychainKey(public)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil {
		return key
	}
	if !v.warnedKeyInFile {
		v.warnedKeyInFile = true
		v.log.Info("no keychain keeps the key of the vault: a file does", "file",
			filepath.Join(v.dir, keyFile), "err", err)
	}
	return nil
}

// loadOrCreateKeychainKey returns the private key in the keychain that belongs to the given public key. If public is
// empty or the key was lost, it creates a new key. The error is the reason why there is no key.
func (v *Vault) loadOrCreateKeychainKey(public string) (*age.X25519Identity, error) {
	if public != "" {
		if key, err := v.keychainKeyFor(public); !errors.Is(err, ErrNotFound) {
			return key, err
		}
	}
	if err := v.keychain.checkAvailable(); err != nil {
		return nil, err
	}
	unlock, err := v.lockForWriting()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if now := v.publicKey(); now != public {
		return v.keychainKeyFor(now) // another process has created a key in the meantime
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	made := key.Recipient().String()
	if err := v.keychain.set(keychainAccount(made), key.String()); err != nil {
		return nil, err
	}
	if key, err = v.keychainKeyFor(made); err != nil { // checks that the keychain stored the key
		return nil, err
	}
	return key, v.replaceFile(filepath.Join(v.dir, publicKeyFile), []byte(made+"\n"))
}

// publicKey returns the public key in publicKeyFile; "" if the file is missing or invalid.
func (v *Vault) publicKey() string {
	text, err := readPrivateFile(filepath.Join(v.dir, publicKeyFile))
	if err != nil {
		return ""
	}
	key, err := age.ParseX25519Recipient(strings.TrimSpace(text))
	if err != nil {
		return ""
	}
	return key.String()
}

// fileKey returns the private key in keyFile. If make is true and the file is missing, it creates a key; the caller
// must then hold the write lock.
func (v *Vault) fileKey(make bool) (*age.X25519Identity, error) {
	path := filepath.Join(v.dir, keyFile)
	text, err := readPrivateFile(path)
	if make && errors.Is(err, fs.ErrNotExist) {
		key, err := age.GenerateX25519Identity()
		if err != nil {
			return nil, err
		}
		return key, v.replaceFile(path, []byte(key.String()+"\n"))
	}
	if err != nil {
		return nil, err
	}
	key, err := age.ParseX25519Identity(strings.TrimSpace(text))
	if err != nil {
		return nil, damaged(path, errors.New("it does not hold a key")) // the cause might contain a part of the key
	}
	return key, nil
}

// readPrivateFile returns the content of a key file. If other users have permissions for the file, it removes them
// first.
func readPrivateFile(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxKey:
		return "", damaged(path, errors.New("it was not written by Drawbridge"))
	}
	if _, err := privatefile.Protect(path, false); err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return string(text), err
}
