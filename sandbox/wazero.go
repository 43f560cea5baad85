package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

const (
	wazeroName   = "wazero"
	wazeroModule = "github.com/tetratelabs/wazero"
)

// wazeroEngine returns the engine of [RunWorker], which is written in Go only.
func wazeroEngine() Engine {
	return Engine{Name: wazeroName,
		Open: func(ctx context.Context, setup EngineSetup, imports ImportFunc) (Instances, error) {
			code, err := mapFile(setup.Code)
			if err != nil {
				return nil, err
			}
			cache, err := wazero.NewCompilationCacheWithDir(setup.Compiled)
			if err != nil {
				return nil, err
			}
			e, err := openWazero(ctx, wazero.NewRuntimeConfigCompiler().WithCompilationCache(cache), code, setup, imports)
			if err != nil {
				return nil, err
			}
			e.code = code
			return e, nil
		}}
}

// wazeroInstances are the [Instances] of wazero.
type wazeroInstances struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	memory  *imageMemory
	// code is the mapped file of the interpreter, until the first instance is discarded; nil if it is not mapped.
	code []byte
	// current is the instance; it is nil if there is none.
	current api.Module
}

// openWazero opens wazero with a configuration, and compiles the code of the interpreter or loads it from the cache.
func openWazero(ctx context.Context, config wazero.RuntimeConfig, code []byte, setup EngineSetup,
	imports ImportFunc) (*wazeroInstances, error) {
	memory, err := openImage(setup.Image, setup.Memory)
	if err != nil {
		return nil, err
	}
	e := &wazeroInstances{runtime: wazero.NewRuntimeWithConfig(ctx, config), memory: memory}
	compileCtx := experimental.WithCompilationWorkers(ctx, runtime.NumCPU())
	if e.module, err = e.runtime.CompileModule(compileCtx, code); err != nil {
		err = fmt.Errorf("compile the interpreter: %w", err)
	} else {
		err = e.defineImports(ctx, imports)
	}
	if err != nil {
		e.Close(ctx)
		return nil, err
	}
	return e, nil
}

// Close releases the memory. The compiled code is that of the cache.
func (e *wazeroInstances) Close(ctx context.Context) {
	_ = e.runtime.Close(ctx) // it has nothing to close that can fail
	e.current = nil
	e.memory.close()
}

// defineImports defines the functions that the interpreter imports.
func (e *wazeroInstances) defineImports(ctx context.Context, imports ImportFunc) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, d := range e.module.ImportedFunctions() {
		module, name, _ := d.Import()
		f, err := imports(module, name)
		if err != nil {
			return err
		}
		if builders[module] == nil {
			builders[module] = e.runtime.NewHostModuleBuilder(module)
		}
		builders[module].NewFunctionBuilder().
			WithGoModuleFunction(wazeroFunction(f, len(d.ParamTypes()), len(d.ResultTypes())), d.ParamTypes(), d.ResultTypes()).
			Export(name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

// wazeroFunction returns a host function in the form of wazero.
func wazeroFunction(f HostFunction, params, results int) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		result, err := f(wholeMemory(m), stack[:params])
		if err != nil {
			_ = m.CloseWithExitCode(ctx, 1)
			panic(err)
		}
		if results > 0 {
			stack[0] = result
		}
	}
}

func wholeMemory(m api.Module) []byte {
	b, _ := m.Memory().Read(0, m.Memory().Size())
	return b
}

// Prepare implements [Instances].
func (e *wazeroInstances) Prepare(ctx context.Context) error {
	ctx = experimental.WithMemoryAllocator(ctx, e.memory)
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	m, err := e.runtime.InstantiateModule(ctx, e.module, config)
	if err != nil {
		return err
	}
	e.memory.afterInstantiate()
	e.current = m
	return nil
}

// LimitMemory implements [Instances].
func (e *wazeroInstances) LimitMemory(size int64) { e.memory.limit = size }

// Call implements [Instances].
func (e *wazeroInstances) Call(ctx context.Context, function string, args ...uint64) (uint64, error) {
	f := e.current.ExportedFunction(function)
	if f == nil {
		return 0, errors.New("the interpreter does not export " + function)
	}
	results, err := f.Call(ctx, args...)
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return results[0], nil
}

// Memory implements [Instances].
func (e *wazeroInstances) Memory() []byte { return wholeMemory(e.current) }

// Discard implements [Instances].
func (e *wazeroInstances) Discard(ctx context.Context) {
	if e.current != nil {
		_ = e.current.Close(ctx) // it has nothing to close
		e.current = nil
	}
	e.memory.reset()
	if e.code != nil {
		releaseFile(e.code) // it is compiled, and the first instance has read its names
		e.code = nil
	}
}
