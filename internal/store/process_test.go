package store_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/storetest"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// childName is the name of a test binary that is to be a process with a store of its own.
const childName = "store-child"

// child waits until its standard input ends, opens the store at a location, and appends so many batches of so many
// entries to the stream "deck". It prints the place of each batch's last entry as soon as the store has acknowledged
// it.
func child(args []string) int {
	err := func() error {
		location := args[0]
		batches, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		size, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		ctx := context.Background()
		db, err := store.Open(ctx, location, store.Options{})
		if err != nil {
			return err
		}
		for i := range batches {
			var batch []ledger.Entry
			for n := range size {
				batch = append(batch, storetest.NewEnrolment(drawbridge.ServerID(fmt.Sprint("p", os.Getpid())),
					fmt.Sprintf("tool_%d_%d", i, n)))
			}
			stored, err := db.Append(ctx, "deck", batch)
			if err != nil {
				return err
			}
			fmt.Println(stored[size-1].Seq)
		}
		return db.Close()
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A process is a child that waits for its start.
type process struct {
	*exec.Cmd
	start io.Closer
	said  *bufio.Scanner
}

func newProcess(t *testing.T, location string, batches, size int) process {
	t.Helper()
	return newChild(t, childName, location, fmt.Sprint(batches), fmt.Sprint(size))
}

// newChild starts the test binary as another program, by the name that its arguments begin with.
func newChild(t *testing.T, args ...string) process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = args
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return process{cmd, stdin, bufio.NewScanner(stdout)}
}

// acknowledged reads up to n acknowledgements and adds what they say to all.
func (p process) acknowledged(t *testing.T, n int, all map[uint64]bool) {
	t.Helper()
	for ; n > 0 && p.said.Scan(); n-- {
		seq, err := strconv.ParseUint(p.said.Text(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if all[seq] {
			t.Errorf("the place %d was given twice", seq)
		}
		all[seq] = true
	}
}

// checkJournal verifies the journal and gives how many entries it has.
func checkJournal(t *testing.T, location string) uint64 {
	t.Helper()
	db := open(t, location)
	if err := ledger.VerifyChains(db.LedgerRecords(t.Context(), "deck")); err != nil {
		t.Error("verify:", err)
	}
	entries, err := db.Replay(t.Context(), "deck")
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		if e.Seq != uint64(i+1) {
			t.Fatalf("entry %d has the place %d", i+1, e.Seq)
		}
	}
	return uint64(len(entries))
}

// TestProcessesShareAStore lets processes open, make and migrate a store at one moment, and append to one stream.
func TestProcessesShareAStore(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		const processes, appends = 4, 200
		var all []process
		for range processes {
			all = append(all, newProcess(t, location, appends, 1))
		}
		for _, p := range all {
			p.start.Close()
		}
		given := map[uint64]bool{}
		for _, p := range all {
			p.acknowledged(t, appends, given)
			if err := p.Wait(); err != nil {
				t.Error(err)
			}
		}
		if n := checkJournal(t, location); n != processes*appends || len(given) != processes*appends {
			t.Errorf("%d entries and %d acknowledged, want %d", n, len(given), processes*appends)
		}
	})
}

// TestProcessesMakeAStore is the first moment of the same, many times over.
func TestProcessesMakeAStore(t *testing.T) {
	for round := range 5 {
		location := filepath.Join(t.TempDir(), fmt.Sprint(round), "store.db")
		var all []process
		for range 4 {
			all = append(all, newProcess(t, location, 1, 1))
		}
		for _, p := range all {
			p.start.Close()
		}
		given := map[uint64]bool{}
		for _, p := range all {
			p.acknowledged(t, 1, given)
			if err := p.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		if n := checkJournal(t, location); n != 4 {
			t.Errorf("%d entries, want 4", n)
		}
	}
}

// TestKilledProcessesLoseNothing kills processes at random points: while they make the store, and while they append.
// What they had acknowledged is there, and batches are there whole.
func TestKilledProcessesLoseNothing(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		const rounds, size = 8, 3
		given := map[uint64]bool{}
		for round := range rounds {
			p := newProcess(t, location, 1_000_000, size)
			p.start.Close()
			if round > 0 { // the first dies while it opens
				p.acknowledged(t, rand.IntN(30), given)
			}
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.acknowledged(t, 1_000_000, given) // what it said before it died
			_ = p.Wait()                        // it was killed
			n := checkJournal(t, location)
			for seq := range given {
				if seq > n {
					t.Fatalf("round %d: %d was acknowledged, and there are %d", round, seq, n)
				}
			}
			if n%size != 0 {
				t.Fatalf("round %d: %d entries: a batch of %d is there in part", round, n, size)
			}
		}
		if len(given) == 0 {
			t.Error("no process got to append anything")
		}
	})
}
