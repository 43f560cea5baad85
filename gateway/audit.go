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
	// defaultAuditRetention is how long records of calls are kept, and defaultAuditRecords how many.
	defaultAuditRetention = 90 * 24 * time.Hour
	defaultAuditRecords   = 1_000_000
	// auditDrainTimeout bounds how long Close waits for the store to collect the audit records. The rest is collected
	// at the next start.
	auditDrainTimeout = 5 * time.Second
	// signingKeyName is the signing key's name in the vault.
	signingKeyName = "audit/signing-key"
)

// openAudit opens the audit of calls. It returns nil if the settings turn it off, and for a store in memory.
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
		KeepRecords: uint64(s.Audit.MaxRecords),
		Key:         signingKeyLoader(vault, s.Audit.KeyFile, true),
	}
	if s.Audit.KeyFile != "" { // the key in the vault is read only when needed
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
	return db.NewAuditWriter(dir, o), nil
}

// auditSpoolDir returns the directory of the audit's spool for a process without an open store: beside the file of the
// store that StoreLocation returns for the same arguments. For a database it is beside the default file, named after the
// identity of the database if that was opened before by the same URL. For a store in memory it is empty.
func auditSpoolDir(flag string, s config.Settings, lookup func(string) (string, bool)) (string, error) {
	p, err := placeOfStore(flag, s, lookup)
	if err != nil || p.idFile == "" {
		return "", err
	}
	id, err := p.knownID()
	return p.spoolDir(id), err
}

// spoolDirsOf returns the directory of the spool of an open store, and those whose files it takes in as well: the ones
// that are named by the store's URL or by a link, not by the store.
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

// signingKeyLoader returns a function that loads the key that signs the audit: from the file if one is named, else from
// the vault. If make is set and the vault has no key, the first call makes one. A loaded key is kept.
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

// keyInVault returns the key in the vault. Processes that make one at the same time all get the same key.
func keyInVault(ctx context.Context, vault *secrets.Vault, make bool) (ed25519.PrivateKey, error) {
	seed, err := vault.Get(signingKeyName)
	if errors.Is(err, secrets.ErrNotFound) && make {
		ctx, cancel := context.WithTimeout(ctx, auditDrainTimeout)
		defer cancel()
		unlock, held := vault.Lock(ctx, signingKeyName)
		if held != nil {
			return nil, held
		}
		defer unlock()
		if seed, err = vault.Get(signingKeyName); errors.Is(err, secrets.ErrNotFound) {
			_, fresh, failure := ed25519.GenerateKey(rand.Reader)
			if failure != nil {
				return nil, failure
			}
			seed = fresh.Seed()
			err = vault.Put(signingKeyName, seed)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case len(seed) != ed25519.SeedSize:
		return nil, fmt.Errorf("the secret %q is not an Ed25519 key", signingKeyName)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// keyInFile reads a key in PKCS #8, as "openssl genpkey -algorithm ed25519" writes it. The error never holds the
// content of the file.
func keyInFile(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would block for ever
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

// auditRecorder returns the audit as the deck wants it, or nil if there is none.
func (g *Shared) auditRecorder() deck.AuditRecorder {
	if g.audit == nil {
		return nil
	}
	return g.audit
}

// registerSecrets tells the audit which values to redact: values of rows whose names mark a secret, and the token of
// the HTTP endpoint.
func (g *Gateway) registerSecrets() {
	known := g.shared.vault.Known()
	known.Note(g.config.Token)
	for _, row := range g.set.Mountable() {
		for _, p := range slices.Concat(row.Env, row.Headers) {
			if audit.IsSecretName(p.Name) {
				_, credential, _ := strings.Cut(p.Value, " ") // Bearer …
				known.Note(p.Value, credential)
			}
		}
	}
}

// closeAudit waits until the store has collected the audit records, up to auditDrainTimeout.
func (g *Shared) closeAudit() error {
	if g.audit == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(g.closing, auditDrainTimeout)
	defer cancel()
	return g.audit.Close(ctx)
}

// RecoverAudit collects the audit records of processes that died into the store, as a gateway with that configuration
// does when it starts. A reader of the audit then sees all of it.
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

// AuditPublicKey returns the public key with which a gateway with that configuration signs the audit, or nil if it has
// no key yet.
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
