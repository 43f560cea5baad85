package gateway

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

const (
	// defaultAuditRetention is the default time after which the audit deletes a record. defaultAuditRecords is the
	// default maximum number of records, and defaultAuditBytes the default maximum of their size.
	defaultAuditRetention = 90 * 24 * time.Hour
	defaultAuditRecords   = 1_000_000
	defaultAuditBytes     = 768 << 20
	// auditDrainTimeout is the maximum time that Close waits until the spooled audit records are in the store. The next
	// start moves the remaining records to the store.
	auditDrainTimeout = 5 * time.Second
	// signingKeyName is the signing key's name in the vault.
	signingKeyName = "audit/signing-key"
)

// openAudit returns the writer of the audit. It returns nil if the settings turn the audit off, or if the store is in
// memory.
func openAudit(ctx context.Context, c Config, s config.Settings, db *store.DB, vault *secrets.Vault) (
	*store.AuditWriter, error) {
	if s.Audit.Enabled != nil && !*s.Audit.Enabled {
		return nil, nil
	}
	dir, adopted, err := spoolDirsOf(ctx, c, s, db)
	if err != nil || dir == "" {
		return nil, err
	}
	o := store.AuditOptions{
		Adopted: adopted,
		Rules:   audit.RedactionRules{Arguments: audit.ArgumentMode(s.Audit.Arguments), KnownSecrets: vault.Known().All},
		Sync:    s.Audit.Sync == "always", Logger: c.Logger, KeepFor: s.Audit.Retention,
		KeepRecords: uint64(s.Audit.MaxRecords), KeepBytes: s.Audit.MaxBytes,
		Key: signingKeyLoader(vault, s.Audit.KeyFile, true),
	}
	if s.Audit.KeyFile != "" { // a key in the vault is read only when it is needed
		if _, err := o.Key(ctx); err != nil {
			c.Logger.Warn("calls are recorded, but the record is not signed: audit.key_file holds no key", "err",
				err)
		}
	}
	if o.KeepFor == 0 {
		o.KeepFor = defaultAuditRetention
	}
	if o.KeepRecords == 0 {
		o.KeepRecords = defaultAuditRecords
	}
	if o.KeepBytes == 0 {
		o.KeepBytes = defaultAuditBytes
	}
	return db.NewAuditWriter(dir, o), nil
}

// auditSpoolDir returns the spool directory of the audit, for a process that has not opened the store. The arguments
// are those of StoreLocation. For a store that is a file, the directory is beside the file. For a database, it is
// beside the default file of the store. Its name contains the identity of the database, if the database was opened
// before by the same URL. For a store in memory auditSpoolDir returns "".
func auditSpoolDir(flag string, s config.Settings, lookup func(string) (string, bool)) (string, error) {
	p, err := placeOfStore(flag, s, lookup)
	if err != nil || p.idFile == "" {
		return "", err
	}
	id, err := p.knownID()
	return p.spoolDir(id), err
}

// spoolDirsOf returns the spool directory of an open store. In adopted it returns other directories whose records must
// be moved to this store. Such a directory is named after the store's URL, or after a link to the store's file.
func spoolDirsOf(ctx context.Context, c Config, s config.Settings, db *store.DB) (dir string, adopted []string,
	err error) {
	p, err := placeOfStore(c.Store, s, c.LookupEnv)
	if err != nil || p.idFile == "" {
		return "", nil, err
	}
	id, err := db.Identity(ctx)
	if err != nil {
		return "", nil, err
	}
	if dir = p.spoolDir(id); dir != p.spelled {
		adopted = []string{p.spelled}
	}
	return dir, adopted, p.nameSpool(dir)
}

// signingKeyLoader returns a function that loads the key that signs the audit: from file if file is not empty, else
// from the vault. If make is set and the vault has no key, the function generates a key and stores it. It caches the
// loaded key.
func signingKeyLoader(vault *secrets.Vault, file string, make bool) func(context.Context) (
	ed25519.PrivateKey, error) {
	var mu sync.Mutex
	var found ed25519.PrivateKey
	return func(ctx context.Context) (ed25519.PrivateKey, error) {
		mu.Lock()
		defer mu.Unlock()
		if found != nil {
			return found, nil
		}
		var err error
		if file != "" {
			found, err = keyInFile(file)
		} else {
			found, err = keyInVault(ctx, vault, make)
		}
		return found, err
	}
}

// keyInVault returns the signing key from the vault. If the vault has none and make is true, it generates and stores one.
func keyInVault(ctx context.Context, vault *secrets.Vault, make bool) (ed25519.PrivateKey, error) {
	seed, err := randomInVault(ctx, vault, signingKeyName, ed25519.SeedSize, make)
	if err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// randomInVault returns a secret of size random bytes in the vault. If generate is set and there is none, it generates one.
// Processes that do this at the same time all get the same secret.
func randomInVault(ctx context.Context, vault *secrets.Vault, name string, size int, generate bool) ([]byte, error) {
	secret, err := vault.Get(name)
	if errors.Is(err, secrets.ErrNotFound) && generate {
		ctx, cancel := context.WithTimeout(ctx, auditDrainTimeout)
		defer cancel()
		unlock, held := vault.Lock(ctx, name)
		if held != nil {
			return nil, held
		}
		defer unlock()
		if secret, err = vault.Get(name); errors.Is(err, secrets.ErrNotFound) {
			secret = make([]byte, size)
			rand.Read(secret) // never fails: see its documentation
			err = vault.Put(name, secret)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case len(secret) != size:
		return nil, fmt.Errorf("the secret %q has %d bytes, not %d", name, len(secret), size)
	}
	return secret, nil
}

// keyInFile reads a key in PKCS #8, as "openssl genpkey -algorithm ed25519" writes it. The error never contains the
// content of the file.
func keyInFile(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would block forever
		err = errors.New("it is not a regular file")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err == nil {
		if block, _ := pem.Decode(text); block != nil {
			if key, fault := x509.ParsePKCS8PrivateKey(block.Bytes); fault == nil {
				if signing, ok := key.(ed25519.PrivateKey); ok {
					return signing, nil
				}
			}
		}
		err = errors.New("it holds no Ed25519 key in PKCS #8")
	}
	return nil, &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "read the audit's key file " + path, Err: err,
		Next: "openssl genpkey -algorithm ed25519 -out FILE makes one",
	}
}

// auditRecorder returns the audit as a [deck.AuditRecorder], or a nil interface if there is no audit.
func (g *Shared) auditRecorder() deck.AuditRecorder {
	if g.audit == nil {
		return nil
	}
	return g.audit
}

// registerSecrets registers the values that the audit must redact.
func (g *Gateway) registerSecrets() {
	g.shared.vault.Known().Note(append(ServerSecrets(g.set.Mountable()), g.config.Token)...)
}

// ServerSecrets returns the values in rows of servers that must not be shown: those of variables and headers whose names
// indicate a secret, and those of sign-ins.
func ServerSecrets(rows []config.Server) (values []string) {
	for _, row := range rows {
		for _, p := range slices.Concat(row.Env, row.Headers) {
			if audit.IsSecretName(p.Name) {
				_, credential, _ := strings.Cut(p.Value, " ") // the part after "Bearer "
				values = append(values, p.Value, credential)
			}
		}
		if auth := row.Auth; auth != nil {
			values = append(values, auth.ClientSecret, auth.PrivateKey, auth.IDPClientSecret, auth.IDToken)
		}
	}
	return values
}

// EndpointToken returns the token of the HTTP endpoint: that of the configuration, or the one in the token_file of the
// settings; empty if there is none. The error is that of Open if the file cannot be read.
func EndpointToken(c Config, s config.Settings) (string, error) {
	if c.Token != "" || s.TokenFile == "" {
		return c.Token, nil
	}
	return readSecretFile("token", s.TokenFile)
}

// closeAudit closes the audit. It waits until the spooled records are in the store, but not longer than
// auditDrainTimeout.
func (g *Shared) closeAudit() error {
	if g.audit == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(g.closing, auditDrainTimeout)
	defer cancel()
	return g.audit.Close(ctx)
}

// RecoverAudit moves the audit records that dead processes have spooled to the store, as a gateway with this
// configuration does when it starts. A reader of the audit then sees all records.
func RecoverAudit(ctx context.Context, c Config, db *store.DB) error {
	s, err := loadSettings(c)
	if err != nil {
		return err
	}
	dir, adopted, err := spoolDirsOf(ctx, c, s, db)
	if err != nil || dir == "" {
		return err
	}
	return db.NewAuditWriter(dir,
		store.AuditOptions{Adopted: adopted, Rules: audit.RedactionRules{Arguments: audit.ArgumentMode(
			s.Audit.Arguments)}}).RecoverOrphans(ctx)
}

// AuditPublicKey returns the public key that verifies the audit of a gateway with this configuration, or nil if the
// signing key does not exist yet.
func AuditPublicKey(ctx context.Context, c Config) (ed25519.PublicKey, error) {
	c = c.withLogger()
	s, err := loadSettings(c)
	if err != nil {
		return nil, err
	}
	vault, err := openVault(c, s)
	if err != nil {
		return nil, err
	}
	key, err := signingKeyLoader(vault, s.Audit.KeyFile, false)(ctx)
	if errors.Is(err, secrets.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the key that signs the audit: %w", err)
	}
	return key.Public().(ed25519.PublicKey), nil
}
