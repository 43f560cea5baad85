package secrets

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
)

// places are where the keys of all secrets are, by their names.
func placesOf(t *testing.T, v *Vault) map[string]KeyLocation {
	t.Helper()
	all, err := v.List()
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]KeyLocation{}
	for _, e := range all {
		places[e.Name] = e.KeyLocation
	}
	return places
}

func TestAKeychainThatHangsHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain := &drawer{}
		var log bytes.Buffer
		v := newVault(t, VaultOptions{Keychain: chain, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		put := func(name string, within time.Duration) {
			t.Helper()
			began := time.Now()
			if err := v.Put(name, []byte(name)); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > within {
				t.Errorf("%s took %v", name, took)
			}
		}
		hang := make(chan struct{})
		chain.change(nil, hang)
		put("first", keychainTimeout)
		put("second", 0)
		if diff := cmp.Diff(map[string]KeyLocation{"first": InFile, "second": InFile}, placesOf(t, v)); diff != "" {
			t.Error(diff)
		}
		<-time.After(2 * unavailablePause) // silence is no answer, however long
		put("third", 0)
		if n := strings.Count(log.String(), "a file does"); n != 1 {
			t.Errorf("it was logged %d times:\n%s", n, &log)
		}
		if got, want := v.DescribeProtection(), "no keychain answers here: secrets are sealed files in "+v.dir+
			" whose key lies beside them: who can read your files can read them"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}

		chain.change(nil, nil)
		close(hang) // the person has typed the password at last
		synctest.Wait()
		put("fourth", 0)
		if got := placesOf(t, v)["fourth"]; got != InKeychain {
			t.Errorf("with an answer it goes to the %s", got)
		}
		if got, want := v.DescribeProtection(), "secrets are sealed files in "+v.dir+
			" whose key is in the keychain of this system"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestAKeychainThatIsAway: what it has the key of is not to be had and not lost, and what is put meanwhile is.
func TestAKeychainThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain := &drawer{}
		v := newVault(t, VaultOptions{Keychain: chain})
		if err := v.Put("a", []byte("x")); err != nil {
			t.Fatal(err)
		}
		chain.change(errors.New("locked"), nil)
		other := again(t, v, VaultOptions{Keychain: chain})
		if _, err := other.Get("a"); !errors.Is(err, ErrKeychainUnavailable) || errors.Is(err, ErrNotFound) ||
			!strings.Contains(err.Error(), "locked") {
			t.Errorf("error %v", err)
		}
		if got, err := v.Get("a"); string(got) != "x" || err != nil {
			t.Errorf("who has the key needs no keychain: %q, %v", got, err)
		}
		if err := other.Put("b", []byte("y")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]KeyLocation{"a": InKeychain, "b": InFile}, placesOf(t, v)); diff != "" {
			t.Error(diff)
		}
		chain.change(nil, nil)
		if _, err := other.Get("a"); !errors.Is(err, ErrKeychainUnavailable) {
			t.Errorf("it is asked again at once: %v", err)
		}
		<-time.After(unavailablePause)
		for name, want := range map[string]string{"a": "x", "b": "y"} {
			if got, err := other.Get(name); string(got) != want || err != nil {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		off := again(t, v, VaultOptions{NoKeychain: true})
		if _, err := off.Get("a"); !errors.Is(err, ErrKeychainUnavailable) ||
			err.Error() != `read secret "a": the keychain is away: it is turned off` {
			t.Errorf("error %v", err)
		}
		if got, want := off.DescribeProtection(), "the keychain is turned off: secrets are sealed files in "+v.dir+
			" whose key lies beside them: who can read your files can read them"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAKeychainThatLosesTheKey(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(kept map[string]string)
		why    string
	}{
		"it is deleted": {func(kept map[string]string) { clear(kept) }, "the keychain has lost its key"},
		"it is changed": {func(kept map[string]string) { set(kept, "hunter2") },
			"the keychain has another key"},
		"it is another's": {func(kept map[string]string) { set(kept, anotherKey()) },
			"the keychain has another key"},
	} {
		t.Run(name, func(t *testing.T) {
			chain := &drawer{}
			v := newVault(t, VaultOptions{Keychain: chain})
			if err := v.Put("a", []byte("x")); err != nil {
				t.Fatal(err)
			}
			tt.change(chain.kept)
			v = again(t, v, VaultOptions{Keychain: chain})
			_, err := v.Get("a")
			if want := `read secret "a": secret not found: ` + tt.why; !errors.Is(err, ErrNotFound) ||
				err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
			if err := v.Put("a", []byte("y")); err != nil {
				t.Fatal(err)
			}
			if got, err := again(t, v, VaultOptions{Keychain: chain}).Get("a"); string(got) != "y" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// anotherKey makes a key that is nobody's.
func anotherKey() string {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		panic(err)
	}
	return key.String()
}

func set(kept map[string]string, value string) {
	for name := range kept {
		kept[name] = value
	}
}

// An oddity is a keychain that does not do what it should.
type oddity struct {
	Keychain
	set func(name, value string) error
}

func (o oddity) Set(name, value string) error { return o.set(name, value) }

func TestAKeychainThatDoesNotKeepTheKey(t *testing.T) {
	for name, set := range map[string]func(name, value string) error{
		"it forgets":          func(string, string) error { return nil },
		"it repeats the key":  func(_, value string) error { return errors.New(value) },
		"it falls over":       func(string, string) error { panic("a bool was expected") },
		"it is of two minds":  func(_, value string) error { return errors.Join(ErrNotFound, errors.New(value)) },
		"it has nothing here": func(string, string) error { return ErrNotFound },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			v := newVault(t, VaultOptions{Keychain: oddity{&drawer{}, set},
				Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err := v.Put("a", []byte("x")); err != nil {
				t.Fatal(err)
			}
			if got, err := v.Get("a"); string(got) != "x" || err != nil || placesOf(t, v)["a"] != InFile {
				t.Errorf("%q, %v, %v", got, err, placesOf(t, v))
			}
			if strings.Contains(log.String(), "AGE-SECRET") || !strings.Contains(log.String(), "a file does") {
				t.Errorf("log:\n%s", &log)
			}
			if _, err := os.Stat(filepath.Join(v.dir, publicKeyFile)); err == nil {
				t.Error("there is a public half of a key that nobody has")
			}
		})
	}
}

func TestWithoutABusNoneIsStarted(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "autolaunch:")
	t.Setenv("PATH", t.TempDir())
	if err := checkSessionBus(); err == nil {
		t.Skip("there is a session bus here")
	}
	for name, ask := range map[string]func(Keychain) error{
		"get":    func(k Keychain) error { _, err := k.Get("a"); return err },
		"set":    func(k Keychain) error { return k.Set("a", "b") },
		"delete": func(k Keychain) error { return k.Delete("a") },
	} {
		if err := ask(systemKeychain{reachable: checkSessionBus}); err == nil ||
			err.Error() != "no session bus" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
