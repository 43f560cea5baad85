//go:build linux && amd64 && cgo

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bytecodealliance/wasmtime-go/v39"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// small is a module that takes the place of the interpreter.
const small = `(module
  (import "host" "add" (func $add (param i32 i64) (result i32)))
  (import "host" "end" (func $end))
  (memory (export "memory") 1)
  (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "store") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "add") (param i32) (result i32) (call $add (local.get 0) (i64.const -1)))
  (func (export "end") (call $end))
  (func (export "trap") unreachable)
  (func $deep (export "deep") (call $deep)))`

// openSmall opens a module with an image whose first word is 7.
func openSmall(t *testing.T, dir, text string) (sandbox.Instances, error) {
	t.Helper()
	setup := sandbox.EngineSetup{Code: filepath.Join(dir, "code.wasm"), Image: filepath.Join(dir, "memory.img"), Compiled: dir,
		Memory: 1 << 20}
	code, err := wasmtime.Wat2Wasm(text)
	if err != nil {
		t.Fatal(err)
	}
	image := make([]byte, 65536)
	image[0] = 7
	if err := errors.Join(os.WriteFile(setup.Code, code, 0o600), os.WriteFile(setup.Image, image, 0o600)); err != nil {
		t.Fatal(err)
	}
	return open(context.Background(), setup, func(_, name string) (sandbox.HostFunction, error) {
		switch name {
		case "add":
			return func(memory []byte, args []uint64) (uint64, error) {
				return args[0] + args[1] + uint64(memory[0]), nil
			}, nil
		case "end":
			return func([]byte, []uint64) (uint64, error) { return 0, errors.New("the host ends it") }, nil
		}
		return nil, errors.New("unknown import " + name)
	})
}

func TestInstances(t *testing.T) {
	ctx := t.Context()
	e, err := openSmall(t, t.TempDir(), small)
	if err != nil {
		t.Fatal(err)
	}
	const refused = 1<<32 - 1
	for range 2 { // the second instance finds nothing of the first
		if err := e.Prepare(ctx); err != nil {
			t.Fatal(err)
		}
		e.LimitMemory(3 << 16)
		for _, tt := range []struct {
			function string
			args     []uint64
			want     uint64
			fault    string
		}{
			{function: "load", args: []uint64{0}, want: 7},
			{function: "add", args: []uint64{10}, want: 16},
			{function: "store", args: []uint64{0, 9}},
			{function: "load", args: []uint64{0}, want: 9},
			{function: "grow", args: []uint64{2}, want: 1},
			{function: "grow", args: []uint64{1}, want: refused},
			{function: "trap", fault: "wasm trap: wasm `unreachable` instruction executed"},
			{function: "load", args: []uint64{1 << 31}, fault: "memory fault at wasm address 0x80000000 in linear memory of size 0x30000"},
			{function: "deep", fault: "wasm trap: call stack exhausted"},
			{function: "end", fault: "the host ends it"},
			{function: "none", fault: "the interpreter does not export none"},
		} {
			got, err := e.Call(ctx, tt.function, tt.args...)
			fault := ""
			if err != nil {
				fault = err.Error()
			}
			if got != tt.want || fault != tt.fault {
				t.Errorf("%s%v returns %d, %q, want %d, %q", tt.function, tt.args, got, fault, tt.want, tt.fault)
			}
		}
		if size := len(e.Memory()); size != 3<<16 {
			t.Errorf("the memory has %d bytes", size)
		}
		e.Discard(ctx)
	}
}

// TestAForeignCompiledFile has a file that Wasmtime refuses in the place of the compiled code.
func TestAForeignCompiledFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "interpreter.cwasm")
	if err := os.WriteFile(path, []byte("of another version"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := openSmall(t, dir, small)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.Discard(t.Context())
	if _, err := wasmtime.NewModuleDeserializeFile(wasmtime.NewEngineWithConfig(newConfig()), path); err != nil {
		t.Errorf("the file was not written again: %v", err)
	}
}

func TestModulesThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"SIMD":      {`(module (memory (export "memory") 1) (func (drop (v128.const i64x2 0 0))))`, "SIMD support is not enabled"},
		"an import": {`(module (import "host" "open" (func)) (memory (export "memory") 1))`, "unknown import open"},
		"a global":  {`(module (import "host" "g" (global i32)) (memory (export "memory") 1))`, "imports more than functions"},
		"no memory": {`(module (func))`, "memory"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := openSmall(t, t.TempDir(), tt.text)
			if err == nil {
				err = e.Prepare(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestVersionIsThatOfTheModule(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/bytecodealliance/wasmtime-go/v39 v" + engineVersion + "\n"; !strings.Contains(string(mod), want) {
		t.Errorf("go.mod does not require %s", want)
	}
}
