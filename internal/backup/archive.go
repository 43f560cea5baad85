// Package backup writes and reads archives of backups, and replaces the current files by the files of an archive.
//
// An archive is a gzip-compressed tar file that may be encrypted with a passphrase (age). Its first entry is the
// manifest, which lists each part with its name, size and SHA-256. A part is one file.
//
// Write never leaves an incomplete archive. Open rejects a manifest with a name that has special characters. Unpack
// returns an error for a wrong digest, for a part that the manifest does not list, and for a link.
//
// A Swap replaces files by unpacked parts. If the process ends during a Swap, the next call of Recover completes or
// cancels the Swap. Then either all files are old or all files are new.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/drawbridge-mcp/drawbridge/internal/privatefile"
)

// Format is the version of the archive format that Write uses, and the newest version that Open accepts.
const Format = 1

const (
	manifestName = "manifest.json"
	// maxManifest is the maximum size of the manifest in bytes. maxParts is the maximum number of parts.
	maxManifest, maxParts = 4 << 20, 100_000
	// sealedPrefix is the start of an archive that is encrypted with a passphrase.
	sealedPrefix = "age-encryption.org/v1"
)

// A Manifest describes the contents of an archive.
type Manifest struct {
	Format  int       `json:"format"`
	Program string    `json:"program"`
	Made    time.Time `json:"made"`
	// Schema is the version of the store's tables; 0 if the archive contains no store.
	Schema int `json:"schema,omitempty"`
	// Identity is the identity of the store; empty if the archive contains no store.
	Identity string `json:"identity,omitempty"`
	// KeychainSecrets is the number of secrets whose key is in a keychain, and therefore not in the archive.
	KeychainSecrets int    `json:"keychain_secrets,omitempty"`
	Parts           []Part `json:"parts"`
}

// A Part is one file of an archive.
type Part struct {
	// Name is a relative path with slashes, such as "vault/vault.key".
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Has reports whether the archive contains a part of that name, or a part in a directory of that name.
func (m Manifest) Has(name string) bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool {
		return p.Name == name || strings.HasPrefix(p.Name, name+"/")
	})
}

// WriteOptions are the options of Write. The zero value is valid.
type WriteOptions struct {
	// Passphrase encrypts the archive; empty means no encryption.
	Passphrase string
	// Overwrite allows Write to replace an existing file.
	Overwrite bool
}

// ErrExists reports that the file of a new archive already exists.
var ErrExists = errors.New("it exists already")

// Write writes an archive of all files in the directory dir to the file path. It returns m with the parts and the
// format of the archive. The file has mode 0600. If Write fails, it leaves no incomplete file at path.
func Write(path, dir string, m Manifest, o WriteOptions) (Manifest, error) {
	if _, err := os.Lstat(path); !o.Overwrite && !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = ErrExists
		}
		return m, err
	}
	m.Format = Format
	var err error
	if m.Parts, err = listParts(dir); err != nil {
		return m, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".drawbridge-backup-*") // its mode is 0600
	if err != nil {
		return m, err
	}
	defer os.Remove(f.Name())
	err = writeSealed(f, dir, m, o.Passphrase)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return m, err
	}
	if err := putInPlace(f.Name(), path, o.Overwrite); err != nil {
		return m, err
	}
	return m, syncDir(filepath.Dir(path))
}

// putInPlace renames a file. If overwrite is false and the new path exists, it returns ErrExists. On a file system
// without hard links, such as that of a USB stick, this check and the renaming are not one atomic step.
func putInPlace(from, to string, overwrite bool) error {
	if !overwrite {
		err := os.Link(from, to)
		if err == nil {
			return nil
		}
		if _, there := os.Lstat(to); errors.Is(err, fs.ErrExist) || there == nil {
			return ErrExists
		}
	}
	return os.Rename(from, to)
}

func writeSealed(w io.Writer, dir string, m Manifest, passphrase string) error {
	if passphrase == "" {
		return writeTar(w, dir, m)
	}
	to, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return err
	}
	sealed, err := age.Encrypt(w, to)
	if err != nil {
		return err
	}
	if err := writeTar(sealed, dir, m); err != nil {
		return err
	}
	return sealed.Close()
}

func writeTar(w io.Writer, dir string, m Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	header := func(name string, size int64) *tar.Header {
		return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: m.Made,
			Format: tar.FormatPAX}
	}
	if err := t.WriteHeader(header(manifestName, int64(len(text)))); err != nil {
		return err
	}
	if _, err := t.Write(text); err != nil {
		return err
	}
	for _, p := range m.Parts {
		if err := t.WriteHeader(header(p.Name, p.Size)); err != nil {
			return err
		}
		if err := copyFile(t, filepath.Join(dir, filepath.FromSlash(p.Name))); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func copyFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// listParts returns a part for each file in a directory, in lexical order.
func listParts(dir string) (parts []Part, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		p := Part{Name: filepath.ToSlash(name)}
		sum := sha256.New()
		count := &countingWriter{to: sum}
		if err := copyFile(count, path); err != nil {
			return err
		}
		p.Size, p.SHA256 = count.n, hex.EncodeToString(sum.Sum(nil))
		parts = append(parts, p)
		return nil
	})
	return parts, err
}

type countingWriter struct {
	to io.Writer
	n  int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}

// An Archive is an archive that is open for reading. The caller must call Close.
type Archive struct {
	Manifest Manifest
	file     *os.File
	zip      *gzip.Reader
	tar      *tar.Reader
}

// ErrSealed reports that an archive is encrypted and no passphrase was provided.
var ErrSealed = errors.New("it is sealed with a passphrase")

// Open opens an archive and reads its manifest. It returns an error if the format is newer than Format, or if a part's
// name occurs twice or is not plain (see isPlainName). For an encrypted archive and an empty passphrase, the error is
// ErrSealed.
func Open(path, passphrase string) (*Archive, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a := &Archive{file: f}
	if err := a.readManifest(passphrase); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

// Close closes the archive's file.
func (a *Archive) Close() error { return a.file.Close() }

var errNoArchive = errors.New("it is not a backup of Drawbridge")

func (a *Archive) readManifest(passphrase string) error {
	from, err := a.unsealed(passphrase)
	if err != nil {
		return err
	}
	if a.zip, err = gzip.NewReader(from); err != nil {
		return errNoArchive
	}
	a.tar = tar.NewReader(a.zip)
	h, err := a.tar.Next()
	if err != nil || h.Typeflag != tar.TypeReg || h.Name != manifestName || h.Size > maxManifest {
		return errNoArchive
	}
	text, err := io.ReadAll(io.LimitReader(a.tar, maxManifest))
	if err != nil {
		return errNoArchive
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil || m.Format < 1 {
		return errNoArchive
	}
	if m.Format > Format {
		return fmt.Errorf("a newer Drawbridge (%.40s) wrote it: its format is %d, and this one knows %d", m.Program,
			m.Format, Format)
	}
	a.Manifest = m
	return m.checkNames()
}

func (a *Archive) unsealed(passphrase string) (io.Reader, error) {
	begin := make([]byte, len(sealedPrefix))
	n, err := io.ReadFull(a.file, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errNoArchive
	}
	if _, err := a.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if string(begin[:n]) != sealedPrefix {
		return a.file, nil
	}
	if passphrase == "" {
		return nil, ErrSealed
	}
	key, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, err
	}
	from, err := age.Decrypt(a.file, key)
	if err != nil {
		return nil, errors.New("the passphrase does not open it")
	}
	return from, nil
}

// checkNames returns an error if a part's name is not plain, or if two parts have the same name.
func (m Manifest) checkNames() error {
	if len(m.Parts) > maxParts {
		return errors.New("its manifest names too many parts")
	}
	known := map[string]bool{}
	for _, p := range m.Parts {
		// Names are compared in lower case, because Windows ignores case.
		if name := strings.ToLower(p.Name); !isPlainName(p.Name) || known[name] {
			return fmt.Errorf("its manifest has the part %.100q, which is not a plain name or occurs twice", p.Name)
		} else {
			known[name] = true
		}
	}
	return nil
}

// isPlainName reports whether a name is "file" or "directory/file", does not begin with a dot and is not the manifest's
// name. Both parts may contain only ASCII letters, digits and "._-", which have no special meaning in the paths of any
// system.
func isPlainName(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts) > 2 || name == manifestName {
		return false
	}
	for _, p := range parts {
		plain := func(r rune) bool {
			return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
		}
		if p == "" || len(p) > 255 || p[0] == '.' || strings.ContainsFunc(p, func(r rune) bool { return !plain(r) }) {
			return false
		}
	}
	return true
}

// Unpack writes all parts to an existing directory, with mode 0600, and checks their digests. It returns an error for
// an entry that the manifest does not list. A part that is missing, is a link or has another size or digest is also an
// error. After an error, the directory may contain some of the parts.
func (a *Archive) Unpack(dir string) error {
	left := make(map[string]Part, len(a.Manifest.Parts))
	for _, p := range a.Manifest.Parts {
		left[p.Name] = p
	}
	for {
		h, err := a.tar.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("it is damaged: %w", err)
		}
		p, ok := left[h.Name]
		if !ok || h.Typeflag != tar.TypeReg || h.Size != p.Size {
			return fmt.Errorf("it has the entry %.100q, which its manifest does not name so", h.Name)
		}
		delete(left, h.Name)
		if err := a.unpackPart(dir, p); err != nil {
			return err
		}
	}
	for name := range left {
		return fmt.Errorf("its part %s is missing", name)
	}
	if _, err := io.Copy(io.Discard, a.zip); err != nil { // verifies the checksum at the end
		return fmt.Errorf("it is damaged: %w", err)
	}
	return nil
}

func (a *Archive) unpackPart(dir string, p Part) error {
	path := filepath.Join(dir, filepath.FromSlash(p.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|privatefile.NoFollow, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, sum), a.tar)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("unpack %s: %w", p.Name, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != p.SHA256 {
		return fmt.Errorf("its part %s has another SHA-256 than its manifest says: the archive is damaged", p.Name)
	}
	return syncDir(filepath.Dir(path))
}
