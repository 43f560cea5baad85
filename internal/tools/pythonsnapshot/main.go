// Pythonsnapshot starts the Python interpreter of the sandbox once and writes its memory as a file, so that a run of the
// sandbox starts with a started interpreter.
//
//	pythonsnapshot -module python.wasm -stdlib DIR -out DIR
//
// It writes code.wasm, which is the module without its data, and memory.img, which is the memory after start-up. The
// same inputs yield the same files: the interpreter sees a fixed clock, fixed random numbers, and a library in memory.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing/fstest"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// pageSize is the size of a page of WebAssembly memory.
const pageSize = 65536

// The ids of sections, from the WebAssembly core specification 2.0, section 5.5.2.
const (
	customSection    = 0
	memorySection    = 5
	exportSection    = 7
	dataSection      = 11
	dataCountSection = 12
)

func main() {
	module := flag.String("module", "", "the interpreter as a WebAssembly reactor")
	library := flag.String("stdlib", "", "the directory with the bootstrap and the standard library")
	out := flag.String("out", "", "the directory for code.wasm and memory.img")
	flag.Parse()
	if err := snapshot(context.Background(), *module, *library, *out); err != nil {
		fmt.Fprintln(os.Stderr, "pythonsnapshot:", err)
		os.Exit(1)
	}
}

// snapshot starts the module and writes the two files.
func snapshot(ctx context.Context, module, library, out string) error {
	wasm, err := os.ReadFile(module)
	if err != nil {
		return err
	}
	files, err := readDirectory(library)
	if err != nil {
		return err
	}
	image, err := startInterpreter(ctx, wasm, files)
	if err != nil {
		return err
	}
	code, err := withoutData(wasm, len(image)/pageSize)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "code.wasm"), code, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "memory.img"), image, 0o644)
}

// readDirectory returns the files of a directory as a file system in memory, without times and inodes.
func readDirectory(dir string) (fstest.MapFS, error) {
	files := fstest.MapFS{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files[filepath.ToSlash(name)] = &fstest.MapFile{Data: data, Mode: 0o444}
		return err
	})
	return files, err
}

// startInterpreter starts the interpreter and returns a copy of its memory.
func startInterpreter(ctx context.Context, wasm []byte, files fstest.MapFS) ([]byte, error) {
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, err
	}
	_, err := r.NewHostModuleBuilder("drawbridge").
		NewFunctionBuilder().WithFunc(func(context.Context, api.Module, int32, int32) int32 { return -1 }).Export("request").
		NewFunctionBuilder().WithFunc(func(context.Context, api.Module, int32, int32) {}).Export("reply").
		Instantiate(ctx)
	if err != nil {
		return nil, err
	}
	var messages bytes.Buffer // a file would have an inode and times, which the interpreter stores
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithStdout(&messages).WithStderr(&messages).
		WithRandSource(&fixedNumbers{1}).WithFSConfig(wazero.NewFSConfig().WithFSMount(files, "/stdlib"))
	mod, err := r.InstantiateWithConfig(ctx, wasm, config)
	if err != nil {
		return nil, err
	}
	stack := mod.ExportedGlobal("__stack_pointer")
	if stack == nil {
		return nil, errors.New("the module does not export __stack_pointer")
	}
	before := stack.Get()
	if _, err := mod.ExportedFunction("_initialize").Call(ctx); err != nil {
		return nil, err
	}
	result, err := mod.ExportedFunction("python_init").Call(ctx)
	if err != nil || result[0] != 0 {
		return nil, fmt.Errorf("python_init returned %v: %w\n%s", result, err, messages.Bytes())
	}
	if stack.Get() != before {
		return nil, errors.New("python_init left data on the stack")
	}
	image, ok := mod.Memory().Read(0, mod.Memory().Size())
	if !ok {
		return nil, errors.New("the memory cannot be read")
	}
	return bytes.Clone(image), nil
}

// fixedNumbers is a reader of pseudorandom bytes: a linear congruential generator with the constants of Knuth's MMIX.
type fixedNumbers struct{ state uint64 }

func (r *fixedNumbers) Read(p []byte) (int, error) {
	for i := range p {
		r.state = r.state*6364136223846793005 + 1442695040888963407
		p[i] = byte(r.state >> 56)
	}
	return len(p), nil
}

// withoutData returns a module without data and with a memory of so many pages. The functions that only a start-up
// needs are not exported.
func withoutData(wasm []byte, pages int) ([]byte, error) {
	const header = 8
	if len(wasm) < header {
		return nil, errors.New("the module is too short")
	}
	out := bytes.Clone(wasm[:header])
	for rest := wasm[header:]; len(rest) > 0; {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || uint64(len(rest)-1-n) < size {
			return nil, fmt.Errorf("section %d is cut off", id)
		}
		body := rest[1+n : 1+n+int(size)]
		rest = rest[1+n+int(size):]
		switch id {
		case customSection, dataSection, dataCountSection:
			continue
		case memorySection:
			body = withPages(body, pages)
		case exportSection:
			body = withoutExports(body, "_initialize", "python_init", "__stack_pointer")
		}
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
	}
	return out, nil
}

// withPages returns a memory section with another minimum.
func withPages(body []byte, pages int) []byte {
	_, n := binary.Uvarint(body[2:])
	out := append([]byte{1, body[1]}, binary.AppendUvarint(nil, uint64(pages))...)
	return append(out, body[2+n:]...)
}

// withoutExports returns an export section without some names.
func withoutExports(body []byte, names ...string) []byte {
	count, at := binary.Uvarint(body)
	var kept []byte
	left := uint64(0)
	for range count {
		start := at
		length, n := binary.Uvarint(body[at:])
		name := string(body[at+n : at+n+int(length)])
		at += n + int(length) + 1 // and the kind
		_, n = binary.Uvarint(body[at:])
		at += n
		if !slices.Contains(names, name) {
			kept = append(kept, body[start:at]...)
			left++
		}
	}
	return append(binary.AppendUvarint(nil, left), kept...)
}
