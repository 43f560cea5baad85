package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/cli"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/google/go-cmp/cmp"
)

var errQuiet = errors.New("")

// A auditDesk is a store with an audit, and the commands on it.
type auditDesk struct {
	t     *testing.T
	db    *store.DB
	audit *store.AuditWriter
	home  string
}

func auditNewDesk(t *testing.T, key ed25519.PrivateKey) auditDesk {
	t.Helper()
	home := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(home, "store.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return auditDesk{t, db, db.NewAuditWriter(filepath.Join(home, "store.db-audit"),
		store.AuditOptions{Key: func(context.Context) (ed25519.PrivateKey, error) { return key, nil }}), home}
}

// run types a command.
func (d auditDesk) run(ctx context.Context, out io.Writer, args ...string) error {
	cmd := cli.AuditCommands{
		Out: out, Err: io.Discard, ErrAlreadyPrinted: errQuiet,
		Admin: func() *admin.Service {
			path := filepath.Join(d.home, "store.db")
			env := func(name string) (string, bool) {
				value, ok := map[string]string{"HOME": d.home, gateway.KeychainVariable: "off"}[name]
				return value, ok
			}
			return admin.New(admin.Options{ConfigOptions: config.Options{Dir: d.home, LookupEnv: env}, Store: path,
				Gateway: gateway.Config{Store: path, LookupEnv: env}})
		},
	}.Command()
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(ctx)
}

func (d auditDesk) printed(args ...string) string {
	d.t.Helper()
	var out bytes.Buffer
	if err := d.run(d.t.Context(), &out, args...); err != nil {
		d.t.Fatalf("%v: %v", args, err)
	}
	return out.String()
}

// record keeps records and has the store take them in.
func (d auditDesk) record(records ...audit.Record) {
	d.t.Helper()
	for _, r := range records {
		if err := d.audit.Record(r); err != nil {
			d.t.Fatal(err)
		}
	}
	if err := d.audit.Drain(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

func begun(id, server, principal string) audit.Record {
	return audit.Record{
		ID: id, Kind: audit.Call, At: time.Now(), Caller: audit.Caller{Kind: "external", Principal: principal,
			Client: "editor\x1b[31m 1"},
		Method: "tools/call", Card: server + "__x", Server: server, Tool: "x", Effect: "allow",
	}
}

func ended(id string, outcome audit.Outcome) audit.Record {
	return audit.Record{ID: id, Kind: audit.Done, At: time.Now(), Outcome: outcome, Duration: time.Millisecond}
}

func TestLogShowsWhatIsAskedFor(t *testing.T) {
	d := auditNewDesk(t, nil)
	old := begun("0", "a", "ada")
	old.At = time.Now().Add(-48 * time.Hour)
	first, second := begun("1", "a", "ada"), begun("2", "b", "ada")
	refused := begun("3", "b", "bob")
	refused.Outcome, refused.Reason, refused.Effect = audit.Refused, "never", "deny"
	d.record(old, first, second, ended("2", audit.OK), refused, ended("1", audit.IsError), begun("4", "a", "bob"),
		audit.Record{ID: "5", Kind: audit.Shield, At: time.Now(), Server: "a", Reason: "a text was blanked"})
	ids := func(args ...string) string {
		var rows []audit.Record
		if err := json.Unmarshal([]byte(d.printed(append([]string{"log", "--json"}, args...)...)), &rows); err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, r := range rows {
			text += r.ID
		}
		return text
	}
	for args, want := range map[string]string{
		"": "12345", "--since 72h": "12345", "--server a": "145", "--caller ada": "12", "--caller editor": "1234",
		"--caller bob --failed": "34",
		"--failed":              "134", "-n 2": "45", "--server a --caller ada": "1",
	} {
		if args == "--since 72h" {
			want = "0" + want
		}
		if got := ids(strings.Fields(args)...); got != want {
			t.Errorf("log %s shows %s, want %s", args, got, want)
		}
	}
	late := refused // by a process that brings it later than the others
	late.ID = "6"
	d.record(late)
	if got := ids(); got != "123645" {
		t.Errorf("what was brought late stands at %s", got)
	}
	text := d.printed("log")
	for _, want := range []string{"a__x  is_error            1ms   1", "refused: never", "a text was blanked", "open"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("a client's name does something to the terminal")
	}
}

// TestLogIsFollowed has calls come while the log is followed.
func TestLogIsFollowed(t *testing.T) {
	d := auditNewDesk(t, nil)
	d.record(begun("1", "a", "ada"), ended("1", audit.OK), begun("2", "a", "ada"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	in, out := io.Pipe()
	over := make(chan error, 1)
	go func() {
		over <- d.run(ctx, out, "log", "-f", "--json")
		out.Close()
	}()
	lines := bufio.NewScanner(in)
	next := func() string {
		var r audit.Record
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &r) != nil {
			t.Fatalf("the log ended with %q: %v", lines.Text(), lines.Err())
		}
		return fmt.Sprint(r.ID, r.Outcome, r.Card)
	}
	got := []string{next()}
	d.record(ended("2", audit.Fault), begun("3", "b", "ada"))
	got = append(got, next())
	d.record(ended("3", audit.OK))
	got = append(got, next())
	if diff := cmp.Diff([]string{"1oka__x", "2faulta__x", "3okb__x"}, got); diff != "" {
		t.Error(diff)
	}
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// TestExportCanBeChecked computes the chain from what was printed.
func TestExportCanBeChecked(t *testing.T) {
	d := auditNewDesk(t, nil)
	d.record(begun("1", "a", "ada"), ended("1", audit.OK))
	var end [32]byte
	n := 0
	for row := range strings.Lines(d.printed("export", "--since", "1h")) {
		var r struct {
			Seq             uint64
			Stored          time.Time
			Kind, Key, Hash string
			Record          json.RawMessage
		}
		if err := json.Unmarshal([]byte(row), &r); err != nil {
			t.Fatal(err)
		}
		end = ledger.ChainHash(end, ledger.Record{Stream: store.AuditStream, Seq: r.Seq, At: r.Stored, Kind: r.Kind,
			Key: r.Key, Body: r.Record})
		if n++; hex.EncodeToString(end[:]) != r.Hash {
			t.Errorf("record %d has another hash than %x", r.Seq, end)
		}
	}
	if n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
}

func TestLogWantsANumberOfCalls(t *testing.T) {
	d := auditNewDesk(t, nil)
	d.record(begun("1", "a", "ada"))
	for _, n := range []string{"-1", "0"} {
		err := d.run(t.Context(), io.Discard, "log", "-n", n)
		if _, ok := errors.AsType[admin.UserError](err); !ok {
			t.Errorf("log -n %s: %v", n, err)
		}
	}
}

// signedDesk is a desk whose audit has 150 calls and was closed, and the key that vouches for it.
func signedDesk(t *testing.T) (d auditDesk, public ed25519.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	d = auditNewDesk(t, private)
	var all []audit.Record
	for n := range 150 {
		all = append(all, begun(fmt.Sprint(n), "a", "ada"), ended(fmt.Sprint(n), audit.OK))
	}
	d.record(all...)
	if err := d.audit.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d, public
}

// TestVerifyWithoutAKey has an audit that is signed, on a machine that has no key, and where its file is not there.
func TestVerifyWithoutAKey(t *testing.T) {
	d, public := signedDesk(t)
	settings := filepath.Join(d.home, ".config", "drawbridge", "drawbridge.toml")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, why := range map[string]string{"": "the key of this machine is not there", "[audit]\nkey_file = '" +
		filepath.Join(d.home, "none.pem") + "'\n": "none.pem"} {
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, asJSON bytes.Buffer
		if err := d.run(t.Context(), &out, "verify"); !errors.Is(err, cli.ExitError(3)) {
			t.Errorf("verify ends with %v", err)
		}
		for _, want := range []string{"! audit: 300 records, unbroken, but their signer is unknown\n",
			"by the unknown key " + audit.FormatPublicKey(public), why, "--key KEY"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("verify says no %q:\n%s", want, &out)
			}
		}
		if err := d.run(t.Context(), &asJSON, "verify", "--json"); !errors.Is(err, cli.ExitError(3)) ||
			!strings.Contains(asJSON.String(), `"unknown_signer": "`) {
			t.Errorf("verify --json: %v, %s", err, &asJSON)
		}
		if got := d.printed("verify", "--key", audit.FormatPublicKey(public)); !strings.HasPrefix(got,
			"✓ audit: 300 records, unbroken\n  signed up to record 300") {
			t.Errorf("verify --key says\n%s", got)
		}
	}
	// What nobody signed yet is as it is, but for a key that is asked for and not there.
	unsigned := auditNewDesk(t, nil)
	unsigned.record(begun("1", "a", "ada"))
	if got := unsigned.printed("verify"); !strings.HasPrefix(got, "✓ audit: 1 record, unbroken\n  not signed yet") {
		t.Error(got)
	}
}

func TestVerifyNamesWhatIsLost(t *testing.T) {
	note := func(bytes int, reason string) audit.Record {
		return audit.Record{ID: "HOST-1.spool", Kind: audit.Note, At: time.Now(), Bytes: bytes, Reason: reason}
	}
	const (
		torn   = "HOST-1.spool ended with 70 bytes that are no whole record: they were cut off, and the file is kept as HOST-1.spool.torn"
		jumped = "no records were removed by age: the store's clock went from 2026-01-02T03:04:05Z to 2036-01-02T03:04:05Z since the last removal"
		lost   = "another program cut, edited or removed HOST-1.spool: 700 bytes of records are lost, and the rest of the file is kept as HOST-1.spool.torn"
	)
	for name, tt := range map[string]struct {
		notes []audit.Record
		err   error
		says  []string
		json  string
	}{
		"torn": {[]audit.Record{note(70, torn)}, nil,
			[]string{"✓ audit: 2 records, unbroken\n",
				"! a process died within a record, which it had not answered for: 1 note, the newest of 2", torn,
				"drawbridge audit log --since"}, `"torn": {`},
		"lost": {[]audit.Record{note(9, "another: first"), note(700, lost), note(70, torn)}, errQuiet,
			[]string{"✗ audit: 4 records, unbroken, but others are lost\n",
				"! records are lost: 2 notes, the newest of 2", lost, torn}, `"lost": {`},
		"a clock jumped": {[]audit.Record{{ID: "clock-X", Kind: audit.Note, At: time.Now(), Reason: jumped}}, nil,
			[]string{"✓ audit: 2 records, unbroken\n",
				"! the store's clock jumped, and no record was removed by age: 1 note,", jumped}, `"clock_jumped": {`},
		"more than a record": {[]audit.Record{note(1<<20, torn)}, errQuiet, []string{"! records are lost: 1 note,"},
			`"lost": {`},
	} {
		d := auditNewDesk(t, nil)
		d.record(append(tt.notes, begun("1", "a", "ada"))...)
		var out, asJSON bytes.Buffer
		if err := d.run(t.Context(), &out, "verify"); !errors.Is(err, tt.err) {
			t.Errorf("%s: verify ends with %v", name, err)
		}
		for _, want := range tt.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: verify says no %q:\n%s", name, want, &out)
			}
		}
		if err := d.run(t.Context(), &asJSON, "verify", "--json"); !errors.Is(err, tt.err) ||
			!strings.Contains(asJSON.String(), tt.json) {
			t.Errorf("%s: verify --json: %v, %s", name, err, &asJSON)
		}
	}
}

func TestVerifySaysWhoSigned(t *testing.T) {
	d, public := signedDesk(t)
	if got := d.printed("verify", "--key", audit.FormatPublicKey(public)); !strings.Contains(got,
		"signed up to record 300 at ") || !strings.Contains(got, audit.FormatPublicKey(public)) {
		t.Error(got)
	}
	// Nor can they take out what is inconvenient, as if it were too old.
	raw, err := sql.Open("sqlite", filepath.Join(d.home, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	more := auditDesk{t, d.db, d.db.NewAuditWriter(filepath.Join(d.home, "more"), store.AuditOptions{}), d.home}
	more.record(begun("more", "a", "ada"))
	more.record(begun("last", "a", "ada"))
	for _, query := range []string{
		"INSERT INTO cuts (stream, seq, hash) SELECT stream, last, hash FROM audit_blocks WHERE last = 301",
		"DELETE FROM audit_blocks WHERE last <= 301"} {
		if _, err := raw.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	var cut bytes.Buffer
	if err := d.run(t.Context(), &cut, "verify", "--key", audit.FormatPublicKey(public)); !errors.Is(err, errQuiet) ||
		!strings.Contains(cut.String(), "the records before 302 were taken out up to a place that no key has signed") {
		t.Errorf("%v: %s", err, &cut)
	}
	// Whoever can write the store can take the checkpoints out. With nobody to vouch for it, it is not what was signed.
	unsigned := auditNewDesk(t, nil)
	unsigned.record(begun("1", "a", "ada"))
	var none bytes.Buffer
	if err := unsigned.run(t.Context(), &none, "verify", "--key", audit.FormatPublicKey(public)); !errors.Is(err,
		errQuiet) || !strings.Contains(none.String(), "nothing is signed by a key that --key names") {
		t.Errorf("%v: %s", err, &none)
	}
	if got := unsigned.printed("verify"); !strings.Contains(got, "not signed yet, since 2") {
		t.Error(got)
	}
	other, _, _ := ed25519.GenerateKey(nil)
	var out bytes.Buffer
	if err := d.run(t.Context(), &out, "verify", "--key", audit.FormatPublicKey(other)); !errors.Is(err, errQuiet) ||
		!strings.HasPrefix(out.String(), "✗ audit: ") {
		t.Errorf("%v: %s", err, &out)
	}
	out.Reset()
	if err := d.run(t.Context(), &out, "verify", "--json", "--key", audit.FormatPublicKey(other)); !errors.Is(err,
		errQuiet) || !strings.Contains(out.String(), `"broken": "`) {
		t.Errorf("%v: %s", err, &out)
	}
}

// TestConfirmClock has a person confirm a clock that was two days ahead.
func TestConfirmClock(t *testing.T) {
	d, public := signedDesk(t)
	key := audit.FormatPublicKey(public)
	if got := d.printed("verify", "--key", key); strings.Contains(got, "clock") {
		t.Errorf("before the jump: %s", got)
	}
	raw, err := sql.Open("sqlite", filepath.Join(d.home, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.ExecContext(t.Context(), "UPDATE store_clock SET highest = highest + 172800000"); err != nil {
		t.Fatal(err)
	}
	if got := d.printed("verify", "--key", key); !strings.Contains(got, "the store's clock is not confirmed: its clock shows") ||
		!strings.Contains(got, "drawbridge audit confirm-clock") {
		t.Errorf("after the jump: %s", got)
	}
	if got := d.printed("verify", "--key", key, "--json"); !strings.Contains(got, `"clock_unconfirmed": "its clock shows`) {
		t.Errorf("after the jump: %s", got)
	}
	if got := d.printed("confirm-clock"); !strings.Contains(got, "✓ the store's clock is confirmed") {
		t.Error(got)
	}
	if got := d.printed("verify", "--key", key); strings.Contains(got, "clock") {
		t.Errorf("after it was confirmed: %s", got)
	}
}

// TestVerifyTellsWhyRecordsWent has records removed by age, and by another program.
func TestVerifyTellsWhyRecordsWent(t *testing.T) {
	d := auditNewDesk(t, nil)
	for _, id := range []string{"1", "2", "3"} { // each in a block of its own
		d.record(begun(id, "a", "ada"))
	}
	raw, err := sql.Open("sqlite", filepath.Join(d.home, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for i, tt := range []struct{ change, want string }{
		{"INSERT INTO cuts (stream, seq, hash, at, reason) SELECT stream, last, hash, 1764000000000, 'age' FROM audit_blocks WHERE last = 1",
			"before record 2 were taken out as too old, the last ones 2025-11-24"},
		{"UPDATE cuts SET seq = 2, reason = '', at = 0, hash = (SELECT hash FROM audit_blocks WHERE last = 2)",
			"before record 3 were taken out by an earlier version or another program, which kept no reason, up to a place"},
	} {
		for _, statement := range []string{tt.change, fmt.Sprintf("DELETE FROM audit_blocks WHERE last <= %d", i+1)} {
			if _, err := raw.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.printed("verify"); !strings.Contains(got, tt.want) {
			t.Errorf("%s; want %s", got, tt.want)
		}
	}
	if _, err := raw.ExecContext(t.Context(), "DELETE FROM audit_blocks WHERE last = 3"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := d.run(t.Context(), &out, "verify"); !errors.Is(err, errQuiet) ||
		!strings.Contains(out.String(), "record 3 of audit: missing") {
		t.Errorf("a record that is missing: %v, %s", err, &out)
	}
}
