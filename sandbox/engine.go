package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// The numbers that the import drawbridge.request returns instead of a length. boot.py has their texts.
const (
	refusedTooLarge = -1
	refusedEnded    = -2
)

// errScriptEnded ends the interpreter from a function that it called.
var errScriptEnded = errors.New("the script ended")

// An engine runs the interpreter: one world after another, each in a fresh instance with a fresh memory.
type engine struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	memory  *imageMemory
	// next is an instance that waits for a script, current the world of the running one.
	next    api.Module
	current *world
}

// openEngine compiles the interpreter, or loads the compiled code from the directory.
func openEngine(ctx context.Context, code []byte, memory *imageMemory, compiledDir string) (*engine, error) {
	cache, err := wazero.NewCompilationCacheWithDir(compiledDir)
	if err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache)
	e := &engine{runtime: wazero.NewRuntimeWithConfig(ctx, config), memory: memory}
	compileCtx := experimental.WithCompilationWorkers(ctx, runtime.NumCPU())
	if e.module, err = e.runtime.CompileModule(compileCtx, code); err != nil {
		return nil, fmt.Errorf("compile the interpreter: %w", err)
	}
	return e, e.defineImports(ctx)
}

// defineImports defines what the interpreter imports: WASI, and the requests to the host.
func (e *engine) defineImports(ctx context.Context) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, d := range e.module.ImportedFunctions() {
		module, name, _ := d.Import()
		var f api.GoModuleFunc
		switch module + "." + name {
		case "drawbridge.request":
			f = func(_ context.Context, m api.Module, stack []uint64) {
				stack[0] = uint64(uint32(e.current.request(memoryOf(m), uint32(stack[0]), uint32(stack[1]))))
			}
		case "drawbridge.reply":
			f = func(_ context.Context, m api.Module, stack []uint64) {
				e.current.copyReply(memoryOf(m), uint32(stack[0]), uint32(stack[1]))
			}
		default:
			if module != "wasi_snapshot_preview1" {
				return fmt.Errorf("the interpreter imports %s.%s", module, name)
			}
			f = e.wasiFunction(name, len(d.ParamTypes()))
		}
		if builders[module] == nil {
			builders[module] = e.runtime.NewHostModuleBuilder(module)
		}
		builders[module].NewFunctionBuilder().WithGoModuleFunction(f, d.ParamTypes(), d.ResultTypes()).Export(name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// wasiFunction returns the function of WASI with this name.
func (e *engine) wasiFunction(name string, params int) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		w := e.current
		errno := w.callWASI(name, memoryOf(m), stack[:params])
		if w.exited || w.flooded {
			_ = m.CloseWithExitCode(ctx, 1)
			panic(errScriptEnded)
		}
		if len(stack) > 0 {
			stack[0] = uint64(errno)
		}
	}
}

// memoryOf returns the whole memory of the interpreter.
func memoryOf(m api.Module) guestMemory {
	b, _ := m.Memory().Read(0, m.Memory().Size())
	return b
}

// prepare makes an instance for the next run.
func (e *engine) prepare(ctx context.Context) error {
	e.current = &world{}
	ctx = experimental.WithMemoryAllocator(ctx, e.memory)
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	m, err := e.runtime.InstantiateModule(ctx, e.module, config)
	if err != nil {
		return fmt.Errorf("start the interpreter: %w", err)
	}
	e.memory.afterInstantiate()
	e.next = m
	return nil
}

// run runs one script in the prepared instance. fault is why the interpreter ended without a result; it is empty for a
// run that ended by itself.
func (e *engine) run(ctx context.Context, w *world, message []byte) (fault string) {
	m := e.next
	e.current = w
	e.memory.limit = w.limits.Memory
	at, err := m.ExportedFunction("python_alloc").Call(ctx, uint64(len(message)))
	if err == nil && (len(at) == 0 || at[0] == 0 || !m.Memory().Write(uint32(at[0]), message)) {
		return "the script does not fit into the memory"
	}
	if err == nil {
		_, err = m.ExportedFunction("python_run").Call(ctx, at[0], uint64(len(message)))
	}
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// discard ends the instance and its memory.
func (e *engine) discard(ctx context.Context) {
	if e.next != nil {
		_ = e.next.Close(ctx) // it has nothing to close
		e.next = nil
	}
	e.memory.reset()
}

// request sends a request of the script to the host. It returns the length of the reply, which copyReply fetches, or
// the number of a refusal.
func (w *world) request(m guestMemory, at, size uint32) int32 {
	w.reply = nil
	if int64(size) > int64(w.limits.Transfer) {
		return refusedTooLarge
	}
	request, ok := m.span(at, size)
	if !ok || w.exchange == nil || w.lost {
		return refusedEnded
	}
	reply, err := w.exchange(request)
	if err != nil {
		w.lost = true
		return refusedEnded
	}
	w.reply = reply
	return int32(len(reply))
}

// copyReply copies the last reply into the memory of the interpreter.
func (w *world) copyReply(m guestMemory, at, size uint32) {
	if b, ok := m.span(at, size); ok {
		copy(b, w.reply)
	}
	w.reply = nil
}

// memorySize returns the size of the memory of the instance in bytes.
func (e *engine) memorySize() uint32 { return e.next.Memory().Size() }
