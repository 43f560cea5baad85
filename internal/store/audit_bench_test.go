//go:build bench && linux

package store_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// cpu returns the processor time that this process has used.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// written returns how many bytes this process has had written to disks.
func written(t testing.TB) (n int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "write_bytes: %d", &n)
	}
	return n
}

// onDisk returns the size of all files below a directory.
func onDisk(t testing.TB, dir string) (n int64) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			info, err := e.Info()
			if err == nil {
				n += info.Size()
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// recordCalls makes calls through a log, one after the other, as package deck does.
func recordCalls(t testing.TB, log *audit.CallLog, calls int, arguments func(n int) json.RawMessage, failed func(n int) bool) {
	t.Helper()
	definition := json.RawMessage(`{"name":"echo"}`)
	for n := range calls {
		args := arguments(n)
		call := drawbridge.Call{Method: "tools/call", Params: json.RawMessage(`{"name":"every__echo"}`),
			Caller: drawbridge.Caller{Kind: drawbridge.External, Principal: "owner:uid:1000", Session: "s", Transport: "stdio",
				Client: json.RawMessage(`{"name":"editor","version":"1.2"}`)}}
		_, logged := log.Begin(t.Context(), call)
		if err := logged.RecordIntent(call, args, drawbridge.Spec{Name: "every__echo", Server: "every", Tool: "echo",
			Definition: definition}, drawbridge.Verdict{Effect: drawbridge.Allow, Rule: "default"}); err != nil {
			t.Fatal(err)
		}
		result := drawbridge.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"hello"}]}`)}
		if failed != nil && failed(n) {
			result.Raw = json.RawMessage(`{"content":[{"type":"text","text":"hello"}],"isError":true}`)
		}
		if err := logged.End(result, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func smallArguments(n int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"text":"message %d, of sixty-four bytes in all, as in the other tables"}`, n))
}

// running returns an audit writer that stores records in the background, and a function that ends it.
func running(t testing.TB, db *store.DB, o store.AuditOptions) (a *store.AuditWriter, end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	a = db.NewAuditWriter(filepath.Join(t.TempDir(), "spool"), o)
	var running sync.WaitGroup
	running.Go(func() { _ = a.Run(ctx) })
	return a, func() {
		stop()
		running.Wait()
		check(t, a.Close(t.Context()))
	}
}

// TestBenchRecord prints what the record of a small call costs: processor time, and bytes that are written to disks.
func TestBenchRecord(t *testing.T) {
	const rounds, calls = 5, 50_000
	dir := t.TempDir()
	db := open(t, filepath.Join(dir, "store.db"))
	a, end := running(t, db, store.AuditOptions{})
	recordCalls(t, audit.NewCallLog(a, nil), 2000, smallArguments, nil)
	var with, without time.Duration
	before := written(t)
	for range rounds { // interleaved
		begin := cpu(t)
		recordCalls(t, nil, calls, smallArguments, nil)
		without += cpu(t) - begin
		begin = cpu(t)
		recordCalls(t, audit.NewCallLog(a, nil), calls, smallArguments, nil)
		check(t, a.Drain(t.Context()))
		with += cpu(t) - begin
	}
	end()
	check(t, db.Close()) // the last connection merges the log into the file
	t.Logf("CPU a call: %.1f µs", (with-without).Seconds()*1e6/(rounds*calls))
	t.Logf("written a call: %.0f bytes", float64(written(t)-before)/(rounds*calls))
	t.Logf("kept a call: %.0f bytes", float64(onDisk(t, dir))/(rounds*calls))
}

// TestBenchMillion prints what it takes to find and to verify something among a million records.
func TestBenchMillion(t *testing.T) {
	const calls = 1_000_000
	location := filepath.Join(t.TempDir(), "store.db")
	db := open(t, location)
	key := newKey(t)
	a, end := running(t, db, store.AuditOptions{Key: func(context.Context) (ed25519.PrivateKey, error) { return key, nil }})
	half := func(each int) { // one in each fails
		for range 5 {
			recordCalls(t, audit.NewCallLog(a, nil), calls/10, smallArguments, func(n int) bool { return n%each == 7 })
			check(t, a.Drain(t.Context())) // a busy machine stores slower than this loop calls
		}
	}
	half(100_000)
	rare := time.Now()
	half(100)
	end()
	find := func(what string, f store.AuditFilter) {
		begin, used := time.Now(), cpu(t)
		found, err := db.FindAudit(t.Context(), f)
		check(t, err)
		t.Logf("%s: %d found in %v, %v of CPU", what, len(found), time.Since(begin).Round(time.Millisecond),
			(cpu(t) - used).Round(time.Millisecond))
	}
	for range 2 {
		find("failed, half of the calls with 1 % failures", store.AuditFilter{Failed: true})
		find("failed, since the second half", store.AuditFilter{Failed: true, Since: rare})
		find("of a server without calls", store.AuditFilter{Server: "none"})
		find("of a caller without calls", store.AuditFilter{Caller: "nobody"})
	}
	id := lastID(t, db)
	begin := time.Now()
	stored, err := db.AuditRecordsOfCall(t.Context(), id)
	if err != nil || len(stored) == 0 {
		t.Errorf("%v, %v", stored, err)
	}
	t.Logf("one call: %v", time.Since(begin).Round(time.Microsecond))
	begin, used := time.Now(), cpu(t)
	report, err := db.VerifyAudit(t.Context(), key.Public().(ed25519.PublicKey))
	check(t, err)
	t.Logf("verify %d records: %v, %v of CPU; the store has %d bytes", report.Records,
		time.Since(begin).Round(time.Millisecond), (cpu(t) - used).Round(time.Millisecond), onDisk(t, filepath.Dir(location)))
}

func lastID(t testing.TB, db *store.DB) (id string) {
	t.Helper()
	for r, err := range db.AuditRecords(t.Context(), time.Now().Add(-time.Minute)) {
		check(t, err)
		id = r.Key
	}
	return id
}

// TestBenchLargeArguments prints the size of a store at the default limits, with calls whose arguments are large.
func TestBenchLargeArguments(t *testing.T) {
	for _, size := range []int{10_000, 100_000} {
		dir := t.TempDir()
		db := open(t, filepath.Join(dir, "store.db"))
		a, end := running(t, db, store.AuditOptions{KeepRecords: 1_000_000, KeepBytes: 768 << 20})
		random := rand.New(rand.NewPCG(1, 2))
		text := make([]byte, 1000)
		arguments := func(int) json.RawMessage {
			args := []byte(`{"a":"`)
			for len(args) < size {
				for i := range text {
					text[i] = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ.,0123456789"[random.IntN(65)]
				}
				args = append(append(args, text...), `","b":"`...)
			}
			return append(args, `"}`...)
		}
		calls, most := 0, int64(0)
		for report := (store.AuditReport{}); report.RemovedBy == "" || calls%80_000 != 0; calls += 20_000 {
			recordCalls(t, audit.NewCallLog(a, nil), 20_000, arguments, nil)
			check(t, a.Drain(t.Context()))
			most = max(most, onDisk(t, dir))
			var err error
			report, err = db.RemovalReport(t.Context())
			check(t, err)
			if calls > 1_200_000 {
				break
			}
		}
		end()
		t.Logf("%d bytes of arguments: after %d calls at most %d MB", size, calls, max(most, onDisk(t, dir))>>20)
	}
}

// TestBenchPack prints how long it takes to pack and verify a million records of an earlier release.
func TestBenchPack(t *testing.T) {
	const records = 1_000_000
	location := filepath.Join(t.TempDir(), "store.db")
	db := open(t, location)
	for n := range records / 10_000 {
		check(t, db.StoreUnpacked(t.Context(), oldRecords(5_000, time.Now().Add(time.Duration(n)*5*time.Second))))
	}
	before := onDisk(t, filepath.Dir(location))
	begin := time.Now()
	report, err := db.VerifyAudit(t.Context())
	check(t, err)
	t.Logf("verify %d records one by one: %v", report.Records, time.Since(begin).Round(time.Millisecond))
	begin = time.Now()
	used := cpu(t)
	longest, last := time.Duration(0), time.Now()
	check(t, db.PackAudit(t.Context(), func(int64) {
		longest, last = max(longest, time.Since(last)), time.Now()
	}))
	t.Logf("pack: %v, %v of CPU, the longest part %v", time.Since(begin).Round(time.Millisecond), cpu(t)-used, longest)
	begin = time.Now()
	report, err = db.VerifyAudit(t.Context())
	if err != nil || report.Records != records {
		t.Errorf("%+v, %v", report, err)
	}
	t.Logf("verify %d records in blocks: %v", report.Records, time.Since(begin).Round(time.Millisecond))
	begin = time.Now()
	found, err := db.FindAudit(t.Context(), store.AuditFilter{Failed: true})
	check(t, err)
	var size int64
	read(t, location)("SELECT SUM(size) FROM audit_blocks", &size)
	t.Logf("failed: %d found in %v; the file has %d bytes, the blocks %d", len(found), time.Since(begin), before, size)
}
