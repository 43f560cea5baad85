package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/klauspost/compress/zstd"
)

// lockPoll is how often a program looks whether another one has prepared the interpreter.
const lockPoll = 50 * time.Millisecond

// interpreterFiles are the unpacked files of the interpreter.
type interpreterFiles struct{ code, image, compiled string }

func (f *interpreterFiles) setup() EngineSetup {
	return EngineSetup{Code: f.code, Image: f.image, Compiled: f.compiled, Memory: maxMemory}
}

// defaultDir returns the directory of the interpreter in the user's cache directory.
func defaultDir() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "drawbridge", "python"), err
}

// prepareInterpreter makes sure that the directory has the files of the interpreter and its compiled code, with the
// content that they must have. Files that differ are written again. compile starts a worker, which compiles for the
// engine.
func prepareInterpreter(ctx context.Context, dir string, engine *Engine, onFirst func(),
	compile func(EngineSetup) error) (*interpreterFiles, error) {
	dir = filepath.Join(dir, interpreterID())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("prepare the Python interpreter: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return nil, fmt.Errorf("prepare the Python interpreter: %w", err)
	}
	defer lock.Unlock()
	f := &interpreterFiles{
		code: filepath.Join(dir, "code.wasm"), image: filepath.Join(dir, "memory.img"),
		compiled: filepath.Join(dir, engine.compiledName()),
	}
	sums := f.compiled + ".sha256"
	ok := hasContent(f.code, codeSHA256()) && hasContent(f.image, imageSHA256()) && hasSums(f.compiled, sums)
	if ok {
		return f, nil
	}
	if onFirst != nil {
		onFirst()
	}
	err := errors.Join(os.RemoveAll(f.compiled), unpack(compressedCode, f.code, codeSHA256()),
		unpack(compressedImage, f.image, imageSHA256()), os.Mkdir(f.compiled, 0o700))
	if err == nil {
		err = compile(f.setup())
	}
	if err == nil {
		err = writeSums(f.compiled, sums)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare the Python interpreter: %w", err)
	}
	return f, nil
}

// interpreterID identifies the interpreter and the machine code that it is compiled to.
func interpreterID() string { return codeSHA256()[:8] + imageSHA256()[:8] }

// codeSHA256 and imageSHA256 return the sums of the unpacked files.
func codeSHA256() string  { return sumOf("code.wasm") }
func imageSHA256() string { return sumOf("memory.img") }

// sumOf returns the sum of a file in SHA256SUMS.
func sumOf(name string) string {
	for line := range strings.Lines(interpreterSums) {
		if sum, file, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && file == name {
			return sum
		}
	}
	return strings.Repeat("0", sha256.Size*2) // of no file
}

// hasContent reports whether a file has this sum.
func hasContent(path, sum string) bool {
	got, err := fileSum(path)
	return err == nil && got == sum
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// unpack writes a compressed file to its place, unless it is there.
func unpack(compressed []byte, path, sum string) error {
	if hasContent(path, sum) {
		return nil
	}
	decoder, err := zstd.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return err
	}
	defer decoder.Close()
	// A new file takes the place of the old one: a worker may have mapped that.
	f, err := os.CreateTemp(filepath.Dir(path), "unpack-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, decoder)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if !hasContent(f.Name(), sum) {
		return fmt.Errorf("the unpacked %s is damaged", filepath.Base(path))
	}
	return os.Rename(f.Name(), path)
}

// sumsOf returns a line for each file of a directory: its sum and its path in the directory.
func sumsOf(dir string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		sum, err := fileSum(path)
		name, _ := filepath.Rel(dir, path) // both are of one walk
		fmt.Fprintf(&all, "%s  %s\n", sum, filepath.ToSlash(name))
		return err
	})
	return all.String(), err
}

// hasSums reports whether a directory has the files of a list of sums, and no other.
func hasSums(dir, list string) bool {
	want, err := os.ReadFile(list)
	if err != nil || len(want) == 0 {
		return false
	}
	got, err := sumsOf(dir)
	return err == nil && got == string(want)
}

func writeSums(dir, list string) error {
	sums, err := sumsOf(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(list, []byte(sums), 0o600)
}
