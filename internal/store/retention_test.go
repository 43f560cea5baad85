package store_test

import (
	"bytes"
	"crypto/rand"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// A start is one process that opens the store, records one call, prunes, and ends.
type start struct {
	// process and clock are how far the process clock and the store's clock are ahead.
	process, clock time.Duration
	keep           time.Duration
	keepRecords    uint64
}

// run makes the start and returns what it logged.
func (s start) run(t *testing.T, location string) string {
	t.Helper()
	db := open(t, location)
	defer db.Close()
	db.SetClockAhead(s.clock)
	var log bytes.Buffer
	a := db.NewAuditWriter(t.TempDir(), store.AuditOptions{
		KeepFor: s.keep, KeepRecords: s.keepRecords, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Now: func() time.Time { return time.Now().Add(s.process) },
	})
	record(t, a, rand.Text())
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

// both is a start of a process on a machine whose clock, which is the store's too, is so far ahead.
func both(ahead time.Duration) start { return start{process: ahead, clock: ahead, keep: 90 * day} }

// countKept returns how many records of calls and how many notes the audit has.
func countKept(t *testing.T, location string) (calls, others int) {
	t.Helper()
	db := open(t, location)
	defer db.Close()
	for _, r := range recordsOf(t, db) {
		if r.Kind == audit.Note {
			others++
		} else {
			calls++
		}
	}
	if _, err := db.VerifyAudit(t.Context()); err != nil {
		t.Errorf("verify: %v", err)
	}
	return calls, others
}

func wantKept(t *testing.T, location, when string, calls, notes int) {
	t.Helper()
	if c, n := countKept(t, location); c != calls || n != notes {
		t.Errorf("%s: %d records of calls and %d notes, want %d and %d", when, c, n, calls, notes)
	}
}

// TestProcessClockAheadPrunesNothing has a process whose clock is 100 days ahead of the store's prune the audit that
// others share.
func TestProcessClockAheadPrunesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		fill := start{keep: 90 * day}
		for range 3 {
			fill.run(t, location)
		}
		for _, process := range []time.Duration{100 * day, -100 * day, 6 * time.Minute} {
			log := start{process: process, keep: time.Nanosecond}.run(t, location)
			if !strings.Contains(log, "level=WARN") || !strings.Contains(log, "clock") {
				t.Errorf("clock off by %v: logged %q", process, log)
			}
		}
		wantKept(t, location, "clocks that differ", 12, 0)
		// How many records are kept does not depend on a clock.
		start{process: 100 * day, keep: 90 * day, keepRecords: 5}.run(t, location)
		wantKept(t, location, "a number of records", 6, 0) // a block of two is removed whole, or stays
	})
}

func TestStoreClockDecidesAge(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		for n := range 97 {
			if log := both(time.Duration(n)*23*time.Hour).run(t, location); log != "" {
				t.Errorf("start %d: logged %s", n, log)
			}
		}
		wantKept(t, location, "92 days", 188, 0) // all but those of the first two days
	})
}

// TestStoreThatIsSeldomUsed has a process start once a week: no record stays more than a week longer than the others,
// and no warning is logged.
func TestStoreThatIsSeldomUsed(t *testing.T) {
	location := filepath.Join(t.TempDir(), "store.db")
	for n := range 30 {
		if log := both(time.Duration(n)*7*day).run(t, location); log != "" {
			t.Errorf("week %d: logged %s", n, log)
		}
		most := 2 * min(n+1, 14)
		if calls, notes := countKept(t, location); calls < most-2 || calls > most || notes != 0 {
			t.Errorf("week %d: %d records of calls and %d notes are left", n, calls, notes)
		}
	}
}

// TestClockJumpPrunesNothing has the clock of the store and of the process jump ahead together, as the clock of a
// machine with a SQLite file does.
func TestClockJumpPrunesNothing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		starts []start
		calls  int
		notes  int
		warns  bool // the last start
	}{
		{"one start", []start{both(10 * year)}, 4, 1, true},
		{"a start soon after", []start{both(10 * year), both(10*year + time.Minute)}, 6, 1, true},
		{"two starts an hour apart", []start{both(10 * year), both(10*year + time.Hour)}, 4, 1, false},
		{"a start after a clock that was put right", []start{both(10 * year), both(time.Hour),
			both(10*year + time.Hour)}, 8, 2, true},
		{"a start two months later", []start{both(10 * year), both(10*year + 60*day)}, 6, 2, true},
		{"another jump", []start{both(year), both(10 * year)}, 6, 2, true},
		{"nothing is too old", []start{both(30 * day), both(60 * day)}, 6, 0, false},
		{"a day more", []start{both(30 * day), both(60 * day), both(90*day + 30*time.Minute), both(91 * day)}, 8, 1,
			false},
		{"behind", []start{both(-10 * year)}, 4, 1, true},
		{"behind, then right", []start{both(-10 * year), both(0)}, 6, 1, false},
		{"two starts behind", []start{both(-10 * year), both(-10*year + time.Hour)}, 6, 1, false},
		{"two starts behind, then right", []start{both(-10 * year), both(-10*year + time.Hour), both(0)}, 8, 1, false},
		{"two days behind", []start{both(-2 * day)}, 4, 1, true},
		{"behind, then ahead", []start{both(-10 * year), both(10 * year)}, 6, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			location := filepath.Join(t.TempDir(), "store.db")
			both(0).run(t, location)
			var log string
			for _, s := range tt.starts {
				log = s.run(t, location)
			}
			if warns := strings.Contains(log, "level=WARN"); warns != tt.warns {
				t.Errorf("the last start logged %q", log)
			}
			wantKept(t, location, "at the end", tt.calls, tt.notes)
		})
	}
}

// TestStoreOfBeforeKeepsItsAudit opens a store that was written before the time of the last pruning was kept.
func TestStoreOfBeforeKeepsItsAudit(t *testing.T) {
	for _, old := range oldStores {
		location := old.unpack(t)
		if log := both(10*year).run(t, location); !strings.Contains(log, "level=WARN") {
			t.Errorf("%s: logged %q", old.file, log)
		}
		wantKept(t, location, "a clock that is ahead at the first start", int(old.auditRecords)+2, 1)
	}
}
