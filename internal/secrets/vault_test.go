package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zalando/go-keyring"
)

// A drawer is a keychain in memory.
type drawer struct {
	mu   sync.Mutex
	kept map[string]string
	err  error         // what it answers instead
	hang chan struct{} // what it waits for
}

// An inTurn asks a keychain one thing at a time: the library's mock, other than any real keychain, is a bare map.
type inTurn struct {
	mu sync.Mutex
	of Keychain
}

func (k *inTurn) Get(name string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of.Get(name)
}

func (k *inTurn) Set(name, value string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of.Set(name, value)
}

func (k *inTurn) Delete(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of.Delete(name)
}

func (d *drawer) ask(act func() error) error {
	d.mu.Lock()
	err, hang := d.err, d.hang
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept == nil {
		d.kept = map[string]string{}
	}
	return act()
}

func (d *drawer) Get(name string) (value string, err error) {
	err = d.ask(func() error {
		var ok bool
		if value, ok = d.kept[name]; !ok {
			return ErrNotFound
		}
		return nil
	})
	return value, err
}

func (d *drawer) Set(name, value string) error {
	return d.ask(func() error { d.kept[name] = value; return nil })
}

func (d *drawer) Delete(name string) error {
	return d.ask(func() error {
		if _, ok := d.kept[name]; !ok {
			return ErrNotFound
		}
		delete(d.kept, name)
		return nil
	})
}

func (d *drawer) change(err error, hang chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err, d.hang = err, hang
}

// here is a session bus that can be reached.
func here() error { return nil }

// newVault opens a vault in a directory that is not there yet.
func newVault(t *testing.T, o VaultOptions) *Vault {
	t.Helper()
	v, err := OpenVault(filepath.Join(t.TempDir(), "state", "vault"), o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// again is the same vault as another process sees it.
func again(t *testing.T, v *Vault, o VaultOptions) *Vault {
	t.Helper()
	other, err := OpenVault(v.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// TestVault runs everything a vault promises with each kind of keychain.
func TestVault(t *testing.T) {
	for name, tt := range map[string]struct {
		options func() VaultOptions
		place   KeyLocation
	}{
		"a keychain":     {func() VaultOptions { return VaultOptions{Keychain: &drawer{}} }, InKeychain},
		"one turned off": {func() VaultOptions { return VaultOptions{NoKeychain: true} }, InFile},
		"one not there": {func() VaultOptions { return VaultOptions{Keychain: &drawer{err: errors.New("no bus")}} },
			InFile},
		"the library's mock": {func() VaultOptions {
			keyring.MockInit()
			return VaultOptions{Keychain: &inTurn{of: systemKeychain{here}}}
		}, InKeychain},
		"the library's mock of one that is not there": {func() VaultOptions {
			keyring.MockInitWithError(keyring.ErrUnsupportedPlatform)
			return VaultOptions{Keychain: systemKeychain{here}}
		}, InFile},
	} {
		t.Run(name, func(t *testing.T) {
			o := tt.options()
			keepsWhatItIsGiven(t, newVault(t, o), o, tt.place)
			showsNothing(t, newVault(t, o))
			stamps(t, newVault(t, o))
			manyAtOnce(t, newVault(t, o))
		})
	}
}

func keepsWhatItIsGiven(t *testing.T, v *Vault, o VaultOptions, place KeyLocation) {
	t.Helper()
	if all, err := v.List(); all != nil || err != nil {
		t.Errorf("before anything is put: %v, %v", all, err)
	}
	if _, err := v.Get("a"); !errors.Is(err, ErrNotFound) || err.Error() != `read secret "a": secret not found` {
		t.Errorf("before anything is put: %v", err)
	}
	if err := v.Delete("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("before anything is put: %v", err)
	}
	if _, err := os.Stat(v.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before anything is put there is a directory: %v", err)
	}
	values := map[string]string{
		"signin/github-1a2b3c4d": `{"access_token": "hunter2"}`, "value/GITHUB_TOKEN": "x",
		"VALUE/github_token": "another",
		"../../etc/passwd":   "\x00\xff\n", "with a blank and é": "",
		"big": strings.Repeat("0123456789abcdef", maxSecret/16),
	}
	var want []SecretInfo
	for name, value := range values {
		if err := v.Put(name, []byte("what was before")); err != nil {
			t.Fatal(err)
		}
		if err := v.Put(name, []byte(value)); err != nil {
			t.Fatal(err)
		}
		want = append(want, SecretInfo{Name: name, KeyLocation: place})
	}
	slices.SortFunc(want, func(a, b SecretInfo) int { return strings.Compare(a.Name, b.Name) })
	for _, reader := range []*Vault{v, again(t, v, o)} {
		for name, value := range values {
			if got, err := reader.Get(name); string(got) != value || err != nil {
				t.Errorf("%q: got %d bytes of %d, %v", name, len(got), len(value), err)
			}
		}
		all, err := reader.List()
		if diff := cmp.Diff(want, all, cmpopts.IgnoreFields(SecretInfo{}, "Changed")); diff != "" || err != nil {
			t.Errorf("%v, list (-want +got):\n%s", err, diff)
		}
	}
	if err := v.Delete("big"); err != nil {
		t.Error(err)
	}
	if _, err := again(t, v, o).Get("big"); !errors.Is(err, ErrNotFound) {
		t.Errorf("what was deleted: %v", err)
	}
	for name, value := range map[string][]byte{
		"": nil, "a\nb": nil, "\xff": nil, strings.Repeat("n", maxName+1): nil, "too big": make([]byte, maxSecret+1),
	} {
		if v.Put(name, value) == nil {
			t.Errorf("%d bytes were put under a name of %d", len(value), len(name))
		}
	}
}

// showsNothing checks that no file has a value in it, and that nobody but the user may read one.
func showsNothing(t *testing.T, v *Vault) {
	t.Helper()
	const canary = "canary-0123456789-canary"
	if err := os.MkdirAll(v.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := v.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := v.Put("a", []byte(canary)); err != nil {
		t.Fatal(err)
	}
	forms := []string{canary, hex.EncodeToString([]byte(canary)),
		strings.Trim(base64.StdEncoding.EncodeToString([]byte(canary)), "=")}
	files := 0
	err = filepath.WalkDir(v.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		if entry.IsDir() {
			return nil
		}
		files++
		data, err := os.ReadFile(path)
		for _, form := range forms {
			if bytes.Contains(data, []byte(form)) || strings.Contains(path, form) {
				t.Errorf("%s has the value in it", path)
			}
		}
		return err
	})
	if err != nil || files < 4 { // the value, a key or its half, and two locks
		t.Errorf("%d files, %v", files, err)
	}
}

func stamps(t *testing.T, v *Vault) {
	t.Helper()
	if got := v.Stamp("a"); got != "" {
		t.Errorf("the stamp of nothing is %q", got)
	}
	seen := map[string]bool{}
	for i := range 20 {
		if err := v.Put("a", []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		s := v.Stamp("a")
		if seen[s] || s == "" || s != v.Stamp("a") {
			t.Errorf("put %d: the stamp %q is not new, or does not stay", i, s)
		}
		seen[s] = true
	}
	if err := v.Delete("a"); err != nil || v.Stamp("a") != "" {
		t.Errorf("deleted: %q, %v", v.Stamp("a"), err)
	}
}

func manyAtOnce(t *testing.T, v *Vault) {
	t.Helper()
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			name := fmt.Sprint("name ", i%3)
			if err := v.Put(name, []byte(name)); err != nil {
				t.Error(err)
			}
			if got, err := v.Get(name); string(got) != name || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	work.Wait()
}

// TestOneKeyOfAll: of several that put something first at the same time, one makes the key.
func TestOneKeyOfAll(t *testing.T) {
	chain := &drawer{}
	first := newVault(t, VaultOptions{Keychain: chain})
	var work sync.WaitGroup
	for i := range 8 {
		v := again(t, first, VaultOptions{Keychain: chain})
		work.Go(func() {
			if err := v.Put(fmt.Sprint(i), []byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	for i := range 8 {
		if got, err := first.Get(fmt.Sprint(i)); string(got) != "x" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if len(chain.kept) != 1 {
		t.Errorf("the keychain has %d keys", len(chain.kept))
	}
}

func TestADamagedRecord(t *testing.T) {
	sealed := func(v *Vault, change func(*secretRecord)) []byte {
		rec, err := v.readRecord(v.recordPath("a"), "a")
		if err != nil {
			t.Fatal(err)
		}
		change(&rec)
		return rec.encode()
	}
	for name, tt := range map[string]struct {
		data func(v *Vault) []byte
		why  string
	}{
		"empty": {func(*Vault) []byte { return nil }, "it is not as it was written"},
		"cut off": {func(v *Vault) []byte { return sealed(v, func(*secretRecord) {})[:50] },
			"it is not as it was written"},
		"hunter2": {func(*Vault) []byte { return []byte("hunter2 hunter2") }, "it is not as it was written"},
		"a further value": {func(v *Vault) []byte { return append(sealed(v, func(*secretRecord) {}), "{}"...) },
			"it goes on where it should end"},
		"newer": {func(v *Vault) []byte { return []byte(`{"v": 2, "hunter2": 1}`) },
			"a newer Drawbridge has written it"},
		"another's": {func(v *Vault) []byte { return sealed(v, func(r *secretRecord) { r.Name = "b" }) },
			"it is another secret's"},
		"no version": {func(v *Vault) []byte { return sealed(v, func(r *secretRecord) { r.Version = 0 }) },
			"it does not say its version"},
		"no name": {func(v *Vault) []byte { return sealed(v, func(r *secretRecord) { r.Name = "" }) },
			"it names no secret"},
		"no place": {func(v *Vault) []byte { return sealed(v, func(r *secretRecord) { r.Place = "hunter2" }) },
			"it does not say where its key is"},
		"no key": {func(v *Vault) []byte { return sealed(v, func(r *secretRecord) { r.Key = "hunter2" }) },
			"it does not say which key opens it"},
		"no value": {func(v *Vault) []byte { return sealed(v, func(r *secretRecord) { r.Sealed = nil }) },
			"it holds no value"},
		"not sealed": {func(v *Vault) []byte {
			return sealed(v,
				func(r *secretRecord) { r.Sealed = []byte("hunter2") })
		}, "its key does not open it"},
		"a flipped bit": {func(v *Vault) []byte {
			return sealed(v,
				func(r *secretRecord) { r.Sealed[len(r.Sealed)-1] ^= 1 })
		}, "its value was changed"},
		"too large": {func(*Vault) []byte { return make([]byte, maxRecord+1) }, "it is too large"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t, VaultOptions{NoKeychain: true})
			for _, name := range []string{"a", "good"} {
				if err := v.Put(name, []byte("hunter2")); err != nil {
					t.Fatal(err)
				}
			}
			path, broken := v.recordPath("a"), tt.data(v)
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := v.Get("a")
			if want := fmt.Sprintf("read secret %q: %s is damaged: %s", "a", path, tt.why); err == nil ||
				err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
			if err := v.Put("a", []byte("new")); err != nil {
				t.Error(err)
			}
			if got, err := v.Get("a"); string(got) != "new" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			aside, err := os.ReadFile(path + ".damaged")
			if sealing := name == "not sealed" || name == "a flipped bit"; !sealing &&
				(!bytes.Equal(aside, broken) || err != nil) {
				t.Errorf("what was damaged is gone: %v", err)
			}
		})
	}
}

// TestListNamesWhatIsDamaged shows that one damaged file hides no other.
func TestListNamesWhatIsDamaged(t *testing.T) {
	v := newVault(t, VaultOptions{NoKeychain: true})
	for _, name := range []string{"a", "b"} {
		if err := v.Put(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(v.recordPath("a"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := v.List()
	want := []SecretInfo{{Name: "b", KeyLocation: InFile}}
	if diff := cmp.Diff(want, all, cmpopts.IgnoreFields(SecretInfo{}, "Changed")); diff != "" || err == nil ||
		!strings.Contains(err.Error(), v.recordPath("a")) {
		t.Errorf("%v, list (-want +got):\n%s", err, diff)
	}
	if err := v.Delete("a"); err != nil {
		t.Error(err)
	}
}

func TestWithoutItsKeyAValueIsGone(t *testing.T) {
	v := newVault(t, VaultOptions{NoKeychain: true})
	if err := v.Put("a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(v.dir, keyFile)
	held, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	gone := func(why string) {
		t.Helper()
		if _, err := v.Get("a"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), why) {
			t.Errorf("error %v, want %s", err, why)
		}
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	gone("its key " + key + " is gone")
	if err := v.Put("b", []byte("x")); err != nil {
		t.Fatal(err)
	}
	gone(key + " is a different key now")
	if err := os.WriteFile(key, append(held, "x"...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = v.Get("a")
	if want := key + " is damaged: it does not hold a key"; err == nil || !strings.Contains(err.Error(), want) ||
		strings.Contains(err.Error(), "AGE-SECRET") {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := v.Put("a", []byte("y")); err == nil {
		t.Error("a damaged key was written over")
	}
}

func TestNoVault(t *testing.T) {
	v := UnavailableVault(errors.New("there is no home directory"))
	if _, err := v.Get("a"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := v.UserSecrets().Get("a"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if err := v.Delete("a"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if err := v.Put("a", nil); err == nil || err.Error() != `keep secret "a": there is no home directory` {
		t.Error(err)
	}
	if _, err := v.Lock(t.Context(), "a"); err == nil || err.Error() != `lock secret "a": there is no home directory` {
		t.Error(err)
	}
	all, err := v.List()
	if got, want := v.DescribeProtection(), "no place to store secrets: there is no home directory"; all != nil ||
		err != nil || got != want || v.Stamp("a") != "" {
		t.Errorf("%v, %v, %q, %q", all, err, got, v.Stamp("a"))
	}
}

func TestValues(t *testing.T) {
	chain := &drawer{kept: map[string]string{"MINE": "from the person", "BOTH": "theirs"}}
	v := newVault(t, VaultOptions{Keychain: chain})
	values := v.UserSecrets()
	for name, value := range map[string]string{"BOTH": "ours", "OURS": "ours"} {
		if err := values.Put(name, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Put("signin/x", nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"MINE": "from the person", "BOTH": "ours", "OURS": "ours"} {
		if got, err := values.Get(name); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	for name := range chain.kept {
		if strings.HasPrefix(name, keychainAccount("")) {
			if _, err := values.Get(name); !errors.Is(err, ErrNotFound) {
				t.Errorf("the vault's own key can be had: %v", err)
			}
		}
	}
	all, err := values.List()
	want := []SecretInfo{{Name: "BOTH", KeyLocation: InKeychain}, {Name: "OURS", KeyLocation: InKeychain}}
	if diff := cmp.Diff(want, all, cmpopts.IgnoreFields(SecretInfo{}, "Changed")); diff != "" || err != nil {
		t.Errorf("%v, list (-want +got):\n%s", err, diff)
	}
	if err := values.Delete("BOTH"); err != nil {
		t.Error(err)
	}
	if got, err := values.Get("BOTH"); string(got) != "theirs" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := values.Delete("MINE"); !errors.Is(err, ErrNotFound) {
		t.Errorf("what the person has: %v", err)
	}
	chain.change(errors.New("locked"), nil)
	if _, err := values.Get("MINE"); !errors.Is(err, ErrNotFound) || !errors.Is(err, ErrKeychainUnavailable) {
		t.Errorf("with the keychain away: %v", err)
	}
	if got, err := values.Get("OURS"); string(got) != "ours" || err != nil {
		t.Errorf("with the keychain away, what was read before: %q, %v", got, err)
	}
}

func FuzzRecord(f *testing.F) {
	v, err := OpenVault(f.TempDir(), VaultOptions{NoKeychain: true})
	if err != nil {
		f.Fatal(err)
	}
	if err := v.Put("a", []byte("hunter2")); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(v.recordPath("a"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"v": 1, "name": "a", "place": "file", "key": "age1", "sealed": "eA=="}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := parseRecord(data)
		if err != nil {
			return
		}
		second, err := parseRecord(rec.encode())
		if diff := cmp.Diff(rec, second); diff != "" || err != nil {
			t.Errorf("written again it is another: %v\n%s", err, diff)
		}
		if key, err := v.keyForRecord(rec); err == nil {
			_, _ = rec.unseal(key)
		}
	})
}
