package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArchiveRoundTrip(t *testing.T) {
	for _, passphrase := range []string{"", "correct horse"} {
		t.Run("passphrase "+passphrase, func(t *testing.T) {
			dir, path := writeFiles(t, map[string]string{"store.db": "s", "vault/vault.key": "k", "vault/a.secret": ""}),
				filepath.Join(t.TempDir(), "b")
			written, err := Write(path, dir, Manifest{Program: "v1", Schema: 3}, WriteOptions{Passphrase: passphrase})
			if err != nil {
				t.Fatal(err)
			}
			a, err := Open(path, passphrase)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if diff := cmp.Diff(written, a.Manifest); diff != "" {
				t.Error(diff)
			}
			to := t.TempDir()
			if err := a.Unpack(to); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(readFiles(t, dir), readFiles(t, to)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWriteReplacesNoFile(t *testing.T) {
	dir, path := writeFiles(t, map[string]string{"store.db": "s"}), filepath.Join(t.TempDir(), "b")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(path, dir, Manifest{}, WriteOptions{}); !errors.Is(err, ErrExists) {
		t.Errorf("error %v, want ErrExists", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if left := readFiles(t, filepath.Dir(path)); len(left) != 1 {
		t.Errorf("files left: %v", left)
	}
}

// entry is an entry of an archive made by hand.
type entry struct {
	name, text string
	kind       byte
}

func TestForeignArchivesAreRefused(t *testing.T) {
	good := entry{"store.db", "s", tar.TypeReg}
	for _, tt := range []struct {
		name    string
		format  int
		parts   []entry // as the manifest names them
		entries []entry
		want    string
	}{
		{"wrong digest", Format, []entry{good}, []entry{{"store.db", "t", tar.TypeReg}}, "another SHA-256"},
		{"newer format", Format + 1, []entry{good}, []entry{good}, "its format is 2, and this one knows 1"},
		{"missing part", Format, []entry{good}, nil, "its part store.db is missing"},
		{"more entries", Format, []entry{good}, []entry{good, {"x", "", tar.TypeReg}}, "does not name"},
		{"entry twice", Format, []entry{good}, []entry{good, good}, "does not name"},
		{"link", Format, []entry{good}, []entry{{"store.db", "", tar.TypeSymlink}}, "does not name"},
		{"hard link", Format, []entry{good}, []entry{{"store.db", "", tar.TypeLink}}, "does not name"},
		{"other size", Format, []entry{good}, []entry{{"store.db", "ss", tar.TypeReg}}, "does not name"},
		{"absolute", Format, []entry{{"/etc/x", "", tar.TypeReg}}, nil, "not a plain name"},
		{"parent", Format, []entry{{"vault/../../x", "", tar.TypeReg}}, nil, "not a plain name"},
		{"parent alone", Format, []entry{{"..", "", tar.TypeReg}}, nil, "not a plain name"},
		{"backslash", Format, []entry{{`vault\..\x`, "", tar.TypeReg}}, nil, "not a plain name"},
		{"drive", Format, []entry{{"C:x", "", tar.TypeReg}}, nil, "not a plain name"},
		{"name twice", Format, []entry{good, {"Store.db", "s", tar.TypeReg}}, nil, "occurs twice"},
		{"manifest as a part", Format, []entry{{"manifest.json", "", tar.TypeReg}}, nil, "not a plain name"},
		{"no format", 0, nil, nil, "not a backup of Drawbridge"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "b")
			if err := os.WriteFile(path, foreignArchive(t, tt.format, tt.parts, tt.entries), 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := Open(path, "")
			to := t.TempDir()
			if err == nil {
				defer a.Close()
				err = a.Unpack(to)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestDamageIsFound flips and cuts bytes of an archive: no damage may go unnoticed.
func TestDamageIsFound(t *testing.T) {
	dir, path := writeFiles(t, map[string]string{"store.db": strings.Repeat("s", 999)}), filepath.Join(t.TempDir(), "b")
	if _, err := Write(path, dir, Manifest{}, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := readFiles(t, dir)
	for at := 10; at < len(whole); at += 7 {
		for _, damaged := range [][]byte{whole[:at], bytes.Join([][]byte{whole[:at], {whole[at] ^ 0x55},
			whole[at+1:]}, nil)} {
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := Open(path, "")
			if err != nil {
				continue
			}
			to := t.TempDir()
			if err := a.Unpack(to); err == nil && cmp.Diff(want, readFiles(t, to)) != "" {
				t.Errorf("the damage at byte %d was not found", at)
			}
			_ = a.Close()
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("\x1f\x8b"))
	f.Add([]byte(sealedPrefix + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "b")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := Open(path, ""); err == nil {
			_ = a.Unpack(t.TempDir())
			_ = a.Close()
		}
	})
}

func foreignArchive(t *testing.T, format int, parts, entries []entry) []byte {
	t.Helper()
	m := Manifest{Format: format}
	for _, p := range parts {
		sum := sha256.Sum256([]byte(p.text))
		m.Parts = append(m.Parts, Part{p.name, int64(len(p.text)), hex.EncodeToString(sum[:])})
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range append([]entry{{manifestName, string(text), tar.TypeReg}}, entries...) {
		h := &tar.Header{Name: e.name, Size: int64(len(e.text)), Typeflag: e.kind, Mode: 0o600}
		if e.kind != tar.TypeReg {
			h.Linkname = "/etc/passwd"
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	parts, err := listParts(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range parts {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(p.Name)))
		if err != nil {
			t.Fatal(err)
		}
		all[p.Name] = string(text)
	}
	return all
}
