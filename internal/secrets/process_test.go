//go:build unix

package secrets

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// roleVariable names what the test binary does when a test starts it again, in the directory of its argument.
const roleVariable = "SECRETS_ROLE"

func TestMain(m *testing.M) {
	role := map[string]func(*Vault) error{"count": count, "write": writeOn, "hold": holdOn,
		"keyring": useKeyring}[os.Getenv(roleVariable)]
	if role == nil {
		os.Exit(m.Run())
	}
	v, err := OpenVault(os.Args[1], VaultOptions{NoKeychain: os.Getenv(roleVariable) != "keyring"})
	if err == nil {
		err = role(v)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// become is a command that starts the test binary again.
func become(ctx context.Context, t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, dir)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	return cmd
}

const counts = 200

// count adds to a number that the vault has, in several goroutines.
func count(v *Vault) error {
	errs := make([]error, 4)
	var work sync.WaitGroup
	for i := range errs {
		work.Go(func() {
			for range counts / len(errs) {
				if errs[i] = addOne(v); errs[i] != nil {
					return
				}
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

func addOne(v *Vault) error {
	unlock, err := v.Lock(context.Background(), "number")
	if err != nil {
		return err
	}
	defer unlock()
	text, err := v.Get("number")
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	n, _ := strconv.Atoi(string(text))
	return v.Put("number", []byte(strconv.Itoa(n+1)))
}

func TestOneHolderAmongProcesses(t *testing.T) {
	v := newVault(t, VaultOptions{NoKeychain: true})
	var others []*exec.Cmd
	for range 2 {
		cmd := become(t.Context(), t, "count", v.dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		others = append(others, cmd)
	}
	if err := count(v); err != nil {
		t.Error(err)
	}
	for _, cmd := range others {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if got, err := v.Get("number"); string(got) != strconv.Itoa(3*counts) || err != nil {
		t.Errorf("counted to %s, %v; want %d", got, err, 3*counts)
	}
}

// writeOn puts values without end, each of one letter, and says when the first one is there.
func writeOn(v *Vault) error {
	for i := 0; ; i++ {
		if err := v.Put("text", []byte(strings.Repeat(string(rune('a'+i%26)), 1+i%3000))); err != nil {
			return err
		}
		if i == 0 {
			fmt.Println("put")
		}
	}
}

// TestKilledWhileItPuts kills a writer, at once and later: the vault has the old value or a new one, and takes another.
func TestKilledWhileItPuts(t *testing.T) {
	for round := range 24 {
		v := newVault(t, VaultOptions{NoKeychain: true})
		before := ""
		if round%2 == 1 {
			before = "before"
			if err := v.Put("text", []byte(before)); err != nil {
				t.Fatal(err)
			}
		}
		cmd := become(t.Context(), t, "write", v.dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if round%4 < 2 {
			if line, _ := bufio.NewReader(out).ReadString('\n'); line != "put\n" {
				t.Fatalf("it said %q", line)
			}
		} else {
			awaitDir(t, v.dir)
		}
		<-time.After(time.Duration(round) * 700 * time.Microsecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		got, err := v.Get("text")
		whole := len(got) > 0 && strings.Count(string(got), string(got[:1])) == len(got)
		switch {
		case errors.Is(err, ErrNotFound) && before == "" && round%4 >= 2:
		case err == nil && (string(got) == before && before != "" || whole):
		default:
			t.Fatalf("round %d: %q, %v", round, got, err)
		}
		if err := v.Put("text", []byte("after")); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if left, _ := filepath.Glob(filepath.Join(v.dir, "*.damaged")); len(left) > 0 {
			t.Errorf("round %d: %q", round, left)
		}
	}
}

// awaitDir waits until a process has made something in a directory.
func awaitDir(t *testing.T, dir string) {
	t.Helper()
	for {
		if files, _ := os.ReadDir(dir); len(files) > 0 {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("nothing came")
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// holdOn takes a lock and keeps it.
func holdOn(v *Vault) error {
	if _, err := v.Lock(context.Background(), "a"); err != nil {
		return err
	}
	fmt.Println("locked")
	select {}
}

func TestALockEndsWithItsProcess(t *testing.T) {
	v := newVault(t, VaultOptions{NoKeychain: true})
	cmd := become(t.Context(), t, "hold", v.dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("it said %q", line)
	}
	brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := v.Lock(brief, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it is held: %v", err)
	}
	if unlock, err := v.Lock(t.Context(), "b"); err != nil {
		t.Error(err)
	} else {
		unlock()
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	unlock, err := v.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Lock(brief, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while we hold it: %v", err)
	}
	unlock()
	unlock()
	if unlock, err = v.Lock(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// useKeyring is TestSecretService on the inside: of a bus of its own with a keyring at it.
func useKeyring(v *Vault) error {
	if err := v.Put("a", []byte("hunter2")); err != nil {
		return err
	}
	all, err := v.List()
	if err != nil || len(all) != 1 || all[0].KeyLocation != InKeychain {
		return fmt.Errorf("%v, %v: %s", all, err, v.DescribeProtection())
	}
	other, err := OpenVault(v.dir, VaultOptions{})
	if err != nil {
		return err
	}
	if got, err := other.Get("a"); string(got) != "hunter2" || err != nil {
		return fmt.Errorf("%q, %v", got, err)
	}
	if err := (systemKeychain{checkSessionBus}).Set("MINE", "theirs"); err != nil {
		return err
	}
	if got, err := other.UserSecrets().Get("MINE"); string(got) != "theirs" || err != nil {
		return fmt.Errorf("%q, %v", got, err)
	}
	if err := (systemKeychain{checkSessionBus}).Delete("MINE"); err != nil {
		return err
	}
	if _, err := other.UserSecrets().Get("MINE"); !errors.Is(err, ErrNotFound) {
		return err
	}
	if err := (systemKeychain{checkSessionBus}).Delete("MINE"); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// TestSecretService uses a real keyring, on a bus and in a home of its own.
func TestSecretService(t *testing.T) {
	for _, program := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("there is no ", program)
		}
	}
	home := t.TempDir()
	inside := become(t.Context(), t, "keyring", filepath.Join(home, "vault"))
	script := `printf pass | gnome-keyring-daemon --unlock --components=secrets >/dev/null && exec "$@"`
	cmd := exec.CommandContext(t.Context(), "dbus-run-session", append([]string{"--", "sh", "-c", script, "sh"},
		inside.Args...)...)
	cmd.Env = append(inside.Env, "HOME="+home, "XDG_DATA_HOME="+home, "XDG_RUNTIME_DIR="+home, "XDG_CONFIG_HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
