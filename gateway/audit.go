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
	// defaultAuditRetention is how long records of calls are kept, defaultAuditRecords how many.
	defaultAuditRetention = 90 * 24 * time.Hour
	defaultAuditRecords   = 1_000_000
	// auditDrainTimeout is how long the end waits for the store to take the audit in; what it does not take is there
	// at the next start.
	auditDrainTimeout = 5 * time.Second
	// signingKeyName is the signing key's name in the vault.
	signingKeyName = "audit/signing-key"
)

// openAudit makes the audit of calls: nil where the settings turn it off, and on a store that forgets everything.
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
	if s.Audit.KeyFile != "" { // the vault's is not asked for before it is needed
		if _, err := o.Key(); err != nil {
			c.Logger.Warn("calls are on record, but nothing signs them as long as audit.key_file has no key", "err",
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

// auditSpoolDir returns the directory of the audit's spool for a process that has no store open: beside the file of the
// store that StoreLocation names from the same arguments. For a database it is beside the usual file, by the identity of
// the database where that was opened before by the same URL; the one by the URL is taken in too. For a store that
// forgets there is none.
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

// signingKeyLoader gives what finds the key that signs the audit: in the file where one is named, else in the vault,
// which keeps one from the first time it is asked if make is set. The key is looked for once.
func signingKeyLoader(vault *secrets.Vault, file string, make bool) func() (ed25519.PrivateKey, error) {
	var mu sync.Mutex
	var found ed25519.PrivateKey
	return func() (ed25519.PrivateKey, error) {
		mu.Lock()
		defer mu.Unlock()
		if found != nil {
			return found, nil
		}
		var err error
		if file != "" {
			found, err = keyInFile(file)
		} else {
			found, err = keyInVault(vault, make)
		}
		return found, err
	}
}

// keyInVault gives the vault's key. Of processes that make one at the same time all get the first one's.
func keyInVault(vault *secrets.Vault, make bool) (ed25519.PrivateKey, error) {
	seed, err := vault.Get(signingKeyName)
	if errors.Is(err, secrets.ErrNotFound) && make {
		ctx, cancel := context.WithTimeout(context.Background(), auditDrainTimeout)
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
		return nil, fmt.Errorf("the secret %q is no signing key", signingKeyName)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// keyInFile reads a key in PKCS #8, as "openssl genpkey -algorithm ed25519" writes it. An error shows nothing of the
// file.
func keyInFile(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // a pipe would have us wait for ever
		err = errors.New("it is no regular file")
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

// auditRecorder is the audit as the deck wants it: nil where there is none.
func (g *Shared) auditRecorder() deck.AuditRecorder {
	if g.audit == nil {
		return nil
	}
	return g.audit
}

// registerSecrets has the values of rows that are secrets by their names, and the token of the door, stay out of the
// audit.
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

// closeAudit has the store take in what waits.
func (g *Shared) closeAudit() error {
	if g.audit == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), auditDrainTimeout)
	defer cancel()
	return g.audit.Close(ctx)
}

// RecoverAudit has the store take in the record of calls of processes that died, as a gateway with that configuration
// does at its start: who reads the audit then reads all of it.
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

// AuditPublicKey gives the public key that a gateway with that configuration signs the audit with; nil where there is
// none yet.
func AuditPublicKey(c Config) (ed25519.PublicKey, error) {
	c = c.withLogger()
	s, err := loadSettings(c)
	if err != nil {
		return nil, err
	}
	vault, err := openVault(c, s)
	if err != nil {
		return nil, err
	}
	key, err := signingKeyLoader(vault, s.Audit.KeyFile, false)()
	if errors.Is(err, secrets.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the key that signs the audit: %w", err)
	}
	return key.Public().(ed25519.PublicKey), nil
}
