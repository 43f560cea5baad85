//go:build linux && amd64 && cgo

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bytecodealliance/wasmtime-go/v39"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// engineVersion is the version of wasmtime-go, and of the Wasmtime that it contains.
const engineVersion = "39.0.1"

// caution is what drawbridge doctor prints.
const caution = "this version of Wasmtime is of 2025-11 and lacks the security fixes since (CVE-2026-34971, GHSA-qqfj-4vcm-26hv, " +
	"CVE-2026-115893 and others; see docs/sandbox.md): the program without Wasmtime has none of these"

// maxStack is the maximum size of the stack of compiled code in bytes. It is less than the usual stack of a thread, so
// that a script which recurses too deeply ends with a trap.
const maxStack = 4 << 20

// newEngine returns the engine. One process opens it at most once.
func newEngine() sandbox.Engine {
	return sandbox.Engine{Name: "wasmtime", Version: engineVersion, Caution: caution, Open: open}
}

// instances are the [sandbox.Instances] of Wasmtime.
type instances struct {
	engine *wasmtime.Engine
	linker *wasmtime.Linker
	module *wasmtime.Module
	// store owns the instance; it is nil if there is no instance.
	store    *wasmtime.Store
	instance *wasmtime.Instance
	memory   *wasmtime.Memory
	// size is the size of a new memory. touched are the pages that the first script touched; nil before its end.
	size    int
	touched *touchedPages
}

// open compiles the interpreter together with its image, or loads the compiled file.
func open(_ context.Context, setup sandbox.EngineSetup, imports sandbox.ImportFunc) (sandbox.Instances, error) {
	e := &instances{engine: wasmtime.NewEngineWithConfig(newConfig())}
	var err error
	if e.module, err = load(e.engine, setup); err != nil {
		return nil, err
	}
	e.linker = wasmtime.NewLinker(e.engine)
	return e, e.defineImports(imports)
}

// newConfig returns the settings of the engine. A proposal that the interpreter does not use is off: its code in the
// compiler cannot have an error that matters.
func newConfig() *wasmtime.Config {
	c := wasmtime.NewConfig()
	c.SetWasmRelaxedSIMD(false)
	c.SetWasmSIMD(false)
	c.SetWasmThreads(false)
	c.SetWasmMultiMemory(false)
	c.SetWasmMemory64(false)
	c.SetWasmTailCall(false)
	c.SetWasmFunctionReferences(false)
	c.SetWasmGC(false)
	c.SetMaxWasmStack(maxStack)
	return c
}

// load returns the compiled module. A file that this processor or this version cannot use is written again.
func load(engine *wasmtime.Engine, setup sandbox.EngineSetup) (*wasmtime.Module, error) {
	path := filepath.Join(setup.Compiled, "interpreter.cwasm")
	if _, err := os.Stat(path); err == nil {
		if m, err := wasmtime.NewModuleDeserializeFile(engine, path); err == nil {
			return m, nil
		}
	}
	code, err := moduleWithImage(setup.Code, setup.Image)
	if err != nil {
		return nil, err
	}
	m, err := wasmtime.NewModule(engine, code)
	if err != nil {
		return nil, fmt.Errorf("compile the interpreter: %w", err)
	}
	compiled, err := m.Serialize()
	m.Close()
	if err != nil {
		return nil, fmt.Errorf("store the compiled interpreter: %w", err)
	}
	if err := replaceFile(path, compiled); err != nil {
		return nil, err
	}
	return wasmtime.NewModuleDeserializeFile(engine, path) // the image is then mapped from the file
}

// replaceFile puts a new file in the place of another one, which a worker may have mapped.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*") // with the mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// moduleWithImage returns the module of the interpreter with its image as one data segment. Wasmtime maps such a segment
// copy on write.
func moduleWithImage(codeFile, imageFile string) ([]byte, error) {
	code, err := os.ReadFile(codeFile)
	if err != nil {
		return nil, err
	}
	image, err := os.ReadFile(imageFile)
	if err != nil {
		return nil, err
	}
	// See section 5.5.14 of the WebAssembly core specification 2.0.
	const dataSection, active, i32const, end = 11, 0, 0x41, 0x0b
	segment := binary.AppendUvarint([]byte{1, active, i32const, 0, end}, uint64(len(image)))
	code = binary.AppendUvarint(append(code, dataSection), uint64(len(segment)+len(image)))
	return append(append(code, segment...), image...), nil
}

// defineImports defines the functions that the interpreter imports.
func (e *instances) defineImports(imports sandbox.ImportFunc) error {
	for _, d := range e.module.Imports() {
		t := d.Type().FuncType()
		if t == nil || d.Name() == nil {
			return fmt.Errorf("the interpreter imports more than functions from %s", d.Module())
		}
		f, err := imports(d.Module(), *d.Name())
		if err != nil {
			return err
		}
		if err := e.linker.FuncNew(d.Module(), *d.Name(), t, e.hostFunction(f, t.Results())); err != nil {
			return err
		}
	}
	return nil
}

// hostFunction returns a host function in the form of Wasmtime.
func (e *instances) hostFunction(f sandbox.HostFunction, results []*wasmtime.ValType) func(
	*wasmtime.Caller, []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
	kinds := kindsOf(results)
	return func(_ *wasmtime.Caller, values []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
		args := make([]uint64, len(values))
		for i, v := range values {
			args[i] = fromValue(v)
		}
		result, err := f(e.Memory(), args)
		if err != nil {
			return nil, wasmtime.NewTrap(err.Error())
		}
		if len(kinds) == 0 {
			return nil, nil
		}
		return []wasmtime.Val{toValue(kinds[0], result)}, nil
	}
}

func kindsOf(types []*wasmtime.ValType) []wasmtime.ValKind {
	kinds := make([]wasmtime.ValKind, len(types))
	for i, t := range types {
		kinds[i] = t.Kind()
	}
	return kinds
}

// fromValue and toValue convert the two types of integers, which are all that the functions have.
func fromValue(v wasmtime.Val) uint64 {
	if v.Kind() == wasmtime.KindI64 {
		return uint64(v.I64())
	}
	return uint64(uint32(v.I32()))
}

func toValue(kind wasmtime.ValKind, v uint64) wasmtime.Val {
	if kind == wasmtime.KindI64 {
		return wasmtime.ValI64(int64(v))
	}
	return wasmtime.ValI32(int32(v))
}

// Prepare implements [sandbox.Instances].
func (e *instances) Prepare(context.Context) (err error) {
	e.store = wasmtime.NewStore(e.engine)
	if e.instance, err = e.linker.Instantiate(e.store, e.module); err != nil {
		return err
	}
	if x := e.instance.GetExport(e.store, "memory"); x != nil {
		e.memory = x.Memory()
	}
	if e.memory == nil {
		return errors.New("the interpreter does not export its memory")
	}
	if e.touched != nil {
		e.touched.fill(e.Memory())
	}
	e.size = len(e.Memory())
	return nil
}

// LimitMemory implements [sandbox.Instances].
func (e *instances) LimitMemory(size int64) {
	const unchanged = -1 // no limit of its own; nothing but the memory can grow
	e.store.Limiter(size, unchanged, unchanged, unchanged, unchanged)
}

// Call implements [sandbox.Instances].
func (e *instances) Call(_ context.Context, function string, args ...uint64) (uint64, error) {
	f := e.instance.GetFunc(e.store, function)
	if f == nil {
		return 0, errors.New("the interpreter does not export " + function)
	}
	values := make([]any, len(args))
	for i, t := range f.Type(e.store).Params() {
		if i < len(args) {
			values[i] = toValue(t.Kind(), args[i])
		}
	}
	result, err := f.Call(e.store, values...)
	if err != nil {
		return 0, errors.New(faultOf(err))
	}
	switch r := result.(type) {
	case int32:
		return uint64(uint32(r)), nil
	case int64:
		return uint64(r), nil
	}
	return 0, nil
}

// faultOf returns the cause of a trap as one line. The message of Wasmtime lists the functions first, then the causes.
func faultOf(err error) string {
	text := err.Error()
	if _, causes, ok := strings.Cut(text, "Caused by:\n"); ok {
		text = causes
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimPrefix(strings.TrimSpace(line), "0: ") // the number of the first of several causes
}

// Memory implements [sandbox.Instances].
func (e *instances) Memory() []byte { return e.memory.UnsafeData(e.store) }

// Discard implements [sandbox.Instances].
func (e *instances) Discard(context.Context) {
	if e.memory != nil && e.touched == nil {
		t := readTouchedPages(e.Memory()[:e.size])
		e.touched = &t
	}
	if e.store != nil {
		e.store.Close()
		e.store, e.instance, e.memory = nil, nil, nil
	}
}
