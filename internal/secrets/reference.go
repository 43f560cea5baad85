package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// A ReferenceKind is the kind of a reference.
type ReferenceKind string

// The kinds of references.
const (
	// FileReference is the path of a file. KeychainReference is the name of a keychain entry. CommandReference is a
	// shell command.
	FileReference     ReferenceKind = "file"
	KeychainReference ReferenceKind = "keychain"
	CommandReference  ReferenceKind = "command"
)

// A SecretGetter returns secret values by name, such as the values that a person stored in a keychain.
type SecretGetter interface {
	// Get returns the value stored under a name. The error contains no secret.
	Get(name string) ([]byte, error)
}

// A Resolver resolves references. The zero value has no keychain. A Resolver is safe for concurrent use.
type Resolver struct {
	// Keychain resolves keychain references; if it is nil, they cannot be resolved. It is called on each use of a
	// reference. If Keychain is a UserSecrets, the values of all references, of any kind, are added to the vault's
	// KnownSecrets.
	Keychain SecretGetter

	commands CommandRunner
}

// Value returns the value of a reference; text is the path, the name or the command. The value of a file is its
// content, up to 1 MiB, without trailing line endings. For a command, see CommandRunner.Value; environ is the command's
// environment. An empty value is an error. The error may contain the path or name, but not the value.
func (r *Resolver) Value(ctx context.Context, kind ReferenceKind, text string, environ []string) (string, error) {
	value, err := r.resolve(ctx, kind, text, environ)
	if n, ok := r.Keychain.(secretNoter); ok && err == nil {
		n.Note(value)
	}
	return value, err
}

func (r *Resolver) resolve(ctx context.Context, kind ReferenceKind, text string, environ []string) (string, error) {
	switch kind {
	case FileReference:
		return readSecretFile(text)
	case KeychainReference:
		return r.keychainValue(text)
	case CommandReference:
		return r.commands.Value(ctx, text, environ)
	}
	return "", fmt.Errorf("nothing here knows a reference of the kind %q", string(kind))
}

func (r *Resolver) keychainValue(name string) (string, error) {
	if r.Keychain == nil {
		return "", fmt.Errorf("find %q in the keychain: no keychain is available", name)
	}
	value, err := r.Keychain.Get(name)
	switch {
	case err != nil:
		return "", fmt.Errorf("find %q in the keychain: %w", name, err)
	case len(value) == 0:
		return "", fmt.Errorf("what the keychain has as %q is empty", name)
	}
	return string(value), nil
}

// readSecretFile returns the content of a file without trailing line endings.
func readSecretFile(path string) (string, error) {
	f, err := openRegularFile(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxValue+1))
	text := strings.TrimRight(string(data), "\r\n")
	switch {
	case err != nil:
		return "", fileError(path, err)
	case len(data) > maxValue:
		return "", fileError(path, fmt.Errorf("it is larger than %d MiB", maxValue>>20))
	case text == "":
		return "", fileError(path, errors.New("it is empty"))
	}
	return text, nil
}

// CheckFile returns an error if the value of a file reference cannot be read, because the file is missing, not regular
// or not readable. It does not read the content. The error contains the path.
func CheckFile(path string) error {
	f, err := openRegularFile(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// openRegularFile opens a regular file. Other files, such as pipes and devices, are an error, because reading them may
// block or never end.
func openRegularFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fileError(path, errors.New("it is not a regular file"))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	return f, nil
}

// fileError returns an error that contains the path of the file exactly once.
func fileError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file %s is not there", path)
	}
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		err = cause.Err
	}
	return fmt.Errorf("the file %s: %w", path, err)
}
