package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
)

func TestAccounts(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		change := func(kind, name, add string) error {
			return db.UpdateAccount(t.Context(), kind, name, func(body []byte, now time.Time) ([]byte, error) {
				if since := time.Since(now); since.Abs() > time.Hour || now.Location() != time.UTC {
					t.Errorf("the database's time is %v", now)
				}
				if add == "" {
					return nil, errors.New("not now")
				}
				return append(body, add...), nil
			})
		}
		for _, c := range [][3]string{{"calls", "ada", "a"}, {"calls", "ada", "b"}, {"calls", "bob", "c"},
			{"trust", "ada", "d"}} {
			if err := change(c[0], c[1], c[2]); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"ada", "eve"} {
			if err := change("calls", name, ""); err == nil || err.Error() != "not now" {
				t.Errorf("a change that was given up: %v", err)
			}
		}
		if err := open(t, location).UpdateAccount(t.Context(), "calls", "ada",
			func(body []byte, _ time.Time) ([]byte, error) {
				return append(body, '+'), nil
			}); err != nil {
			t.Fatal(err)
		}
		got, err := db.Accounts(t.Context(), "calls")
		if diff := cmp.Diff(map[string][]byte{"ada": []byte("ab+"), "bob": []byte("c")}, got); diff != "" ||
			err != nil {
			t.Errorf("%v, accounts (-want +got):\n%s", err, diff)
		}
		for name, want := range map[string]string{"ada": "ab+", "eve": ""} {
			if body, err := db.Account(t.Context(), "calls", name); err != nil || string(body) != want {
				t.Errorf("the account of %s: %q, %v", name, body, err)
			}
		}
	})
}

// TestAccountsOfAStoreThatIsGone sees that nothing is counted there, and that it is said.
func TestAccountsOfAStoreThatIsGone(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "store.db"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	err := db.UpdateAccount(t.Context(), "calls", "ada", func([]byte, time.Time) ([]byte, error) {
		t.Error("there was a count")
		return nil, nil
	})
	if _, ok := errors.AsType[*drawbridge.Fault](err); !ok {
		t.Error(err)
	}
}

// spenderName is the name of a test binary that is to be a process which spends a quota.
const spenderName = "store-spender"

// errSpent ends a spender: as many calls as there are were counted.
var errSpent = errors.New("spent")

// spender waits until its standard input ends, and counts calls in an account until args[1] calls were counted. It
// prints each count as soon as the store has acknowledged it.
func spender(args []string) int {
	err := func() error {
		most, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		ctx := context.Background()
		db, err := store.Open(ctx, args[0], store.Options{})
		if err != nil {
			return err
		}
		for {
			var used int
			err := db.UpdateAccount(ctx, "calls", "ada", func(body []byte, _ time.Time) ([]byte, error) {
				before, err := strconv.Atoi("0" + string(body)) // a new account is empty
				switch {
				case err != nil:
					return nil, err
				case before >= most:
					return nil, errSpent
				}
				used = before + 1
				return []byte(strconv.Itoa(used)), nil
			})
			if errors.Is(err, errSpent) {
				return db.Close()
			}
			if err != nil {
				return err
			}
			fmt.Println(used)
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestProcessesNeverOverdraw lets processes spend one quota at once, kills some of them in the midst of it, and sees
// that each call was given once and no more than there were; of those that a dying process took, at most one was not
// heard of.
func TestProcessesNeverOverdraw(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		const most, killed, others = 120, 2, 2
		given := map[uint64]bool{}
		var all []process
		for range killed + others {
			all = append(all, newChild(t, spenderName, location, fmt.Sprint(most)))
		}
		for _, p := range all {
			p.start.Close()
		}
		for i, p := range all {
			if i < killed {
				p.acknowledged(t, 5, given)
				if err := p.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			p.acknowledged(t, most, given) // what a killed one said before it died, too
			if err := p.Wait(); err != nil && i >= killed {
				t.Error(err)
			}
		}
		if len(given) > most || len(given) < most-killed {
			t.Errorf("%d calls were given of %d", len(given), most)
		}
		for n := range given {
			if n > most {
				t.Errorf("the call %d of %d was given", n, most)
			}
		}
		body, err := open(t, location).Account(t.Context(), "calls", "ada")
		if err != nil {
			t.Fatal(err)
		}
		if string(body) != strconv.Itoa(most) {
			t.Errorf("%s calls were counted at the end, want %d", body, most)
		}
	})
}

func BenchmarkChange(b *testing.B) {
	db := open(b, filepath.Join(b.TempDir(), "store.db"))
	for b.Loop() {
		err := db.UpdateAccount(b.Context(), "calls", "ada", func([]byte, time.Time) ([]byte,
			error) {
			return []byte("x"), nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
