//go:build !nomcp

package gateway

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// TestCallsAreOnRecord has a call whose arguments repeat what a server was given.
func TestCallsAreOnRecord(t *testing.T) {
	server := row(t, "every", "everything")
	server.Env = append(server.Env, config.NameValue{Name: "SERVICE_TOKEN", Value: "canary of a row"})
	c := Config{Store: filepath.Join(t.TempDir(), "store.db"), Servers: []config.Server{server}}
	g := openOnly(t, c)
	run(t, g)
	_, err := g.Deck().Call(t.Context(), drawbridge.Call{Caller: g.Owner(),
		Params: json.RawMessage(`{"name":"every__echo","arguments":{"text":"say canary of a row"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	closeIt(t, g)
	db, err := store.Open(t.Context(), c.Store, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.VerifyAudit(t.Context()); err != nil {
		t.Error(err)
	}
	var records []audit.Record
	for stored, err := range db.AuditRecords(t.Context(), time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := audit.DecodeRecord(stored.Body)
		if err != nil || strings.Contains(string(stored.Body), "canary") {
			t.Fatalf("%v: %s", err, stored.Body)
		}
		records = append(records, r)
	}
	got := audit.MergeOutcomes(records)
	if len(got) != 1 || got[0].Card != "every__echo" || got[0].Outcome != audit.OK ||
		got[0].Caller.Principal != g.Owner().Principal ||
		string(got[0].Arguments) != `{"text":"say [redacted]"}` || len(got[0].Definition) != 64 || got[0].Bytes == 0 {
		t.Errorf("%+v", got)
	}
}

func TestSigningKey(t *testing.T) {
	vault, err := secrets.OpenVault(t.TempDir(), secrets.VaultOptions{NoKeychain: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signingKeyLoader(vault, "", false)(); !errors.Is(err, secrets.ErrNotFound) {
		t.Errorf("a key that nobody has made: %v", err)
	}
	first, err := signingKeyLoader(vault, "", true)()
	if err != nil {
		t.Fatal(err)
	}
	again, err := signingKeyLoader(vault, "", true)()
	if err != nil || !again.Equal(first) {
		t.Errorf("another key the second time: %v", err)
	}
	_, own, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "audit.pem")
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if key, err := signingKeyLoader(vault, file, true)(); err != nil || !key.Equal(own) {
		t.Errorf("the key of a file: %v", err)
	}
	write([]byte("-----BEGIN PRIVATE KEY-----\nY2FuYXJ5\n-----END PRIVATE KEY-----\n"))
	if _, err := signingKeyLoader(vault, file, true)(); err == nil || strings.Contains(err.Error(), "Y2FuYXJ5") ||
		strings.Contains(err.Error(), "canary") {
		t.Errorf("a file without a key: %v", err)
	}
}

// TestAKeyFileWithoutAKeyIsTold has a key file named that is not there: calls are recorded, and the log says at the
// start that nothing signs them. Without one the vault makes no key before it is asked for.
func TestAKeyFileWithoutAKeyIsTold(t *testing.T) {
	vault, err := secrets.OpenVault(t.TempDir(), secrets.VaultOptions{NoKeychain: true})
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(t.TempDir(), "store.db")
	db, err := store.Open(t.Context(), place, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	absent, other := filepath.Join(t.TempDir(), "none.pem"), filepath.Join(t.TempDir(), "none.pem")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, told := range map[string]bool{"": false, absent: true, other: true} {
		var log strings.Builder
		c := Config{Store: place, Logger: slog.New(slog.NewTextHandler(&log, nil)), LookupEnv: func(string) (string,
			bool) {
			return "", false
		}}
		if a, err := openAudit(t.Context(), c, config.Settings{Audit: config.AuditSettings{KeyFile: file}}, db, vault); a == nil ||
			err != nil {
			t.Errorf("with the key file %q there is no audit: %v", file, err)
		}
		if got := log.String(); strings.Contains(got, "audit.key_file") != told ||
			strings.Contains(got, "none.pem") != told {
			t.Errorf("with the key file %q the log says %q", file, got)
		}
	}
	if _, err := signingKeyLoader(vault, "", false)(); !errors.Is(err, secrets.ErrNotFound) {
		t.Errorf("the vault has a key that nobody needed yet: %v", err)
	}
}

func TestSpoolPlace(t *testing.T) {
	home := func(name string) (string, bool) {
		if name != "HOME" {
			return "", false
		}
		return "/home/ada", true
	}
	for flag, want := range map[string]string{
		"":                 "/home/ada/.local/state/drawbridge/drawbridge.db-audit",
		"/srv/x.db":        "/srv/x.db-audit",
		MemoryStore:        "",
		"postgres://db/x":  "/home/ada/.local/state/drawbridge/postgres-297a10c5-audit",
		"postgres://db/x2": "/home/ada/.local/state/drawbridge/postgres-a3982149-audit",
	} {
		if got, err := auditSpoolDir(flag, config.Settings{}, home); err != nil || got != want {
			t.Errorf("of %q it is %q (%v), want %q", flag, got, err, want)
		}
	}
}

// quick is an upstream that answers at once.
type quick struct{}

func (quick) Do(context.Context, drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`)}, nil
}
func (quick) Watch(context.Context, drawbridge.ServerID, drawbridge.WatchSet) error { return nil }
func (quick) SetLogLevel(context.Context, string, string) error                     { return nil }
func (quick) ForwardNotification(context.Context, string, string, json.RawMessage)  {}
func (quick) EndSession(string)                                                     {}

// BenchmarkAuditedCall is a call of a deck whose server takes no time, without an audit and with one.
func BenchmarkAuditedCall(b *testing.B) {
	db, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for name, a := range map[string]deck.AuditRecorder{
		"off": nil, "on": db.NewAuditWriter(b.TempDir(), store.AuditOptions{MaxWaiting: 8 << 30,
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}),
	} {
		b.Run(name, func(b *testing.B) {
			d, err := deck.New(b.Context(), quick{}, deck.Options{Audit: a})
			if err == nil {
				err = d.Configure(b.Context(), []deck.Server{{ID: "s", ConfigHash: "r"}})
			}
			if err == nil {
				l := drawbridge.Listing{Server: "s", ConfigHash: "r", Tools: []json.RawMessage{json.RawMessage(
					`{"name":"read","description":"Reads.","inputSchema":{"type":"object"}}`)}}
				err = d.Enrol(b.Context(), l, deck.ShowAll(l))
			}
			if err != nil {
				b.Fatal(err)
			}
			call := drawbridge.Call{Caller: processOwner(), Params: json.RawMessage(
				`{"_meta":{"progressToken":1},"name":"s__read","arguments":{"path":"/home/ada/projects/README.md","limit":100}}`)}
			call.Caller.Client = json.RawMessage(`{"name":"editor","version":"1.2"}`)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Call(b.Context(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
