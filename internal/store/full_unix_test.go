//go:build unix

package store_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// fullName is the name of a test binary that is to write until there is no more room.
const fullName = "store-full"

// noRoom is what one file of such a process may become, in bytes.
const noRoom = 512 << 10

// canLimitFiles reports whether limitFiles works on this system.
const canLimitFiles = true

// limitFiles limits the size of each file that the process writes to a size in bytes. To write more is an error then, as on a
// full disk.
func limitFiles(size uint64) error {
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: size})
}

// full appends to the ledger and to the record of calls, where no file may become longer than noRoom, until each has
// said no three times. It prints what was taken.
func full(args []string) int {
	ctx := context.Background()
	err := func() error {
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		db, err := store.Open(ctx, args[0], store.Options{})
		if err != nil {
			return err
		}
		if err := limitFiles(noRoom); err != nil {
			return err
		}
		records := db.NewAuditWriter(args[1], store.AuditOptions{})
		for refused, i := 0, 0; refused < 3; i++ {
			r := called(strconv.Itoa(i))[0]
			r.Card = strings.Repeat("x", 4000)
			if err := records.Record(r); err != nil {
				fmt.Println("refused", err)
				refused++
				continue
			}
			fmt.Println("recorded", r.ID)
		}
		for refused, i := 0, 0; refused < 3; i++ {
			stored, err := db.Append(ctx, "deck", []ledger.Entry{storetest.NewEnrolment("up", fmt.Sprintf("tool_%d_%s",
				i, strings.Repeat("x", 4000)))})
			if err != nil {
				fmt.Println("refused", err)
				refused++
				continue
			}
			fmt.Println("appended", stored[0].Seq)
		}
		return nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestNoRoomIsSaidAndNothingIsLost has a process write to a disk that is full, so to say: what it was told is kept is
// there when the store is opened again, and what there was no room for was refused.
func TestNoRoomIsSaidAndNothingIsLost(t *testing.T) {
	location, dir := filepath.Join(t.TempDir(), "store.db"), filepath.Join(t.TempDir(), "spool")
	p := newChild(t, fullName, location, dir)
	p.start.Close()
	recorded, appended, refused := map[string]bool{}, uint64(0), 0
	for p.said.Scan() {
		word, rest, _ := strings.Cut(p.said.Text(), " ")
		switch word {
		case "recorded":
			recorded[rest] = true
		case "appended":
			n, err := strconv.ParseUint(rest, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			appended = n
		case "refused":
			refused++
		}
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if refused != 6 || len(recorded) < 10 || appended == 0 {
		t.Fatalf("%d were refused, %d recorded, %d appended", refused, len(recorded), appended)
	}
	if n := checkJournal(t, location); n != appended {
		t.Errorf("the ledger has %d entries, and %d were acknowledged", n, appended)
	}
	db := open(t, location)
	if err := db.NewAuditWriter(dir, store.AuditOptions{}).RecoverOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, all := auditOf(t, db)
	for id := range recorded {
		if all[id].Kind != audit.Call {
			t.Fatalf("call %s was recorded, and the audit has %+v", id, all[id])
		}
	}
}
