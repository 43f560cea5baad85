package store_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/recordlog"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
)

// auditName is the name of a test binary that is to record calls until it dies.
const auditName = "audit-child"

// auditChild records calls in the audit of a store, and prints the ID of each that it would have answered.
func auditChild(args []string) int {
	err := func() error {
		ctx := context.Background()
		db, err := store.Open(ctx, args[0], store.Options{})
		if err != nil {
			return err
		}
		a := db.NewAuditWriter(args[1], store.AuditOptions{})
		go func() { _ = a.Run(ctx) }()
		out := bufio.NewWriter(os.Stdout)
		for n := 0; ; n++ {
			id := fmt.Sprintf("%d-%d", os.Getpid(), n)
			both := called(id)
			slot, err := a.RecordOpen(both[0])
			if err == nil && n%5 == 0 {
				err = a.Record(both[1])
			} else if err == nil {
				err = a.Complete(slot, both[1])
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(out, id)
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}()
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// called is the two records of a call.
func called(id string) []audit.Record {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return []audit.Record{
		{ID: id, Kind: audit.Call, At: at, Method: "tools/call", Card: "fs__read", Server: "fs", Tool: "read",
			Arguments: json.RawMessage(`{"n":1,"token":"canary-1"}`), Effect: "allow"},
		{ID: id, Kind: audit.Done, At: at, Outcome: audit.OK, Duration: time.Millisecond},
	}
}

// auditOf gives what the audit of a store has, folded, after a check of its chain.
func auditOf(t testing.TB, db *store.DB, trusted ...ed25519.PublicKey) (store.AuditReport, map[string]audit.Record) {
	t.Helper()
	report, err := db.VerifyAudit(t.Context(), trusted...)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]audit.Record{}
	for _, r := range audit.MergeOutcomes(recordsOf(t, db)) {
		if _, twice := all[r.ID]; twice {
			t.Errorf("%s is there twice", r.ID)
		}
		all[r.ID] = r
	}
	return report, all
}

func recordsOf(t testing.TB, db *store.DB) (all []audit.Record) {
	t.Helper()
	for stored, err := range db.AuditRecords(t.Context(), time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(stored.Body, []byte("canary")) {
			t.Fatalf("a secret is on record: %s", stored.Body)
		}
		if stored.Kind == string(audit.Anchor) { // about another chain, and not about a call
			continue
		}
		r, err := audit.DecodeRecord(stored.Body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func record(t testing.TB, a *store.AuditWriter, ids ...string) {
	t.Helper()
	for _, id := range ids {
		for _, r := range called(id) {
			if err := a.Record(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAuditTakesRecordsIn(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db, dir := open(t, location), filepath.Join(t.TempDir(), "spool")
		a := db.NewAuditWriter(dir, store.AuditOptions{})
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Error("something was made before the first record")
		}
		record(t, a, "1", "2")
		if err := a.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		record(t, a, "3")
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		report, all := auditOf(t, db)
		if diff := cmp.Diff(store.AuditReport{ChainReport: store.ChainReport{Stream: "audit", Records: 6,
			First: 1, Last: 6, Unsigned: report.Unsigned}}, report); diff != "" {
			t.Error(diff)
		}
		want := called("2")[0]
		want.Arguments, want.Size = json.RawMessage(`{"n":1,"token":"[redacted]"}`), 26
		want.Digest, want.Outcome, want.Duration = all["2"].Digest, audit.OK, time.Millisecond
		if diff := cmp.Diff(want, all["2"]); diff != "" || len(all) != 3 {
			t.Errorf("of %d: %s", len(all), diff)
		}
		stored, err := db.AuditRecordsOfCall(t.Context(), "3")
		if err != nil || len(stored) != 2 || stored[0].Seq != 5 || stored[1].Kind != "done" {
			t.Errorf("%v, %v", stored, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if err := a.Record(called("4")[0]); err == nil {
			t.Error("a record was taken after the end")
		}
		if streams, err := db.LedgerStreams(t.Context()); err != nil || len(streams) > 0 {
			t.Errorf("the ledger's streams are %v, %v", streams, err)
		}
	})
}

// TestKilledProcessesLoseNoAnsweredCall kills processes while they record, and while they take in what they recorded.
func TestKilledProcessesLoseNoAnsweredCall(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		dir := filepath.Join(t.TempDir(), "spool")
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		open(t, location) // makes the tables
		answered := map[string]bool{}
		for round := range 4 {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Args = []string{auditName, location, dir}
			cmd.Stderr = t.Output()
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said := bufio.NewScanner(stdout)
			for n := 0; n < 1+round*150 && said.Scan(); n++ {
				answered[said.Text()] = true
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for said.Scan() {
				answered[said.Text()] = true
			}
			_ = cmd.Wait() // it was killed
		}
		db := open(t, location)
		if err := db.NewAuditWriter(dir, store.AuditOptions{}).RecoverOrphans(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, all := auditOf(t, db)
		for id := range answered {
			if all[id].Outcome != audit.OK {
				t.Fatalf("call %s was answered, and the audit has %+v", id, all[id])
			}
		}
		if len(answered) < 300 {
			t.Errorf("only %d calls were answered", len(answered))
		}
	})
}

// TestTornTailIsCutAndNoted has a process die in the midst of a write.
func TestTornTailIsCutAndNoted(t *testing.T) {
	location, dir := filepath.Join(t.TempDir(), "store.db"), filepath.Join(t.TempDir(), "spool")
	db := open(t, location)
	a := db.NewAuditWriter(dir, store.AuditOptions{})
	record(t, a, "1", "2")
	files, err := filepath.Glob(filepath.Join(dir, "*.spool"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole = bytes.TrimRight(whole, "\x00") // room for more
	for _, cut := range []int{1, 2, 20, 59} {
		other, dir := open(t, ":memory:"), t.TempDir()
		path := filepath.Join(dir, "DEAD-1.spool")
		if err := os.WriteFile(path, whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		a := other.NewAuditWriter(dir, store.AuditOptions{})
		for range 2 { // the second finds nothing new
			if err := a.RecoverOrphans(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_, all := auditOf(t, other)
		if all["1"].Outcome != audit.OK || all["2"].Outcome != "" || all["2"].Kind != audit.Call ||
			all["DEAD-1.spool"].Kind != audit.Note {
			t.Fatalf("%d bytes cut off: %+v", cut, all)
		}
		if _, err := os.Stat(path + ".torn"); err != nil {
			t.Error(err)
		}
	}
}

// TestAFileThatAnotherProgramChanged has another program cut, edit or remove the file that records are written into.
// What that took is lost; that it is lost is on record, and no later record is.
func TestAFileThatAnotherProgramChanged(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"cut":       func(t *testing.T, path string) { check(t, os.Truncate(path, 10)) },
		"cut whole": func(t *testing.T, path string) { check(t, os.Truncate(path, 0)) },
		"removed":   func(t *testing.T, path string) { check(t, os.Remove(path)) },
		"edited": func(t *testing.T, path string) {
			text, err := os.ReadFile(path)
			check(t, err)
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			check(t, err)
			_, err = f.WriteAt([]byte("?"), int64(len(bytes.TrimRight(text, "\x00"))-5))
			check(t, errors.Join(err, f.Close()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			db, dir := open(t, filepath.Join(t.TempDir(), "test.db")), filepath.Join(t.TempDir(), "spool")
			a := db.NewAuditWriter(dir, store.AuditOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			record(t, a, "1")
			if err := a.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			record(t, a, "2")
			files, err := filepath.Glob(filepath.Join(dir, "*.spool"))
			if err != nil || len(files) != 1 {
				t.Fatalf("files are %v, %v", files, err)
			}
			change(t, files[0])
			record(t, a, "3")
			if err := a.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			record(t, a, "4")
			if err := a.Close(t.Context()); err != nil {
				t.Error(err)
			}
			_, all := auditOf(t, db)
			note := all[filepath.Base(files[0])]
			if _, there := all["4"]; !there || note.Kind != audit.Note || note.Bytes == 0 ||
				!strings.Contains(note.Reason, "bytes of records are lost") {
				t.Errorf("on record are %v", all)
			}
			if !strings.Contains(log.String(), "records of calls are lost") {
				t.Errorf("the log says %s", log.String())
			}
			_, err = os.Stat(files[0] + recordlog.TornSuffix)
			if left := name != "removed"; (err == nil) != left {
				t.Errorf("what is left of the file is there: %v, want %v", err == nil, left)
			}
		})
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestEachRecordIsTakenInOnce has the next process find a file of which the store has a part.
func TestEachRecordIsTakenInOnce(t *testing.T) {
	db, dir, next := open(t, filepath.Join(t.TempDir(), "store.db")), t.TempDir(), t.TempDir()
	a := db.NewAuditWriter(dir, store.AuditOptions{})
	record(t, a, "1")
	if err := a.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	record(t, a, "2")
	files, err := filepath.Glob(filepath.Join(dir, "*.spool"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	heir := db.NewAuditWriter(next, store.AuditOptions{})
	if err := db.NewAuditWriter(dir, store.AuditOptions{}).RecoverOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report, _ := auditOf(t, db); report.Records != 2 {
		t.Errorf("%d records, want 2: the file is a living process's", report.Records)
	}
	if err := os.Rename(files[0], filepath.Join(next, filepath.Base(files[0]))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := heir.RecoverOrphans(t.Context()); err != nil {
			t.Fatal(err)
		}
		if report, _ := auditOf(t, db); report.Records != 4 {
			t.Errorf("%d records, want 4", report.Records)
		}
	}
	_ = a.Close(t.Context()) // its file is gone
}

func TestAuditOfSeveralProcesses(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db, dir := open(t, location), t.TempDir()
		var group sync.WaitGroup
		for p := range 3 {
			group.Go(func() {
				other := open(t, location)
				a := other.NewAuditWriter(dir, store.AuditOptions{})
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var writers sync.WaitGroup
				writers.Go(func() { _ = a.Run(ctx) })
				var callers sync.WaitGroup
				for c := range 4 {
					callers.Go(func() {
						for n := range 50 {
							for _, r := range called(fmt.Sprintf("%d-%d-%d", p, c, n)) {
								if err := a.Record(r); err != nil {
									t.Error(err)
								}
							}
						}
					})
				}
				callers.Wait()
				stop()
				writers.Wait()
				if err := a.Close(context.WithoutCancel(ctx)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		report, all := auditOf(t, db)
		records := len(recordsOf(t, db)) // without those that name the ends of other chains
		if records != 1200 || len(all) != 600 {
			t.Errorf("%d records of %d calls, want 1200 of 600: %+v", records, len(all), report)
		}
	})
}

func newKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signed makes an audit of so many calls, signed.
func signed(t *testing.T, location string, key ed25519.PrivateKey, calls int, o store.AuditOptions) *store.DB {
	t.Helper()
	db := open(t, location)
	o.Key = func(context.Context) (ed25519.PrivateKey, error) { return key, nil }
	a := db.NewAuditWriter(t.TempDir(), o)
	for run, n := rand.Text(), 0; n < calls; n++ {
		record(t, a, fmt.Sprintf("%s-%d", run, n))
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestAuditIsSigned(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		key := newKey(t)
		public := key.Public().(ed25519.PublicKey)
		db := signed(t, location, key, 200, store.AuditOptions{})
		report, _ := auditOf(t, db, newKey(t).Public().(ed25519.PublicKey), public)
		if report.Signed != 400 || report.SignedAt.IsZero() || len(report.Keys) != 1 || !report.Keys[0].Equal(public) {
			t.Errorf("%+v", report)
		}
		if _, err := db.VerifyAudit(t.Context(), newKey(t).Public().(ed25519.PublicKey)); err == nil ||
			!strings.Contains(err.Error(), "checkpoint at record 400: it is signed by "+audit.FormatPublicKey(public)) {
			t.Errorf("with another key: %v", err)
		}
		db = signed(t, location, key, 10, store.AuditOptions{}) // too few, and too young
		if report, _ = auditOf(t, db, public); report.Signed != 400 || report.Last != 420 {
			t.Errorf("%+v", report)
		}
	})
}

// TestAuditThatCannotBeWrittenRefuses takes away what the audit stands on.
func TestAuditThatCannotBeWrittenRefuses(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "store.db"))
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := db.NewAuditWriter(filepath.Join(file, "spool"), store.AuditOptions{}).Record(called("1")[0])
	f, _ := errors.AsType[*drawbridge.Fault](err)
	if f == nil || f.Kind != drawbridge.Backend || f.Code != drawbridge.ServerError || f.Next == "" {
		t.Errorf("no directory: %v", err)
	}
	a := db.NewAuditWriter(t.TempDir(), store.AuditOptions{MaxWaiting: 700})
	record(t, a, "1")
	for _, r := range called("2") {
		err = errors.Join(err, a.Record(r))
	}
	if err = a.Record(called("3")[0]); !strings.Contains(fmt.Sprint(err), "too many bytes wait for the store") {
		t.Errorf("the spool is full: %v", err)
	}
	if f, _ := errors.AsType[*drawbridge.Fault](err); f == nil || f.Code != drawbridge.Transient {
		t.Errorf("the spool is full: %v", err)
	}
	if err := a.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	record(t, a, "4")
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkAuditRecord(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprint("sync=", sync), func(b *testing.B) {
			db := open(b, filepath.Join(b.TempDir(), "store.db"))
			a := db.NewAuditWriter(b.TempDir(), store.AuditOptions{Sync: sync, MaxWaiting: 8 << 30,
				Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
			call := called("01ARZ3NDEKTSV4RRFFQ69G5FAV")
			b.ReportAllocs()
			for b.Loop() {
				for _, r := range call {
					if err := a.Record(r); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// TestAStoreThatIsGoneTakesNothing has the file of a store removed, and then another one in its place, while calls are
// recorded: nothing is written where nobody would find it again, and who opens a store there next has all records,
// each once.
func TestAStoreThatIsGoneTakesNothing(t *testing.T) {
	dir := t.TempDir()
	path, spools := filepath.Join(dir, "x.db"), filepath.Join(dir, "spool")
	open := func() *store.DB {
		db, err := store.Open(t.Context(), path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	gone := open()
	a := gone.NewAuditWriter(spools, store.AuditOptions{})
	for _, ending := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + ending); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	record := func(id string) {
		for _, r := range called(id) {
			if err := a.Record(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	record("1")
	refused := func(when string) {
		fault, ok := errors.AsType[*drawbridge.Fault](a.Drain(t.Context()))
		if !ok || fault.Code != drawbridge.ServerError || fault.Next == "" {
			t.Errorf("%s the store took the records in: %v", when, fault)
		}
	}
	refused("while there was no file")
	next := open()
	record("2")
	refused("while another one stood there")
	if err := a.Close(t.Context()); err == nil {
		t.Error("the end says nothing of it")
	}
	for range 2 {
		if err := next.NewAuditWriter(spools, store.AuditOptions{}).RecoverOrphans(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if report, all := auditOf(t, next); len(all) != 2 || report.Records != 4 {
		t.Errorf("%d calls in %d records are there", len(all), report.Records)
	}
}
