package secrets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"filippo.io/age"
)

const (
	// recordSuffix is the suffix of the record files' names.
	recordSuffix = ".secret"
	// maxName is the maximum length of a name in bytes. maxRecord is the maximum size of a record file, which contains
	// a value in Base64 and the other members.
	maxName, maxRecord = 512, 2*maxSecret + 4<<10
	// recordVersion is the only version of the file format so far.
	recordVersion = 1
)

// A secretRecord is the content of a record file: the secret's name, the encrypted value, and the public key for which
// the value is encrypted.
type secretRecord struct {
	Version int         `json:"v"`
	Name    string      `json:"name"`
	Place   KeyLocation `json:"place"`
	// Key is the public key that belongs to the private key for Sealed.
	Key     string    `json:"key"`
	Changed time.Time `json:"changed"`
	// Sealed is the encrypted text, which consists of the name, a zero byte and the value. Because the text contains
	// the name, a record that was copied to the file of another name is rejected.
	Sealed []byte `json:"sealed"`
}

// A damagedError reports a file with unexpected content.
type damagedError struct {
	path string
	why  error
}

func (e damagedError) Error() string { return e.path + " is damaged: " + e.why.Error() }

func damaged(path string, why error) error { return damagedError{path, why} }

// checkName returns the reason why name is not a valid name for a secret; nil if it is valid.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the name of a secret cannot be empty")
	case len(name) > maxName:
		return fmt.Errorf("the name of a secret has at most %d bytes", maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("the name of a secret is text on one line")
	}
	return nil
}

// recordPath returns the path of the record file for a name. The file's name is a hash, because a secret's name may
// contain any characters and some file systems ignore case.
func (v *Vault) recordPath(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(v.dir, hex.EncodeToString(sum[:16])+recordSuffix)
}

// readRecord reads the record file at path. If name is not empty, the record must have this name. The error is
// ErrNotFound if the file does not exist.
func (v *Vault) readRecord(path, name string) (secretRecord, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return secretRecord{}, ErrNotFound
	}
	if err != nil {
		return secretRecord{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return secretRecord{}, err
	}
	rec, err := parseRecord(data)
	if err == nil && (name != "" && rec.Name != name || v.recordPath(rec.Name) != path) {
		err = errors.New("it is another secret's")
	}
	if err != nil {
		return secretRecord{}, damaged(path, err)
	}
	return rec, nil
}

// parseRecord parses the content of a record file. Its errors contain no part of the content.
func parseRecord(data []byte) (secretRecord, error) {
	var rec secretRecord
	if len(data) > maxRecord {
		return rec, errors.New("it is too large")
	}
	var said struct {
		Version int `json:"v"`
	}
	if json.Unmarshal(data, &said) == nil && said.Version > recordVersion {
		return rec, errors.New("a newer Drawbridge has written it")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rec); err != nil {
		return secretRecord{}, errors.New("it is not as it was written")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return secretRecord{}, errors.New("it goes on where it should end")
	}
	switch {
	case rec.Version != recordVersion:
		return secretRecord{}, errors.New("it does not say its version")
	case checkName(rec.Name) != nil:
		return secretRecord{}, errors.New("it names no secret")
	case rec.Place != InKeychain && rec.Place != InFile:
		return secretRecord{}, errors.New("it does not say where its key is")
	case len(rec.Sealed) == 0:
		return secretRecord{}, errors.New("it holds no value")
	}
	if _, err := age.ParseX25519Recipient(rec.Key); err != nil {
		return secretRecord{}, errors.New("it does not say which key opens it")
	}
	return rec, nil
}

// encode returns the record in its file format.
func (r secretRecord) encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(r) // cannot fail for these types
	return b.Bytes()
}

// seal encrypts a value for the public key to, and returns the record.
func seal(name string, value []byte, place KeyLocation, to *age.X25519Recipient) (secretRecord, error) {
	var b bytes.Buffer
	w, err := age.Encrypt(&b, to)
	if err != nil {
		return secretRecord{}, err
	}
	if _, err := w.Write(append([]byte(name+"\x00"), value...)); err != nil {
		return secretRecord{}, err
	}
	if err := w.Close(); err != nil {
		return secretRecord{}, err
	}
	return secretRecord{Version: recordVersion, Name: name, Place: place, Key: to.String(), Sealed: b.Bytes()}, nil
}

// unseal decrypts the record and returns its value.
func (r secretRecord) unseal(key *age.X25519Identity) ([]byte, error) {
	reader, err := age.Decrypt(bytes.NewReader(r.Sealed), key)
	if err != nil {
		return nil, errors.New("its key does not open it")
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, errors.New("its value was changed")
	}
	value, ok := bytes.CutPrefix(text, []byte(r.Name+"\x00"))
	if !ok {
		return nil, errors.New("its value is another secret's")
	}
	return value, nil
}
